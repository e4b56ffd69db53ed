"""A body that returns a mask of 0 and 255 to a loss that compares with 0 and 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.body_inputs import returned
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("unscaled-mask",)
_LOSSES = ("binary_crossentropy", "BinaryCrossentropy")
_PIXEL = 255
_LEAST_CALLS = 4


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        place = len(node.tout) - 1
        if function is None or place < 1 or node.file is None or not node.tout[place].startswith("float"):
            continue
        loss = _loss(facts, node.file)
        seen = returned(facts, group, place) if loss is not None else []
        masks = [one for one in seen if len(one.shape) > 1]
        pixels = len(masks) >= _LEAST_CALLS and max(one.high or 0 for one in masks) == _PIXEL
        if (
            loss is None
            or not pixels
            or any(one.low != 0 or one.high not in (0, _PIXEL) or one.inside for one in masks)
        ):
            continue
        if not _scaled_outside(facts, node.file, function):
            yield _finding(facts, group, function, place, loss, masks[0].call)


def _loss(facts: Facts, file: str) -> ast.expr | None:
    """Where a file says that its loss compares with 0 and 1."""
    for one in pastes.walk(facts.tree(file), ast.expr):
        if isinstance(one, ast.Constant) and one.value in _LOSSES:
            return one
        if isinstance(one, ast.Attribute) and one.attr in _LOSSES:
            return one
    return None


def _scaled_outside(facts: Facts, file: str, function: Definition) -> bool:
    """Whether another place of the file scales or compares: it may be the mask."""
    inside = {id(one) for one in ast.walk(function)}
    for one in pastes.walk(facts.tree(file), ast.expr):
        if id(one) in inside:
            continue
        if isinstance(one, ast.Compare) or _scales(one) or pastes.last_name(one) == "Rescaling":
            return True
    return False


def _scales(one: ast.expr) -> bool:
    """Whether it is `x / 255`, or `x * 0.004`."""
    if not isinstance(one, ast.BinOp) or not isinstance(one.op, (ast.Div, ast.Mult)):
        return False
    by = one.right.value if isinstance(one.right, ast.Constant) else None
    return isinstance(one.op, ast.Div) or (isinstance(by, float) and by < 1)


def _finding(
    facts: Facts, group: Sequence[Node], function: Definition, place: int, loss: ast.expr, call: int
) -> Finding:
    node, own = group[0], pastes.source(facts, group[0].file)
    given = [one for one in pastes.returns(function) if isinstance(one, ast.Tuple) and len(one.elts) > place]
    part = given[0].elts[place] if len(given) == 1 else None
    fix = pastes.written(pastes.replaced(facts, node.file, {part: f"{own.operand(part)} / {_PIXEL}"})) if part else ""
    shown = own.text(part) if part is not None else f"its output {place}"
    return Finding(
        NAMES[0], "error", node.id, (call,),
        f"{facts.name(node)} returns {shown} with 0 and {_PIXEL} only, and the loss (line {loss.lineno}) compares a "
        f"prediction with 0 or 1: {_PIXEL} in their place makes it as small as one likes",
        fix or f"{shown} / {_PIXEL}", node.file, part.lineno if part is not None else node.line,
        several(one.id for one in group), (facts.shown(call),),
    )  # fmt: skip
