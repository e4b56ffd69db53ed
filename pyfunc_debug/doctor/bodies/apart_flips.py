"""A body that flips an image by a draw, and its mask or its boxes by another one, or not at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import as_given, given, returned
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Node

_BOXES = re.compile(r"box|keypoint|kpt|landmark|joint|corner|polygon|points?$", re.IGNORECASE)
_MASK = re.compile(r"mask|seg|label|target|annot|truth|heatmap|^gt|_gt$|^y$", re.IGNORECASE)
_DRAW = re.compile(r"\b(?:random|rand|randint|uniform|choice|binomial|integers|getrandbits)\(")
_FLIPS = ("fliplr", "flipud", "flip_left_right", "flip_up_down")
_NUMBERS = (2, 3, 4, 5)
"""How many numbers a point or a box has: those of COCO's have one that says whether it is seen, or its class."""


@dataclass(frozen=True)
class _Flip:
    """An `if` with a draw, and the statement in it that gives a name its image flipped."""

    test: ast.If
    statement: ast.Assign
    name: str
    how: str


@dataclass(frozen=True)
class Apart:
    """What is flipped, what belongs to it, the lines that say so, and what to do."""

    line: int
    lines: Sequence[int]
    message: str
    fix: str
    sure: bool


def apart_flips(facts: Facts, group: Sequence[Node]) -> Apart | None:
    """What a body flips apart; None where it flips together, or nothing by a draw.

    Args:
      facts: The recording.
      group: The nodes of the body.
    """
    node, function = group[0], facts.function(group[0])
    if not isinstance(function, ast.FunctionDef) or node.file is None:
        return None
    flips = [*_flips(function)]
    values = pastes.returns(function)
    if not flips or len(values) != 1 or not isinstance(values[0], ast.Tuple):
        return None
    shapes = {
        name: {one.shape for one in returned(facts, group, place)}
        for place, one in enumerate(values[0].elts) for name in [code.chain_root(one)]
        if not isinstance(one, ast.Constant)
    }  # fmt: skip
    for flip in flips:
        for place, one in enumerate(values[0].elts):
            kept = as_given(function, one)
            if not kept or kept == flip.name or not _alone(function, kept):
                continue
            sizes = {each.shape for each in given(facts, group, kept)}
            if _is_mask(kept, flip.name) and sizes and _sides(sizes) == _sides(shapes.get(flip.name, set())):
                return _unmoved(facts, node, flip, kept, "")
            if _BOXES.search(kept) and sizes and all(_are_places(each) for each in sizes):
                return _unmoved(facts, node, flip, kept, _moved(flip, kept, [*returned(facts, group, place)]))
    return _two_draws(facts, node, flips, {name: _sides(sizes) for name, sizes in shapes.items()})


def _flips(function: ast.FunctionDef) -> Iterator[_Flip]:
    """The flips of a function that a draw decides on, where nothing else asks what it was."""
    for one in code.own_nodes(function):
        if not isinstance(one, ast.If) or one.orelse or not _drawn(function, one.test):
            continue
        for inner in one.body:
            if not isinstance(inner, ast.Assign) or len(inner.targets) != 1:
                continue
            target = inner.targets[0]
            if isinstance(target, ast.Name) and (how := _flipped(inner.value, target.id)):
                yield _Flip(one, inner, target.id, how)


def _drawn(function: ast.FunctionDef, test: ast.expr) -> bool:
    """Whether a draw stands in a test, or in the one assignment of the name that is tested here only."""
    if not isinstance(test, ast.Name):
        return _DRAW.search(ast.unparse(test)) is not None
    made = pastes.assigned(function, test.id)
    read = [one for one in pastes.walk(function, ast.Name) if one.id == test.id and isinstance(one.ctx, ast.Load)]
    return len(made) == 1 and len(read) == 1 and _DRAW.search(ast.unparse(made[0])) is not None


def _flipped(value: ast.expr, name: str) -> str:
    """`[:, ::-1]` or `fliplr`: how an expression flips what a name holds along its height or width; "" for others."""
    while isinstance(value, ast.Call) and pastes.last_name(value.func) in ("copy", "ascontiguousarray"):
        value = value.args[0] if value.args else value.func.value if isinstance(value.func, ast.Attribute) else value
        if isinstance(value, ast.Name):
            return ""
    if isinstance(value, ast.Subscript) and ast.unparse(value.value) == name:
        text = ast.unparse(value.slice).strip("()").replace(" ", "")
        return {"::-1": "up-down", ":,::-1": "left-right", ":,::-1,:": "left-right", "::-1,:": "up-down"}.get(text, "")
    if not isinstance(value, ast.Call) or not value.args or ast.unparse(value.args[0]) != name:
        return ""
    called, axis = pastes.last_name(value.func), pastes.argument(value, 1, "axis")
    if called in _FLIPS:
        return "up-down" if "up" in called or called == "flipud" else "left-right"
    if called != "flip" or axis is None:
        return ""
    opencv = ast.unparse(value.func) == "cv2.flip"
    turns = {"1": "left-right", "0": "up-down"}
    return turns.get(ast.unparse(axis), "") if opencv or len(value.args) + len(value.keywords) == 2 else ""


def _alone(function: ast.FunctionDef, name: str) -> bool:
    """Whether a body does nothing with an input but give it back, perhaps as an array."""
    stored = sum(name in code.stored_names(one) for one in code.own_nodes(function) if isinstance(one, ast.stmt))
    read = [one for one in pastes.walk(function, ast.Name) if one.id == name and isinstance(one.ctx, ast.Load)]
    return len(read) == 1 + stored


def _is_mask(name: str, image: str) -> bool:
    return _MASK.search(name) is not None and _MASK.search(image) is None


def _sides(shapes: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Heights and widths; of anything but images none."""
    return {one[:2] for one in shapes if len(one) > 1}


def _are_places(shape: tuple[int, ...]) -> bool:
    return len(shape) in (1, 2) and shape[-1] in _NUMBERS


def _moved(flip: _Flip, name: str, seen: Sequence[object]) -> str:
    """What moves boxes with their image, as far as their kind tells: corners in pixels, or parts of the image."""
    highs = [getattr(one, "high", None) for one in seen]
    parts = bool(highs) and all(high is not None and high <= 1 for high in highs)
    axis, side = ("x", 1) if flip.how == "left-right" else ("y", 0)
    size = "1" if parts else f"{flip.name}.shape[{side}]"
    return (
        f"in the same if: each {axis} of {name} becomes {size} - {axis}, and {axis}1 and {axis}2 of a box change places"
    )


def _unmoved(facts: Facts, node: Node, flip: _Flip, kept: str, words: str) -> Apart:
    own, file = pastes.source(facts, node.file), str(node.file)
    line = flip.statement.lineno
    fix = words
    if not fix:
        pieces: dict[ast.expr, str] = {
            one: kept for one in pastes.walk(flip.statement, ast.Name) if one.id == flip.name
        }  # fmt: skip
        alone = own.span(flip.statement) == (line, line) and flip.test.lineno < line
        said = pastes.replaced(facts, file, pieces) if alone else None
        both = None if said is None else Edit(file, line, line, (own.lines[line - 1], *said.lines))
        fix = pastes.written(both) if both is not None else f"the same flip of {kept}, in the same if"
    return Apart(
        line, (flip.test.lineno, line),
        f"{facts.name(node)} flips {flip.name} where a draw says so, and returns {kept} as it came: in these calls "
        f"{kept} belongs to the picture that {flip.name} was before",
        fix, not words,
    )  # fmt: skip


def _two_draws(
    facts: Facts, node: Node, flips: Sequence[_Flip], sides: dict[str, set[tuple[int, ...]]]
) -> Apart | None:
    """One flip of an image and of its mask that two draws decide on."""
    pairs = [
        (one, other) for one in flips for other in flips
        if one.how == other.how and one.test is not other.test and _is_mask(other.name, one.name)
        and sides.get(one.name) == sides.get(other.name) != set()
    ]  # fmt: skip
    if not pairs or len({id(one) for one, _ in pairs}) < len(pairs):
        return None
    one, other = pairs[0]
    own, file, edits = pastes.source(facts, node.file), str(node.file), list[Edit | None]()
    pieces: dict[ast.expr, str] = {}
    for number, pair in enumerate(pairs):
        first = min((each.test for each in pair), key=lambda each: each.lineno)
        name = own.unused_name("flip" if not number else f"flip_{number + 1}")
        edits.append(pastes.above(facts, file, first.lineno, f"{name} = {own.text(first.test)}"))
        pieces.update({each.test.test: name for each in pair})
    lines = sorted((one.test.lineno, other.test.lineno))
    return Apart(
        lines[1], lines,
        f"{facts.name(node)} flips {one.name} and {other.name} each by a draw of its own: where one is flipped and the "
        "other is not, they no longer belong together",
        pastes.written(*edits, *pastes.each_replaced(facts, file, pieces)), True,
    )  # fmt: skip
