"""Results of one pass over a shuffled dataset, matched by position with those of another pass, or with sorted files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets import reordered_passes, shuffled_flows, shuffled_sequences
from pyfunc_debug.doctor.datasets.unshuffled import unshuffled
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.shuffled_splits import kept_order
from pyfunc_debug.records import Finding

NAMES = ("shuffled-results",)
_WORDS = "dataset.shuffle(..., reshuffle_each_iteration=False)  # or collect both in one loop"
_GROWS = {"append", "extend"}
_MATCHES = ("zip", "accuracy", "confusion", "report", "score", "equal", "DataFrame", "where", "enumerate",
            "savez", "close")  # fmt: skip
"""What goes by position: names of functions that hold one of these."""
_PREDICTED = frozenset({0})
_LABELS = re.compile(r"^y$|^y_|_y$|label|true|target|truth|actual|expected", re.IGNORECASE)
"""How labels are called."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a dataset."""
    passes: dict[str, list[tuple[frozenset[int], dict[str, Any], set[str]]]] = {}
    for loop in facts.meta.get("inputs") or []:
        kinds = [stage["kind"] for stage in loop["stages"]]  # the last first
        again = next((place for place, stage in enumerate(loop["stages"]) if stage.get("reshuffles")), None)
        if again is None or loop["site"] is None or "Cache" in "".join(kinds[:again]):
            continue
        found = _collected(facts, str(loop["site"][0]), int(loop["site"][1]))
        if found is not None:
            passes.setdefault(repr((loop["stages"], found[2])), []).append((found[0], loop, found[1]))
    for loops in passes.values():
        two = [(one, other) for place, one in enumerate(loops) for other in loops[place + 1 :] if one[0] != other[0]]
        fit = [pair for pair in two if _together(facts, str(pair[0][1]["site"][0]), pair[0][2], pair[1][2])]
        first = loops[0]
        if fit:
            yield _two(facts, fit[0][0][1], fit[0][1][1])
        elif not two and first[0] in (_PREDICTED, frozenset()) and _matched(facts, str(first[1]["site"][0]), first[2]):
            yield from _files(facts, first[1])
            yield from _of_other_order(facts, first)
    yield from shuffled_flows.check(facts, NAMES[0], _made_of, _side_by_side)
    yield from shuffled_sequences.check(facts, NAMES[0], _made_of, _side_by_side)
    yield from reordered_passes.check(facts, NAMES[0], _collected, _together)


def _two(facts: Facts, one: dict[str, Any], other: dict[str, Any]) -> Finding:
    file, line, fix = _order(facts, one)
    sites = [facts.source_line(*loop["site"][:2]) for loop in (one, other)]
    return Finding(
        NAMES[0], "error", None, (),
        f"what {sites[0]} and {sites[1]} collect from this dataset does not fit together by position: they are two "
        "passes over it, and its shuffle gives each pass another order",
        fix or _WORDS, file, line, evidence=("both are compared, or paired, by their positions",), confidence="likely",
    )  # fmt: skip


def _files(facts: Facts, loop: dict[str, Any]) -> Iterator[Finding]:
    file, line, fix = _order(facts, loop)
    if any(".list_files(" in text for text in facts.code(file)[line - 1 : line]):
        yield Finding(
            NAMES[0], "error", None, (),
            "list_files gives the files in a shuffled order, another in each pass, and what "
            f"{facts.source_line(*loop['site'][:2])} collects holds no names: its positions are not those of a sorted "
            "list of the files",
            fix or "tf.data.Dataset.list_files(pattern, shuffle=False)", file, line, confidence="likely",
        )  # fmt: skip


def _of_other_order(facts: Facts, found: tuple[frozenset[int], dict[str, Any], set[str]]) -> Iterator[Finding]:
    """Predictions for a shuffled dataset beside labels that were never in it: those of a table, or of an array."""
    parts, loop, names = found
    file, line = str(loop["site"][0]), int(loop["site"][1])
    tree, own = facts.tree(file), _collected(facts, file, line)
    predicted = _made_of(tree, names)
    labels = {
        name for sides in _side_by_side(tree) if len(sides) > 1 and any(side & predicted for side in sides)
        for side in sides for name in side - predicted if _LABELS.search(name)
    }  # fmt: skip
    of_dataset = _made_of(tree, {own[2]}) if own is not None else set()
    place = unshuffled(facts, file, own[2], line) if own is not None and parts == _PREDICTED else None
    if own is None or place is None or not labels - of_dataset:
        return
    name = min(labels - of_dataset)
    yield Finding(
        NAMES[0], "error", None, (),
        f"what {facts.source_line(file, line)} predicts does not fit to {name} by position: {own[2]} is shuffled (line "
        f"{place[0]}), another order in each pass, and {name} is not",
        place[1] or "make the dataset that you predict for without shuffle", file, line,
        evidence=("both are compared, or paired, by their positions",), confidence="likely",
    )  # fmt: skip


def _order(facts: Facts, loop: dict[str, Any]) -> tuple[str, int, str]:
    """The line that shuffles a loop's dataset, as far as it can be told, and that line with an order that stays."""
    file = str(loop["site"][0])
    files = [
        one for one in pastes.walk(facts.tree(file), ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr in ("list_files", "shuffle")
        and not any(word.arg in ("shuffle", "reshuffle_each_iteration") for word in one.keywords)
    ]  # fmt: skip
    if len(files) == 1 and files[0].func.attr == "list_files" and len(files[0].args) == 1:  # type: ignore[attr-defined]
        text = f"{pastes.text_of(facts, file, files[0])[:-1].rstrip().rstrip(',')}, shuffle=False)"
        return file, files[0].lineno, pastes.written(pastes.replaced(facts, file, {files[0]: text}))
    found = kept_order(facts, loop["site"]) if len(files) == 1 else None
    if found is None:
        return file, int(loop["site"][1]), ""
    return (*found[1], found[0])


def _collected(facts: Facts, file: str, line: int) -> tuple[frozenset[int], set[str], str] | None:
    """What a line collects of a dataset in order.

    Returns:
      Which parts of each element: empty for all of it. The variables that hold it. The dataset, as it is written.
      None where the line does something else with the dataset.
    """
    own = pastes.source(facts, file)
    statement = own.statement(line)
    if statement is None:
        return None
    if isinstance(statement, ast.For):
        return _appended(statement)
    if not isinstance(statement, ast.Assign):
        return None
    names = {one.id for target in statement.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    for one in ast.walk(statement.value):
        if isinstance(one, ast.ListComp) and len(one.generators) == 1:
            read = {part.id for part in ast.walk(one.elt) if isinstance(part, ast.Name)}
            return _parts(one.generators[0].target, read), names, _dataset(one.generators[0].iter)
        if (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr == "predict"
            and one.args
        ):
            return _PREDICTED, names, _dataset(one.args[0])
    return None


def _appended(loop: ast.For) -> tuple[frozenset[int], set[str], str] | None:
    grown = [
        one for one in ast.walk(loop)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _GROWS
    ]  # fmt: skip
    read = {part.id for one in grown for given in one.args for part in ast.walk(given) if isinstance(part, ast.Name)}
    names = {ast.unparse(one.func.value) for one in grown}  # type: ignore[attr-defined]
    return (_parts(loop.target, read), names, _dataset(loop.iter)) if len(names) == 1 else None


def _parts(target: ast.expr, read: set[str]) -> frozenset[int]:
    """Which parts of an element are read."""
    if not isinstance(target, ast.Tuple):
        return frozenset()
    return frozenset(place for place, one in enumerate(target.elts) if isinstance(one, ast.Name) and one.id in read)


def _dataset(value: ast.expr) -> str:
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value  # dataset.as_numpy_iterator()
    return ast.unparse(value)


def _together(facts: Facts, file: str, one: set[str], other: set[str]) -> bool:
    """Whether what two passes collected is compared or paired by position, one with the other."""
    tree = facts.tree(file)
    every, others = _made_of(tree, one), _made_of(tree, other)
    mine, theirs = every - others, others - every
    return any(
        left != right and parts[left] & mine and parts[right] & theirs
        for parts in _side_by_side(tree)
        for left in range(len(parts))
        for right in range(len(parts))
    )


def _matched(facts: Facts, file: str, names: set[str]) -> bool:
    """Whether one of some variables is compared, or paired by position with something else."""
    tree = facts.tree(file)
    own = _made_of(tree, names)
    return any(
        any(part & own for part in parts) and (compared or any(part - own for part in parts))
        for parts, compared in ((parts, len(parts) > 1) for parts in _side_by_side(tree))
    )


def _side_by_side(tree: ast.Module | None) -> Iterator[list[set[str]]]:
    """The variables in each of the things that a comparison, a difference or a call takes position by position."""
    for one in pastes.walk(tree, ast.Compare):
        if isinstance(one.ops[0], (ast.Eq, ast.NotEq)):
            yield [_names(side) for side in (one.left, *one.comparators)]
    for difference in pastes.walk(tree, ast.BinOp):
        if isinstance(difference.op, ast.Sub):
            yield [_names(difference.left), _names(difference.right)]
    for call in pastes.walk(tree, ast.Call):
        called = ast.unparse(call.func).rpartition(".")[2]
        if any(word in called for word in _MATCHES):
            yield [_names(part) for given in (*call.args, *(word.value for word in call.keywords))
                   for part in _elements(given)]  # fmt: skip


def _elements(given: ast.expr) -> list[ast.expr]:
    """`{"a": x, "b": y}` and `[x, y]` hold several columns."""
    if isinstance(given, ast.Dict):
        return given.values
    return given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]


def _names(value: ast.AST) -> set[str]:
    """The variables whose elements are in a value: not those that are only counted, or say where."""
    if isinstance(value, ast.Name):
        return {value.id}
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("len", "range", "print"):
        return set()
    if isinstance(value, ast.Attribute):
        return set() if value.attr in ("shape", "size", "ndim", "dtype") else _names(value.value)
    parts = [value.value] if isinstance(value, ast.Subscript) else ast.iter_child_nodes(value)
    if isinstance(value, ast.Call):  # `np.argmax(x)` is made of x, and `x.ravel()` too
        parts = [*value.args, *(one.value for one in value.keywords)]
        parts += [value.func.value] if isinstance(value.func, ast.Attribute) else []
    return set().union(*map(_names, parts))


def _made_of(tree: ast.Module | None, names: set[str]) -> set[str]:
    """Some variables, and what a file computes of them: `labels = np.concatenate(labels)`."""
    found, before = set(names), set[str]()
    while found != before:
        before = set(found)
        for one in pastes.walk(tree, ast.Assign):
            if _names(one.value) & found:
                found |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    return found
