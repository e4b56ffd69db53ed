"""The digest of a value's elements in their order, by which two recorded values are known to be equal or not.

Two values of one dtype and shape with one digest have equal elements: numbers equal as numbers (0.0 is -0.0, and every
NaN is every other, whatever its bits), strings by their bytes. The digest proves nothing against someone who wants a
collision; by chance, two different values share one with a probability of about 2^-64 (values/_digest.h).

With the C extension a digest has 16 bytes; without it 20, from BLAKE2b: those of two lengths cannot be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

_digest: Callable[[Any, str], bytes] | None
try:
    from pyfunc_debug.values._statistics import digest as _digest
except ImportError:  # installed without a compiler
    _digest = None

LARGEST_BYTES = 64 << 20
"""Of a larger value no digest is made: to read it all would be felt. As in _statistics.c."""
MOST_STRINGS = 1 << 16
"""Likewise of more strings than these."""


def digest_of(array: np.ndarray[Any, Any]) -> bytes | None:
    """The digest of an array's elements in C order; its dtype and shape are not in it.

    Args:
      array: Numbers of any type that TensorFlow has, or strings.

    Returns:
      The digest; None for more than `LARGEST_BYTES` or `MOST_STRINGS`, and for Python objects that are not strings.
    """
    if array.dtype.hasobject or array.dtype.kind in "SU":
        text = _strings(array)
        return None if text is None else _of_bytes(text, "B")
    if array.nbytes > LARGEST_BYTES:
        return None
    kind = array.dtype.kind
    if kind == "c":
        array = np.ascontiguousarray(array).view(array.real.dtype)
    elif (kind == "f" and array.dtype.itemsize < 4) or kind == "V":  # float16, bfloat16, float8, int4: exact in float32
        array = array.astype(np.float32)
    array = np.ascontiguousarray(array)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    letter = "d" if array.dtype == np.float64 else "f" if array.dtype == np.float32 else "B"
    return _of_bytes(array, letter)


def _of_bytes(buffer: Any, kind: str) -> bytes:
    if _digest is not None:
        return _digest(buffer, kind)
    if kind != "B":
        buffer = np.where(np.isnan(buffer), np.array(np.nan, buffer.dtype), buffer + np.array(0, buffer.dtype))
    return hashlib.blake2b(buffer, digest_size=20).digest()


def _strings(array: np.ndarray[Any, Any]) -> bytes | None:
    """Strings and their lengths as bytes; None when they are too long, or are other objects."""
    if array.size > MOST_STRINGS:
        return None
    items = []
    room = LARGEST_BYTES
    for item in array.reshape(-1).tolist():
        if isinstance(item, str):
            item = item.encode("utf-8", "surrogatepass")
        if not isinstance(item, bytes):
            return None
        room -= len(item)
        if room < 0:
            return None
        items.append(item)
    lengths = np.fromiter(map(len, items), np.int64, len(items))
    return lengths.tobytes() + b"".join(items)
