"""An image without an axis for its channels, of a body, where the line above takes one: concat, tile, pad, slices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each, shape_at
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of

_JOINED = re.compile(r"Expected concatenating dimensions in the range \[-2, 2\), but got 2")
_READ = re.compile(r"Index out of range using input dim 2; input has only 2 dims")
_SAID = (
    (re.compile(r"Expected multiples argument to be a vector of length 2 but got length 3"), ("tile",)),
    (re.compile(r"The first dimension of paddings must be the rank of inputs ?\[3,2\] \[\d+,\d+\]"), ("pad",)),
    (re.compile(r"Tried to expand dim index 3 for tensor with 2 dimensions"), ("repeat",)),
    (re.compile(r"Expected begin and size arguments to be 1-D tensors of size 2, but got shapes \[3\]"), ("slice",)),
    (re.compile(r"Incompatible shapes: \[2\] vs\. \[3\]"), ("random_crop", "stateless_random_crop")),
)
"""What is said of two axes for three, and the functions of TensorFlow that it is said of, by their first argument."""
_RANK = 2
_AXIS = "[..., None]"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line takes three axes, and the recorded result of a body has two."""
    message = situation.message
    if _JOINED.search(message):
        return each(situation, _joined)
    if _READ.search(message):
        return each(situation, _read)
    for said, functions in _SAID:
        if said.search(message):
            found = each(situation, _given, functions)
            if found is not None:
                return found
    return None


def _joined(place: Refused) -> Explanation | None:
    """`tf.concat([image, image, image], axis=2)` of gray images."""
    calls = place.calls_of("concat")
    values = argument(calls[0], 0, "values") if len(calls) == 1 else None
    parts = list(_parts(values))
    if not parts or any(len(shape_at(one, place.spot) or ()) != _RANK for one in parts):
        return None
    return _told(place, parts, "joins them along axis 2")


def _parts(values: ast.expr | None) -> Iterator[ast.expr]:
    """The tensors of `[image, image]`, and of `[image] * 3`."""
    if isinstance(values, ast.BinOp) and isinstance(values.op, ast.Mult):
        values = values.left if isinstance(values.left, (ast.List, ast.Tuple)) else values.right
    if isinstance(values, (ast.List, ast.Tuple)):
        yield from values.elts


def _given(place: Refused, functions: tuple[str, ...]) -> Explanation | None:
    """`tf.tile(image, [1, 1, 3])` of a gray image, and the like."""
    calls = [one for one in place.calls_of(*functions) if one.args]
    tensor = calls[0].args[0] if len(calls) == 1 else None
    if tensor is None or len(shape_at(tensor, place.spot) or ()) != _RANK:
        return None
    pieces: dict[ast.expr, str] = {}
    size = argument(calls[0], 1, "size")
    if "random_crop" in functions and isinstance(size, (ast.List, ast.Tuple)) and len(size.elts) == _RANK + 1:
        last = size.elts[-1]
        if evaluation.computed(last, place.spot) != 1:
            pieces[last] = "1"
    return _told(place, [tensor], "takes three axes", pieces)


def _read(place: Refused) -> Explanation | None:
    """`image[:, :, 0]` of a gray image: it is that channel."""
    found = [
        one for one in ast.walk(place.statement)
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Tuple) and len(one.slice.elts) == _RANK + 1
        and len(shape_at(one.value, place.spot) or ()) == _RANK
    ]  # fmt: skip
    if len(found) != 1 or not isinstance(found[0].slice, ast.Tuple):
        return None
    image, index = found[0].value, found[0].slice.elts
    name, shape = short(place.text(image), 30), sizes_of(shape_at(image, place.spot) or ())
    rest = all(isinstance(one, ast.Slice) and one.lower is one.upper is one.step is None for one in index[:_RANK])
    cause = f"{name} has two axes, {shape}, and none for channels"
    if rest and isinstance(index[-1], ast.Constant):
        return place.told(f"{cause}: it is one channel already.", {found[0]: place.text(image)})
    return place.told(
        f"{cause}, and {short(place.text(found[0]), 40)} reads three. None adds one of size 1.",
        {image: f"{place.spot.source.atom(image)}{_AXIS}"},
    )


def _told(
    place: Refused, tensors: list[ast.expr], takes: str, more: dict[ast.expr, str] | None = None
) -> Explanation | None:
    names = list(dict.fromkeys(short(place.text(one), 30) for one in tensors))
    shape = sizes_of(shape_at(tensors[0], place.spot) or ())
    each_of = " each" if len(names) > 1 else ""
    op = next(dotted(one.func) for one in ast.walk(place.statement) if isinstance(one, ast.Call)
              and any(tensor in ast.walk(one) for tensor in tensors))  # fmt: skip
    cause = (
        f"{' and '.join(names)} {'have' if each_of else 'has'} two axes{each_of}, {shape}, and none for channels; {op} "
        f"{takes}. `{_AXIS[1:-1]}` adds one of size 1."
    )
    pieces = {one: f"{place.spot.source.atom(one)}{_AXIS}" for one in tensors}
    return place.told(cause, {**pieces, **(more or {})})
