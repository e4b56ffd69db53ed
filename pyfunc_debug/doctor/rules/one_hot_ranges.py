"""`tf.one_hot` of labels that its depth has no place for: their rows are all zeros, in silence."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, returned
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.datasets.mapped_outputs import Output, Outputs, files_of_calls
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("label-range",)
_CALLS = ("one_hot",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call of `tf.one_hot` behind a body."""
    for file in files_of_calls(facts):
        calls = [
            one for one in pastes.walk(facts.tree(file), ast.Call)
            if isinstance(one.func, ast.Attribute) and one.func.attr in _CALLS and one.args
        ]  # fmt: skip
        outputs = Outputs(facts, file, lambda _: None) if calls else None
        for call in calls:
            origin = outputs.origin(call.args[0]) if outputs is not None else None
            depth = _depth(facts, file, pastes.argument(call, 1, "depth"))
            if origin is None or depth is None:
                continue
            seen = returned(facts, origin.group, origin.position)
            beyond = [one for one in seen if one.high is not None and one.high >= depth]
            if beyond and all("int" in one.dtype for one in seen):
                yield _finding(facts, file, call, origin, depth, seen, beyond)


def _depth(facts: Facts, file: str, node: ast.expr | None) -> int | None:
    """A number, or that which the one assignment of a name gives it."""
    if isinstance(node, ast.Name):
        made = pastes.assigned(facts.tree(file), node.id)
        node = made[0] if len(made) == 1 else None
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _finding(
    facts: Facts, file: str, call: ast.Call, origin: Output, depth: int, seen: list[Given], beyond: list[Given]
) -> Finding:
    own, body, first = pastes.source(facts, file), origin.group[0], beyond[0]
    low, high = min(one.low or 0 for one in seen), max(one.high or 0 for one in seen)
    label, size = call.args[0], pastes.argument(call, 1, "depth")
    assert size is not None  # it has a number
    pieces = (
        {label: f"{own.operand(label)} - {low:.0f}"} if low > 0 and high - low < depth else {size: f"{high + 1:.0f}"}
    )
    return Finding(
        NAMES[0], "error", body.id, (first.call,),
        f"{own.text(call)} has places for 0 to {depth - 1}, and {facts.name(body)} gave labels from {low:.0f} to "
        f"{high:.0f}: of {len(seen):,} recorded calls {len(beyond):,} gave one beyond, whose row is all zeros, and "
        "stands for no class",
        pastes.written(pastes.replaced(facts, file, pieces)), file, call.lineno,
        several(one.id for one in origin.group),
        (facts.shown(first.call),),
    )  # fmt: skip
