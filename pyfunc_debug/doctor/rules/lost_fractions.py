"""A body that cuts fractions until nothing is left: `astype(np.uint8)` of an image in [0, 1], `img // 255`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, as_given, given, returned
from pyfunc_debug.doctor.bodies.float_casts import as_floats, in_floats
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("lost-fraction",)
_LEAST_CALLS = 2
_PIXEL = 255
_LEAST_SCALE = 100
"""What divides pixels: a division of classes by 2 is meant."""
_WHOLE = ("uint8", "int", "int32", "int64")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body all of whose results are 0, or 0 and 1 at the ends of what it got."""
    for group in facts.lines:
        function = facts.function(group[0])
        if function is None or facts.calls_of(group).count < _LEAST_CALLS:
            continue
        out = returned(facts, group)
        if not out or any(one.low != 0 or (one.high or 0) not in (0, 1) or one.inside for one in out):
            continue
        for node in (one for one in code.own_nodes(function) if isinstance(one, ast.expr)):
            found = _divided(facts, group, function, node) or _cast(facts, group, function, node)
            if found is not None:
                yield found
                break


def _cast(facts: Facts, group: Sequence[Node], function: Definition, node: ast.expr) -> Finding | None:
    """`img.astype(np.uint8)` of numbers from 0 to 1."""
    if not isinstance(node, ast.Call) or len(node.args) > 2:
        return None
    name = pastes.last_name(node.func)
    image: ast.expr | None = None
    if name == "astype" and isinstance(node.func, ast.Attribute) and _is_whole(node.args):
        image = node.func.value
    elif (name == "cast" and _is_whole(node.args[1:])) or (name == "uint8" and len(node.args) == 1):
        image = node.args[0]
    if image is not None and (found := _scaled(facts, group, function, node, image)) is not None:
        return found
    seen = _images(facts, group, function, image)
    if image is None or not seen or not all(_is_share(one) for one in seen):
        return None
    file, text = group[0].file, pastes.source(facts, group[0].file).atom(image)
    fix = pastes.written(pastes.replaced(facts, file, {image: f"({text} * {_PIXEL})"}))
    low, high = (f"{one:.3g}" for one in (seen[0].low or 0, seen[0].high or 0))
    return _finding(
        facts, group, node, seen,
        f"{pastes.text_of(facts, file, node)} cuts the fractions, and {text} has nothing else: it is between 0 and 1 "
        f"in all {len(seen):,} recorded calls ({low} to {high} in the first). What is less than 1 becomes 0",
        fix,
    )  # fmt: skip


def _scaled(
    facts: Facts, group: Sequence[Node], function: Definition, node: ast.Call, image: ast.expr
) -> Finding | None:
    """`(img / 255).astype(np.uint8)` of numbers up to 255: what is scaled to [0, 1] is made whole numbers again."""
    by = image.right.value if isinstance(image, ast.BinOp) and isinstance(image.right, ast.Constant) else None
    if not isinstance(image, ast.BinOp) or not isinstance(image.op, ast.Div) or not isinstance(by, (int, float)):
        return None
    seen = _images(facts, group, function, image.left)
    if by < _LEAST_SCALE or not seen or any(one.high is None or one.high > by or (one.low or 0) < 0 for one in seen):
        return None
    own = pastes.source(facts, group[0].file)
    dtype = (node.args or [node.func])[-1]
    fix = as_floats(facts, group[0], dtype) or f"{in_floats(own.text(dtype))} in line {node.lineno}, and in Tout"
    return _finding(
        facts, group, node, seen,
        f"{own.text(node)} cuts the fractions, and {own.text(image)} is between 0 and 1: {own.text(image.left)} is "
        f"{seen[0].high:.0f} at most in the first call, and never more than {by:g} in {len(seen):,}",
        fix,
    )  # fmt: skip


def _divided(facts: Facts, group: Sequence[Node], function: Definition, node: ast.expr) -> Finding | None:
    """`img // 255` of whole numbers up to 255."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv):
        return None
    by = node.right.value if isinstance(node.right, ast.Constant) else None
    seen = _images(facts, group, function, node.left)
    if (
        not isinstance(by, (int, float))
        or by < _LEAST_SCALE
        or not seen
        or any(one.high is None or one.high > by for one in seen)
    ):
        return None
    file = group[0].file
    own = pastes.source(facts, file)
    text, number = own.atom(node.left), own.text(node.right)
    return _finding(
        facts, group, node, seen,
        f"{own.text(node)} divides without a fraction, and {text} is {seen[0].high:.0f} at most in the first call, and "
        f"never more than {by:g} in {len(seen):,}: what is less than {by:g} becomes 0",
        pastes.written(pastes.replaced(facts, file, {node: f"{text} / {number}"})),
    )  # fmt: skip


def _finding(facts: Facts, group: Sequence[Node], node: ast.expr, seen: list[Given], message: str, fix: str) -> Finding:
    call = seen[0].call
    return Finding(
        NAMES[0], "error", group[0].id, (call,), f"{facts.name(group[0])} returned 0 or 1 only: {message}", fix,
        group[0].file, node.lineno, several(one.id for one in group),
        (facts.shown(call),),
    )  # fmt: skip


def _images(facts: Facts, group: Sequence[Node], function: Definition, node: ast.expr | None) -> list[Given]:
    """What an array that the body got was, where it has several numbers in each call."""
    name = as_given(function, node) if node is not None else ""
    seen = given(facts, group, name) if name else []
    return seen if all(one.shape and one.low is not None and one.inside for one in seen) else []


def _is_whole(given: Sequence[ast.expr]) -> bool:
    return len(given) == 1 and ast.unparse(given[0]).rpartition(".")[2].strip("'\"") in _WHOLE


def _is_share(one: Given) -> bool:
    """Whether numbers are fractions between 0 and 1."""
    return "float" in one.dtype and one.low is not None and one.high is not None and 0 <= one.low < one.high <= 1
