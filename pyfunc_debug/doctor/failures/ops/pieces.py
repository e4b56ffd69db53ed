"""Pieces of a tensor that are larger than it: slices, crops, paddings, splits, and places that are drawn for them."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import RULE, Refused, each, shape_at
from pyfunc_debug.doctor.failures.reading.shapes import CHANNELS
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of

_SLICED = re.compile(r"Expected size\[(\d+)\] in \[0, (\d+)\], but got (\d+)")
_CROPPED = re.compile(r"(?:height|width) must be >= target \+ offset")
_NEGATIVE = re.compile(r"Paddings must be non-negative: (-?\d+) (-?\d+)")
_RANKS = re.compile(r"The first dimension of paddings must be the rank of inputs")
_DIVIDED = re.compile(r"Number of ways to split should evenly divide")
_SUMMED = re.compile(r"Determined shape must either match input shape along split_dim exactly")
_EMPTY = re.compile(r"Need minval < maxval, got (-?\d+) >= (-?\d+)")
_CROP = ("offset_height", "offset_width", "target_height", "target_width")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the line takes, pads or splits off more than there is."""
    message = situation.message
    if _SLICED.search(message):
        return each(situation, _sliced)
    if _CROPPED.search(message):
        return each(situation, _cropped)
    if (said := _NEGATIVE.search(message)) is not None:
        return each(situation, _padded, int(said[1]), int(said[2]))
    if _RANKS.search(message):
        return each(situation, _ranks)
    if _DIVIDED.search(message):
        return each(situation, _divided)
    if _SUMMED.search(message):
        return each(situation, _summed)
    if (said := _EMPTY.search(message)) is not None:
        return each(situation, _drawn, int(said[1]), int(said[2]))
    return None


def _only(place: Refused, name: str) -> ast.Call | None:
    found = place.calls_of(name)
    return found[0] if len(found) == 1 else None


def _numbers(node: ast.expr | None, place: Refused) -> list[int] | None:
    found: Any = evaluation.computed(node, place.spot) if node is not None else None
    return list(found) if isinstance(found, (list, tuple)) and all(type(one) is int for one in found) else None


def _sliced(place: Refused) -> Explanation | None:
    """`tf.slice(x, begin, end)`: the third is how many, and not where it ends."""
    call = _only(place, "slice")
    tensor, begin, size = (
        (argument(call, at, name) for at, name in enumerate(("input_", "begin", "size"))) if call else (None,) * 3
    )
    begins, counts = _numbers(begin, place), _numbers(size, place)
    shape = place.shape(tensor) if tensor is not None else None
    if (
        tensor is None
        or begins is None
        or counts is None
        or shape is None
        or not isinstance(size, (ast.List, ast.Tuple))
    ):
        return None
    if not len(begins) == len(counts) == len(shape) == len(size.elts) or None in shape:
        return None
    over = [at for at, whole in enumerate(shape) if whole is not None and begins[at] + counts[at] > whole]
    name = short(place.text(tensor), 30)
    if not over:
        return None
    at = over[0]
    cause = (
        f"the piece begins at {begins[at]} of axis {at} and takes {counts[at]}, up to {begins[at] + counts[at]}; "
        f"{name} has {shape[at]} there. The size says how many, and not where the piece ends."
    )
    if all(counts[one] == shape[one] and begins[one] > 0 for one in over):
        return place.told(f"{cause} -1 takes all up to the end.", {size.elts[one]: "-1" for one in over})
    return (
        place.told(cause, {}, f"Let it begin at {(shape[at] or 0) - counts[at]} or before.")
        if counts[at] < (shape[at] or 0)
        else None
    )


def _cropped(place: Refused) -> Explanation | None:
    """`crop_to_bounding_box` with height and width exchanged, or with the places where the box ends."""
    call = _only(place, "crop_to_bounding_box")
    given = [argument(call, at + 1, name) for at, name in enumerate(_CROP)] if call is not None else []
    image = argument(call, 0, "image") if call is not None else None
    shape = shape_at(image, place.spot) if image is not None else None
    values = [evaluation.computed(one, place.spot) for one in given if one is not None]
    if call is None or image is None or shape is None or len(shape) not in (3, 4) or len(values) != 4:
        return None
    high, wide = shape[-3:-1]
    if high is None or wide is None or not all(type(one) is int for one in values):
        return None
    top, left, height, width = values
    above, beside, target, other = (one for one in given if one is not None)
    text, name = place.text, short(place.text(image), 30)
    cause = f"{name} is {high} high and {wide} wide, and the box from ({top}, {left}) has {height} x {width}. "
    turned = top == left and top + width <= high and left + height <= wide
    ends = (top or left) and top < height <= high and left < width <= wide
    if turned and not ends and height != width:
        cause += "The height comes first: exchanged, it fits."
        return place.told(cause, {target: text(other), other: text(target)})
    if ends and not turned:
        cause += "It takes the box's height and width, and not where the box ends."
        pieces = {target: f"{text(target)} - {text(above)}", other: f"{text(other)} - {text(beside)}"}
        return place.told(cause, pieces)
    return None


def _padded(place: Refused, before: int, behind: int) -> Explanation | None:
    """`tf.pad(x, [[0, n - tf.shape(x)[0]]])` of an x that is longer than n: cut first."""
    call = _only(place, "pad")
    tensor, paddings = (
        (argument(call, 0, "tensor"), argument(call, 1, "paddings")) if call is not None else (None, None)
    )
    function, spot = place.spot.function, place.spot
    assigned = assignments(function) if function is not None else {}
    if isinstance(paddings, ast.Name):
        paddings = assigned.get(paddings.id)
    if not isinstance(tensor, ast.Name) or not isinstance(paddings, (ast.List, ast.Tuple)) or call is None:
        return None
    for axis, row in enumerate(paddings.elts):
        for one in row.elts if isinstance(row, (ast.List, ast.Tuple)) else ():
            left = assigned.get(one.id) if isinstance(one, ast.Name) else one
            length = (
                assigned.get(left.right.id)
                if isinstance(left, ast.BinOp) and isinstance(left.right, ast.Name)
                else None
            )
            right = length or (left.right if isinstance(left, ast.BinOp) else None)
            if (
                not isinstance(left, ast.BinOp)
                or not isinstance(left.op, ast.Sub)
                or not _is_length(right, tensor.id, axis)
            ):
                continue
            limit = place.text(left.left)
            cause = (
                f"{tensor.id} is longer than {limit} here: {short(place.text(one), 40)} is {min(before, behind)}. Cut "
                "to that length, all have the same."
            )
            cut = f"{tensor.id}[{':, ' * axis}:{limit}]"
            if isinstance(function, ast.Lambda):
                pieces: dict[ast.expr, str] = {
                    part: cut for part in ast.walk(call) if isinstance(part, ast.Name) and part.id == tensor.id
                }
                return place.told(cause, pieces)
            first = min(
                getattr(part, "lineno", spot.line) for part in (place.statement, left, right) if part is not None
            )
            blanks = indent_of(spot.source.lines[first - 1])
            edit = Edit(spot.file, first, first - 1, (f"{blanks}{tensor.id} = {cut}",))
            return Explanation(RULE, spot.file, place.statement.lineno, cause, edit, "", "likely")
    return None


def _is_length(node: ast.expr | None, name: str, axis: int) -> bool:
    """Whether it is `tf.shape(x)[0]`, `x.shape[0]`, `len(x)` or `tf.size(x)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == axis:
        owner = node.value
        if isinstance(owner, ast.Call) and dotted(owner.func).rpartition(".")[2] == "shape" and owner.args:
            return dotted(owner.args[0]) == name
        return dotted(owner) == f"{name}.shape"
    is_call = isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("len", "size")
    return isinstance(node, ast.Call) and is_call and axis == 0 and bool(node.args) and dotted(node.args[0]) == name


def _ranks(place: Refused) -> Explanation | None:
    """`tf.pad(images, [[1, 1], [1, 1]])` of images with axes for the batch and the channels."""
    call = _only(place, "pad")
    tensor, paddings = (
        (argument(call, 0, "tensor"), argument(call, 1, "paddings")) if call is not None else (None, None)
    )
    shape = place.shape(tensor) if tensor is not None else None
    if tensor is None or shape is None or not isinstance(paddings, (ast.List, ast.Tuple)) or len(paddings.elts) != 2:
        return None
    rows = [place.text(one) for one in paddings.elts]
    if len(shape) not in (3, 4) or shape[-1] not in CHANNELS:
        return None
    cause = (
        f"{short(place.text(tensor), 30)} has {len(shape)} axes, {sizes_of(shape)}, and the paddings name 2. With "
        f"[0, 0] for the {'batch and the channels' if len(shape) == 4 else 'channels'} there is a pair for each."
    )
    new = ", ".join([*(["[0, 0]"] if len(shape) == 4 else []), *rows, "[0, 0]"])
    return place.told(cause, {paddings: f"[{new}]"})


def _divided(place: Refused) -> Explanation | None:
    """`tf.split(x, 3, axis=1)` of 10 columns."""
    call = _only(place, "split")
    if call is None:
        return None
    tensor, ways, axis = argument(call, 0, "value"), argument(call, 1, "num_or_size_splits"), argument(call, 2, "axis")
    shape = place.shape(tensor, 1) if tensor is not None else None
    parts = evaluation.computed(ways, place.spot) if ways is not None else None
    at = evaluation.computed(axis, place.spot) if axis is not None else 0
    if tensor is None or ways is None or not shape or type(parts) is not int or type(at) is not int or parts < 2:
        return None
    size, name = shape[at] if -len(shape) <= at < len(shape) else None, short(place.text(tensor), 30)
    if size is None or size < parts:
        return None
    cause = f"{name} has {size:,} places in axis {at % len(shape)}, and {parts} parts of one size do not make {size:,}."
    others = [one for one, count in enumerate(shape) if count is not None and count % parts == 0]
    if axis is None and len(others) == 1:
        cause += f" Axis {others[0]} has {shape[others[0]]}; without axis it is the first."
        return place.told(cause, {ways: f"{place.text(ways)}, axis={others[0]}"})
    more, rest = divmod(size, parts)
    sizes = [more + (one < rest) for one in range(parts)]
    if parts > 8:
        return None
    cause += f" The sizes {', '.join(map(str, sizes))} do."
    return place.told(cause, {ways: str(sizes)})


def _summed(place: Refused) -> Explanation | None:
    """`tf.split(x, [3, 6], axis=1)` of 10 columns."""
    call = _only(place, "split")
    if call is None:
        return None
    tensor, given, axis = argument(call, 0, "value"), argument(call, 1, "num_or_size_splits"), argument(call, 2, "axis")
    parts, shape = _numbers(given, place), place.shape(tensor) if tensor is not None else None
    at = evaluation.computed(axis, place.spot) if axis is not None else 0
    if (
        not isinstance(given, (ast.List, ast.Tuple))
        or not shape
        or parts is None
        or type(at) is not int
        or tensor is None
    ):
        return None
    size = shape[at] if -len(shape) <= at < len(shape) else None
    if size is None or len(given.elts) != len(parts):
        return None
    name = short(place.text(tensor), 30)
    cause = f"the sizes make {sum(parts):,}, and {name} has {size:,} places in axis {at % len(shape)}."
    if sum(parts[:-1]) >= size:
        return None
    cause += f" -1 for the last takes the rest, {size - sum(parts[:-1])}."
    return place.told(cause, {given.elts[-1]: "-1"})


def _drawn(place: Refused, low: int, high: int) -> Explanation | None:
    """`tf.random.uniform((), 0, h - size, tf.int32)` where both are equal: its end is left out."""
    call = _only(place, "uniform")
    end = argument(call, 2, "maxval") if call is not None else None
    function = place.spot.function
    if isinstance(end, ast.Name) and function is not None:
        end = assignments(function).get(end.id)
    if not isinstance(end, ast.BinOp) or not isinstance(end.op, ast.Sub):
        return None
    text = place.text(end)
    if low == high == 0:
        cause = (
            f"{text} is 0, and uniform leaves its end out: there is no number to draw. With + 1 it gives 0 here, and "
            "the last place elsewhere."
        )
        return place.told(cause, {end: f"{text} + 1"})
    cause = f"{text} is {high}: what is cropped is smaller than the crop."
    return place.told(cause, {}, "Resize or pad it first.") if high < low == 0 else None
