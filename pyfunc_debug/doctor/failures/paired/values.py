"""Values side by side: what the user's code gives, and what the same in TensorFlow's ops gives under a tape."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any


class CannotPairError(Exception):
    """Some of it has no op that gives the same, or does more than compute."""


@dataclass(frozen=True)
class Pair:
    """A value in both worlds.

    Attributes:
      old: What the user's own code makes.
      new: What its text in ops makes.
      live: Whether the new one has a gradient to what is differentiated.
    """

    old: Any
    new: Any
    live: bool = False


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor with a value, or a variable."""
    return type(value).__name__ in ("EagerTensor", "ResourceVariable") and hasattr(value, "numpy")


def plain(value: Any) -> Any:
    """A value with arrays in the place of its tensors."""
    if isinstance(value, (list, tuple)):
        return type(value)([plain(one) for one in value])
    return value.numpy() if is_tensor(value) else value


def is_float(value: Any) -> bool:
    """Whether a value is a number with a point, or holds such."""
    if isinstance(value, (list, tuple)):
        return any(map(is_float, value))
    return type(value) is float or "float" in str(getattr(getattr(value, "dtype", ""), "name", ""))


def equal(old: Any, new: Any) -> bool:
    """Whether both worlds hold the same: shapes and, within float32, values."""
    numpy = sys.modules["numpy"]
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(map(equal, old, new))
    try:
        before, after = (numpy.asarray(plain(one)) for one in (old, new))
    except Exception:
        return False
    if before.shape != after.shape or before.dtype.kind not in "biuf" or after.dtype.kind not in "biuf":
        return before.shape == after.shape and before.dtype.kind == after.dtype.kind and bool((before == after).all())
    if before.dtype.kind == "f" and after.dtype.kind != "f":
        return False
    scale = float(numpy.max(numpy.abs(before), initial=0.0))
    return bool(numpy.allclose(before, after, rtol=2e-3, atol=1e-5 + 1e-4 * min(scale, 1e6), equal_nan=True))


def live_parts(pairs: list[Pair]) -> list[Any]:
    """The tensors that have a gradient, of the new world."""
    found: list[Any] = []
    for one in pairs:
        if one.live:
            values = one.new if isinstance(one.new, (list, tuple)) else [one.new]
            found += [value for value in values if is_tensor(value) and is_float(value)]
    return found
