"""Values of a generator that TensorFlow has no dtype for, as dates: they are converted, or left out."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np

from pyfunc_debug.doctor.failures.reading.symbols import is_ndarray

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_TEXTS = (str, bytes)
_LOOKED_AT = 10_000
_NONE = object()
_PARTS = (list, tuple, np.generic, numbers.Number)
_WIDE = ("int32", "int64", "float32", "float64")
"""Dtypes that the number of a day fits into."""


def advice(value: Any, dtype: str) -> str:
    """What to yield for objects that no dtype of TensorFlow's stands for; "" where it has one for them.

    Args:
      value: What the generator yielded.
      dtype: The dtype that is declared for it.
    """
    text = dtype == "string"
    kept = dtype if dtype in _WIDE else "int64"
    alone = not isinstance(value, (np.ndarray, list, tuple))
    found = next((one for one in _leaves(value) if not isinstance(one, (*_NUMBERS, *_TEXTS))), _NONE)
    if found is None:
        return "TensorFlow has no dtype for None: leave it out, or yield a value that stands for it."
    if not isinstance(found, datetime.date) or type(found).__name__ == "NaTType":
        told = found is not _NONE and is_ndarray(value) and not is_ndarray(found) and not isinstance(found, _PARTS)
        what = f"{type(found).__module__}.{type(found).__name__}".removeprefix("__main__.").removeprefix("builtins.")
        return f"TensorFlow has no dtype for {what}: yield numbers or text in its place, or leave it out." * told
    name = "Timestamp" if type(found).__name__ == "Timestamp" else f"datetime.{type(found).__name__}"
    made = "int(x.timestamp())" if isinstance(found, datetime.datetime) else "x.toordinal()"
    if isinstance(found, datetime.datetime) and kept == "float32":
        kept = "int64"  # seconds since 1970 have more digits than it keeps
    made = "x.isoformat()" if text else made
    each = made.replace("x.", "d.")
    return _said(name, made if alone else f"np.array([{each} for d in x], {'str' if text else f'np.{kept}'})",
                 dtype if text or alone or kept == dtype else f"{dtype}, {kept}")  # fmt: skip


def _said(what: str, new: str, dtypes: str) -> str:
    _, _, other = dtypes.partition(", ")
    more = f", with {other} declared" if other else ""
    return f"TensorFlow has no dtype for {what}: leave it out, or, where it is x, yield `{new}`{more}."


def _leaves(value: Any) -> Iterator[Any]:
    """The objects in an array or in lists."""
    if is_ndarray(value):
        yield from (value.ravel()[:_LOOKED_AT].tolist() if value.dtype == object else ())
    elif isinstance(value, (list, tuple)):
        for one in value[:_LOOKED_AT]:
            yield from _leaves(one)
    else:
        yield value
