"""Bodies that are given the `tf.shape` of a tensor, and make what has that shape: noise, a mask, dropout."""

from __future__ import annotations

import ast
import re
import sys
from typing import Any

from pyfunc_debug.doctor.failures.reading.shapes import Shape
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, shape_of

_OF_SIZES = ("zeros", "ones", "full", "empty", "rand", "randn", "random_sample", "standard_normal")
"""Functions of NumPy's whose first argument is the shape of what they make."""
_KNOWN = re.compile(r"(?:.*/)?Shape(?:_\d+)?")
"""Name of the constant that `tf.shape` is of a tensor whose sizes are known."""


def is_given(op: Any) -> bool:
    """Whether the only array that the op of a node is given holds sizes of a tensor."""
    arrays = _arrays(op)
    return len(arrays) == 1 and _is_shape(arrays[0])


def kept(op: Any, function: Function | None) -> Shape | None:
    """The shape of the tensor that was asked for its own, if the body makes an array of such sizes; of any batch."""
    tensor = _arrays(op)[0]
    if function is None or not _makes_one(function):
        return None
    shape = shape_of(tensor.op.inputs[0]) if tensor.op.type == "Shape" else None
    if tensor.op.type == "Const":
        value = sys.modules["tensorflow"].get_static_value(tensor)
        shape = tuple(map(int, value)) if value is not None else None
    return (None, *shape[1:]) if shape is not None and len(shape) > 1 else shape


def _arrays(op: Any) -> list[Any]:
    return [one for one in op.inputs if shape_of(one) != ()] if op is not None else []


def _is_shape(tensor: Any) -> bool:
    """Whether a tensor is the `tf.shape` of another, or made of parts of it."""
    op = tensor.op
    if op.type in ("StridedSlice", "ConcatV2", "Pack", "Cast"):
        return any(map(_is_shape, op.inputs))
    return bool(op.type == "Shape" or (op.type == "Const" and _KNOWN.fullmatch(op.name)))


def _makes_one(function: Function) -> bool:
    """Whether a body makes an array of the sizes that a parameter holds, `np.random.normal(size=s)`."""
    given = [
        one for call in calls(function) for one in (
            *(word.value for word in call.keywords if word.arg in ("size", "shape")),
            *(call.args[:1] if dotted(call.func).rpartition(".")[2] in _OF_SIZES else ()),
        )
    ]  # fmt: skip
    known = set(parameters(function))
    return any(
        known & set(names(one)) and not any(isinstance(part, ast.Subscript) for part in ast.walk(one)) for one in given
    )
