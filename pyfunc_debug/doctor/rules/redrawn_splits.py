"""Generators that split their data in each pass: what one holds back for validation, the other trains on.

`train_test_split(x, y)` without a random_state in the function of a generator, or a permutation of which the generator
of the training takes the first part, and that of the validation, by a permutation of its own, the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding, Node

NAMES = ("shuffled-split",)
_SPLITS = ("train_test_split",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a file."""
    by_file: dict[str, list[tuple[Node, Definition]]] = {}
    for node, _ in facts.generators.values():
        function = facts.function(node)
        if function is None or node.file is None or not facts.calls(node.id).count:
            continue
        if all(function is not one for _, one in by_file.get(node.file, [])):
            by_file.setdefault(node.file, []).append((node, function))
    for file, found in by_file.items():
        yield from _by_name(facts, file, found)
        yield from _by_permutations(facts, file, found)


def _by_name(facts: Facts, file: str, found: list[tuple[Node, Definition]]) -> Iterator[Finding]:
    """`train_test_split(...)` without its random_state."""
    own = pastes.source(facts, file)
    calls: dict[ast.Call, Node] = {}
    for node, function in found:
        for one in code.own_nodes(function):
            if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in _SPLITS and _is_free(own, one):
                calls[one] = node
    if not calls:
        return
    names = list(dict.fromkeys(facts.name(node) for node in calls.values()))
    first = next(iter(calls))
    each = f"{names[0]} and {names[1]} each split" if len(names) > 1 else f"{names[0]} splits"
    pieces: dict[ast.expr, str] = {one: own.with_argument(one, "random_state=0") for one in calls}
    yield Finding(
        NAMES[0], "error", calls[first].id, (),
        f"{each} the data in each pass: {own.text(first.func)} draws other rows each time. Rows that are held "
        "back in one pass are trained on in another, and the validation says more than is true",
        pastes.all_replaced(facts, file, pieces), file, first.lineno,
        several(node.id for node in calls.values()), (f"line {first.lineno}: {facts.line(file, first.lineno)}",),
        "likely",
    )  # fmt: skip


def _is_free(own: Source, call: ast.Call) -> bool:
    """Whether a split draws each time: scikit-learn's, or a function of the file that takes a random_state."""
    if any(word.arg in ("random_state", "shuffle", None) for word in call.keywords):
        return False
    name = dotted(call.func).rpartition(".")[2]
    mine = [one for one in pastes.walk(own.tree, ast.FunctionDef) if one.name == name]
    return not mine or any("random_state" in code.parameters(one) for one in mine)


def _by_permutations(facts: Facts, file: str, found: list[tuple[Node, Definition]]) -> Iterator[Finding]:
    """`order[:n]` in one generator, and `order[n:]` in another, of a permutation that each draws itself."""
    parts: dict[tuple[str, bool], tuple[Node, ast.Call]] = {}
    for node, function in found:
        for call, bound, is_first in _parts(function):
            parts.setdefault((bound, is_first), (node, call))
    own = pastes.source(facts, file)
    for (bound, is_first), (node, call) in parts.items():
        rest = parts.get((bound, False))
        if not is_first or rest is None or rest[0] is node:
            continue
        np = dotted(call.func).removesuffix(".random.permutation")
        pieces: dict[ast.expr, str] = {
            one.func: f"{np}.random.RandomState(0).permutation" for one in (call, rest[1])
        }  # fmt: skip
        yield Finding(
            NAMES[0], "error", node.id, (),
            f"{facts.name(node)} takes the rows before {bound} of {own.text(call)}, and {facts.name(rest[0])} those "
            "behind it, each of an order of its own, and in each pass of another one: rows that are held back are "
            "trained on",
            pastes.all_replaced(facts, file, pieces), file, call.lineno, several([node.id, rest[0].id]),
            (f"line {rest[1].lineno}: {facts.line(file, rest[1].lineno)}",),
        )  # fmt: skip
        return


def _parts(function: Definition) -> Iterator[tuple[ast.Call, str, bool]]:
    """The permutations of a function of which it takes one part: the call, the bound, and whether it is the first."""
    local = code.local_names(function)
    for made in code.own_nodes(function):
        if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call) or len(made.targets) != 1:
            continue
        if not dotted(made.value.func).endswith((".random.permutation",)) or not isinstance(made.targets[0], ast.Name):
            continue
        name = made.targets[0].id
        uses = [
            one for one in code.own_nodes(function)
            if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice) and ast.unparse(one.value) == name
        ]  # fmt: skip
        reads = [
            one for one in code.own_nodes(function)
            if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        ]  # fmt: skip
        part = uses[0].slice if len(uses) == len(reads) == 1 else None
        if not isinstance(part, ast.Slice) or part.step is not None or (part.lower is None) == (part.upper is None):
            continue
        bound = part.upper or part.lower
        assert bound is not None
        if not {one.id for one in ast.walk(bound) if isinstance(one, ast.Name)} & local:
            yield made.value, ast.unparse(bound), part.lower is None
