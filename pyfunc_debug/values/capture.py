"""Taking hold of values while a call happens: cheap, and so that nothing the body does can change what was taken.

An array may be written to by the body, and numpy_function hands out the memory of the graph's tensors: for a summary
both are read in place, before and after the body; where elements are wanted they are copied. Of large tensors only the
reference is kept, and the writer reads them soon after: a body that writes into its input meanwhile shows in them. An
output may still be in the making (asynchronous execution): TensorFlow waits for it right after us, in the same place
(py_func.cc, ExtractTensorFromEagerTensor).
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfunc_debug.values.policy import Policy
from pyfunc_debug.values.summary import statistics, summarize, summarize_array

_NDARRAY = np.ndarray
_SHAPE, _SUMMARY, _FULL = int(Policy.SHAPE), int(Policy.SUMMARY), int(Policy.FULL)
_STRING_BYTES = 256
"""What an element of a string tensor is taken to weigh: to know it, one would have to copy it."""
_AT_ONCE_BYTES = 256 << 10
"""Up to this size a tensor that a body is given is read at once: it takes some 60 us, and its memory is not kept."""
_PLAIN = frozenset(
    ("bool", "complex64", "complex128", "float16", "float32", "float64", "int8", "int16", "int32", "int64",
     "uint8", "uint16", "uint32", "uint64")
)  # fmt: skip
OBJECTS = "not read: Python objects"
QUEUE_FULL = "dropped: the writer's queue is full"
TOO_LARGE = "dropped: larger than what may wait to be written (a quarter of the budget, at most 128 MB)"
"""Notes of a quarter of the budget, at most 128 MB."""
_NOT_IN_PLACE = ("string", "variant", "resource")
STATISTICS_BYTES = 512
"""What the statistics of a value weigh in the queue."""
_COPY_ALL_BYTES = 4 << 20
"""Up to this size an array is copied whole for a summary; above it, its statistics are taken at once from a view."""


class Held:
    """A value taken hold of.

    Attributes:
      thing: The tensor, the copied array, its `Summary`, or its `statistics`; None when only its type was wanted, or it
        was dropped.
      dtype: Its element type, where `thing` does not have it.
      shape: Its shape, likewise.
      note: Why the elements are missing, or empty.
      nbytes: Bytes that it takes of the queue's room: what `thing` keeps alive.
    """

    __slots__ = ("dtype", "nbytes", "note", "shape", "thing")

    def __init__(self, thing: Any, dtype: Any = None, shape: Any = None, note: str = "", nbytes: int = 0) -> None:
        self.thing = thing
        self.dtype = dtype
        self.shape = shape
        self.note = note
        self.nbytes = nbytes


_register_type: Callable[[Any, int], None] | None
hold_quickly: Callable[[Any, int, int], tuple[tuple[Held, ...], int] | None] | None
"""`hold` where all values are common ones; None where it is anything else."""
if TYPE_CHECKING:
    from pyfunc_debug.values._statistics import hold_quickly
    from pyfunc_debug.values._statistics import register_type as _register_type
else:
    try:
        from pyfunc_debug.values._statistics import Held, hold_quickly
        from pyfunc_debug.values._statistics import register_type as _register_type
    except ImportError:  # installed without a compiler
        hold_quickly = _register_type = None


def hold(values: Any, policy: int, room: int, largest: int = sys.maxsize) -> tuple[list[Held], int]:
    """Takes hold of the flat inputs or outputs of one call.

    Args:
      values: What TensorFlow passes: a list or tuple, or a single tensor or array.
      policy: What is wanted of them: a `Policy`, not NONE.
      room: Bytes that may still be kept alive; beyond them elements are dropped, and reported as dropped. Such a value
        is summarised at once, where it is.
      largest: What one value may take at all.

    Returns:
      The held values, and how many bytes they keep alive.
    """
    taken: list[Held] = []
    total = 0
    if values is None:
        return taken, 0
    for value in values if isinstance(values, (list, tuple)) else (values,):
        if isinstance(value, _NDARRAY):
            if value.dtype.hasobject and value.ndim == 0 and value.item() is None:
                continue  # a body without results: TensorFlow makes an array of its None
            held = _hold_array(value, policy, room - total, largest)
        else:
            held = _hold_tensor(value, policy, room - total, largest)
        total += held.nbytes
        taken.append(held)
    return taken, total


def _without_elements(value: Any, policy: int, dtype: Any, shape: Any, size: int, room: int, largest: int) -> Held:
    """What is taken of a value that has no room: its summary, while that has some; `full` gets a note why."""
    note = TOO_LARGE if size > largest else QUEUE_FULL
    if room < STATISTICS_BYTES or getattr(dtype, "name", "") in _NOT_IN_PLACE:
        return Held(None, dtype, shape, note)
    wanted = Policy(policy) if policy != _FULL else Policy.SUMMARY
    summary = summarize(Held(value, dtype), wanted)
    if policy == _FULL:
        summary.note = summary.note or note
    kept = 0 if summary.data is None else int(summary.data.nbytes)
    return Held(summary, dtype, shape, summary.note, STATISTICS_BYTES + kept)


def _hold_array(array: np.ndarray[Any, Any], policy: int, room: int, largest: int) -> Held:
    if array.dtype.hasobject and array.size and not isinstance(array.item(0), (bytes, str)):
        return Held(None, array.dtype, array.shape, OBJECTS)
    if policy == _SHAPE:
        if _register_type is not None and _is_common(array):
            _register_type(array, array.itemsize)
        return Held(None, array.dtype, array.shape)
    if policy == _SUMMARY and statistics is not None and room >= STATISTICS_BYTES:
        found = statistics(array)
        if found is not None:
            return Held(found, array.dtype, nbytes=STATISTICS_BYTES)
    size = array.nbytes
    if array.dtype.hasobject:
        return _hold_strings(array, policy, room, largest)
    if size > room:
        return _without_elements(array, policy, array.dtype, array.shape, size, room, largest)
    if policy != _FULL and size > _COPY_ALL_BYTES:
        return Held(summarize_array(array, Policy(policy)))
    return Held(array.copy(order="C"), nbytes=size)


def _is_common(array: np.ndarray[Any, Any]) -> bool:
    """Whether there is one element type for all like this one: texts and what was unpickled bring their own."""
    dtype = array.dtype
    return type(array) is _NDARRAY and dtype.isbuiltin == 1 and not dtype.hasobject and dtype is np.dtype(dtype.type)


def _hold_strings(array: np.ndarray[Any, Any], policy: int, room: int, largest: int) -> Held:
    """Strings: bytes objects cannot change, but the array can; and how much memory they take only they know."""
    if policy != _FULL:  # few elements are looked at
        summary = summarize_array(array, Policy(policy))
        size = _weight(summary.data) if summary.data is not None else 0
        if size > room:
            return _without_elements(array, _FULL, array.dtype, array.shape, size, room, largest)
        return Held(summary, nbytes=size)
    size = _weight(array)
    if size > room:
        return _without_elements(array, policy, array.dtype, array.shape, size, room, largest)
    return Held(array.copy(), nbytes=size)


def _weight(array: np.ndarray[Any, Any]) -> int:
    return int(array.nbytes) + sum(len(item) for item in array.flat if isinstance(item, (bytes, str)))


def _hold_tensor(value: Any, policy: int, room: int, largest: int) -> Held:
    shape = getattr(value, "shape", None)
    if shape is None or isinstance(value, np.generic):  # a NumPy scalar cannot change; a Python object has no shape
        return Held(value, nbytes=64)
    dtype = value.dtype
    if hasattr(value, "assign"):
        return Held(None, dtype, shape, "" if policy == _SHAPE else "not read: a variable, which may change meanwhile")
    if _register_type is not None and hasattr(value, "_shape_tuple"):
        _register_type(value, _element_bytes(dtype))
    if policy == _SHAPE:
        return Held(None, dtype, shape)
    size = 64 + _element_bytes(dtype) * math.prod(shape)
    if policy == _SUMMARY and statistics is not None and size <= _AT_ONCE_BYTES and room >= STATISTICS_BYTES:
        found = statistics(value)
        if found is not None:
            return Held(found, dtype, nbytes=STATISTICS_BYTES)
    if size > room:
        return _without_elements(value, policy, dtype, shape, size, room, largest)
    copied = _copy_tensor(value) if policy > _SUMMARY and size <= _COPY_ALL_BYTES else None
    return Held(value if copied is None else copied, dtype, nbytes=size)


def _copy_tensor(tensor: Any) -> Any:
    """A copy of a tensor's elements; None where it cannot be read at once, or NumPy has no such type."""
    if not _is_plain(tensor.dtype) or not hasattr(tensor, "_shape_tuple"):  # a ragged one, say
        return None
    try:
        return tensor.numpy()
    except Exception:  # it failed while it was made, say: the writer tells so
        return None


def is_plain(name: str) -> bool:
    """Whether NumPy and TensorFlow have an element type of this name, and mean the same."""
    return name in _PLAIN


@functools.lru_cache(maxsize=256)
def _is_plain(dtype: Any) -> bool:
    """Whether NumPy has the type under the same name; a qint16 is given as int16."""
    return getattr(dtype, "name", "") in _PLAIN


@functools.lru_cache(maxsize=256)
def _element_bytes(dtype: Any) -> int:
    name = getattr(dtype, "name", "")
    if name == "string":
        return _STRING_BYTES
    if name in ("variant", "resource"):
        return 0
    return int(getattr(dtype, "size", 0) or getattr(dtype, "itemsize", 1))
