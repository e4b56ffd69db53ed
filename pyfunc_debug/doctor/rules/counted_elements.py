"""A pass over a dataset that only counts its elements: it runs all Python that makes them, and they are made again."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.datasets.unknown_counts import counted, dataset_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, short
from pyfunc_debug.doctor.generators.element_counts import asserted, count_of, length_in
from pyfunc_debug.records import Finding

NAMES = ("counted-elements",)
_LEAST_NS = 500_000_000
_SHARE = 0.1
_KNOWN = ("Tensor", "TensorSlice", "Range")
"""Sources whose number of elements TensorFlow knows."""
_OPEN = ("Filter", "FlatMap", "Interleave", "IgnoreErrors", "Unbatch", "TakeWhile", "Repeat", "Sample", "Choose")
"""Transformations, in parts of their names, behind which nobody knows it, or there is no end."""
_NAMED = (ast.Name, ast.Attribute)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that counts."""
    entries: Sequence[Any] = facts.meta.get("inputs") or ()
    told: set[tuple[str, int]] = set()
    for entry in entries:
        took = entry["first_ns"] + entry["step_ns"]
        if entry["site"] is None or not entry["taken"] or took < facts.least_ns(_LEAST_NS):
            continue
        file, line, function = entry["site"]
        if (file, line) in told or took < _SHARE * (facts.wall_ns or 0):
            continue
        again = [other["site"] for other in entries if other is not entry and other["site"] and _shared(entry, other)]
        own = pastes.source(facts, file)
        found = _counting(own, line)
        if found is None or not again:
            continue  # what is read once may be a test of its speed
        told.add((file, line))
        yield _finding(facts, entry, found, again[0], took, "" if function == "<module>" else f"{function} ")


def _shared(one: Any, other: Any) -> bool:
    """Whether two loops' pipelines run the same Python."""
    tokens = [{token for stage in each["stages"] for token in stage["tokens"]} for each in (one, other)]
    return bool(tokens[0] & tokens[1])


def _counting(own: Source, line: int) -> tuple[ast.For | ast.Call, ast.expr] | None:
    """The loop, or the call of `sum` or `len`, of a line that only counts, and what it counts."""
    for one in ast.walk(own.tree):
        if getattr(one, "lineno", 0) != line:
            continue
        if isinstance(one, ast.For) and _adds_one(one):
            return one, one.iter
        if isinstance(one, ast.Call) and len(one.args) == 1 and not one.keywords:
            part, name = one.args[0], dotted(one.func)
            plain = isinstance(part, (ast.GeneratorExp, ast.ListComp)) and len(part.generators) == 1
            if plain and isinstance(part, (ast.GeneratorExp, ast.ListComp)) and not part.generators[0].ifs:
                ones = isinstance(part.elt, ast.Constant) and part.elt.value == 1
                if (name == "sum" and ones) or (name == "len" and isinstance(part, ast.ListComp)):
                    return one, part.generators[0].iter
            if name == "len" and isinstance(part, ast.Call) and dotted(part.func) in ("list", "tuple"):
                return (one, part.args[0]) if len(part.args) == 1 else None
    return None


def _adds_one(loop: ast.For) -> bool:
    """Whether all that a loop does is `n += 1`."""
    only = loop.body[0] if len(loop.body) == 1 and not loop.orelse else None
    if not isinstance(only, ast.AugAssign) or not isinstance(only.op, ast.Add):
        return False
    return isinstance(only.value, ast.Constant) and only.value.value == 1 and isinstance(loop.iter, _NAMED)


def _finding(
    facts: Facts, entry: Any, found: tuple[ast.For | ast.Call, ast.expr], again: Any, took: int, who: str
) -> Finding:
    file, line, _ = entry["site"]
    own = pastes.source(facts, file)
    node, dataset = found
    text = own.text(dataset)
    tokens = {token for stage in entry["stages"] for token in stage["tokens"]}
    bodies = dict.fromkeys(
        one.body.rpartition(".")[2] for number, one in facts.nodes.items()
        if one.token in tokens and (one.origin == "user" or number in facts.generators)
    )  # fmt: skip
    runs = f"runs {' and '.join(list(bodies)[:2])}" if bodies else "runs Python"
    passes = "" if entry["iterators"] == 1 else f" in {entry['iterators']} passes"
    edits = _edits(facts, entry, own, file, node, dataset)
    words = (
        f"{text} = {text}.apply(tf.data.experimental.assert_cardinality(n))  # n, the number of its elements\n"
        f"int({text}.cardinality())  # in place of counting"
    )
    return Finding(
        NAMES[0], "warning", None, (),
        f"{who or 'this line '}reads all of {short(text, 40)} only to count it: {entry['taken']:,} elements{passes}, "
        f"for which it {runs} ({took / 1e9:.1f} s). {again[2] if again[2] != '<module>' else 'The program'} "
        f"(line {again[1]}) reads them, too. With its number given, the dataset tells it at once",
        pastes.written(*edits) if edits else words, file, line, confidence="measured" if edits else "likely",
    )  # fmt: skip


def _edits(
    facts: Facts, entry: Any, own: Source, file: str, node: ast.For | ast.Call, dataset: ast.expr
) -> list[Edit] | None:
    """The line that says the number, and that which asks for it; None where the number is not known."""
    kinds = [str(stage["kind"]) for stage in entry["stages"]]
    asserts = [place for place, kind in enumerate(kinds) if "AssertCardinality" in kind]
    open_ones = [kind for kind in kinds[: asserts[0] if asserts else None] if any(one in kind for one in _OPEN)]
    found: list[Edit] = []
    if not asserts and (open_ones or kinds[-1] not in _KNOWN):
        edit = _asserted(facts, entry) if open_ones == ["FlatMap"] else None
        if edit is None:
            return None
        found.append(edit)
    elif open_ones:
        return None
    within = next((one for one in own.around(node) if isinstance(one, ast.FunctionDef)), own.tree)
    asked = [one for one in ast.walk(within) if isinstance(one, ast.Call) and counted(one) is one]
    if found and any((each := dataset_of(one)) is not None and own.text(each) == own.text(dataset) for one in asked):
        return found  # it counts only where that does not say it
    if not isinstance(dataset, _NAMED):
        return None
    says = f"int({own.text(dataset)}.cardinality())"
    if isinstance(node, ast.Call):
        edit = edit_of(file, own.replaced({node: says}))
        return [*found, edit] if edit is not None else None
    only = node.body[0]
    assert isinstance(only, ast.AugAssign)
    text = f"{indent_of(own.lines[node.lineno - 1])}{own.text(only.target)} += {says}"
    return [*found, Edit(file, node.lineno, node.end_lineno or node.lineno, (text,))]


def _asserted(facts: Facts, entry: Any) -> Edit | None:
    """The line that says how many elements the generator of a loop gives."""
    tokens = {token for stage in entry["stages"] for token in stage["tokens"]}
    sites = {
        (site.file, site.line) for number, node in facts.nodes.items()
        if node.token in tokens and (site := facts.site(number)) is not None
    }  # fmt: skip
    if len(sites) != 1:
        return None
    file, line = sites.pop()
    own = pastes.source(facts, file)
    call = next(
        (
            one for one in ast.walk(own.tree)
            if isinstance(one, ast.Call) and dotted(one.func).endswith("from_generator")
            and one.lineno <= line <= (one.end_lineno or one.lineno)
        ),
        None,
    )  # fmt: skip
    count = count_of(own, call, length_in(own)) if call is not None else ""
    if call is None or not count:
        return None
    return asserted(file, own, call, count, pastes.module(facts, file, "tensorflow") or "tf")
