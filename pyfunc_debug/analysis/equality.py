"""Whether two recorded values are equal, close or different, and what that rests on.

Equal means: of one dtype and shape, and each element equal as a number (0.0 is -0.0, NaN is NaN) or as a string. It is
said only where whole values or digests of whole values prove it. Without elements, different is said where statistics
prove that some element is apart beyond tolerance, and where digests differ although the statistics do not: the same
numbers in another order, say. Close is then what statistics show, and the note says that the order was not compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pyfunc_debug.errors import NotKeptError
from pyfunc_debug.records import Value

Status = Literal["equal", "close", "different", "missing", "unknown"]
Array = np.ndarray[Any, Any]
NOT_KNOWN = "not equal by digest; how far apart is not known without the elements"
_ROUNDING = 1e-15
"""Means of the same numbers in another order differ by about this much, times the root of their count."""


@dataclass(frozen=True)
class Tolerance:
    """Two numbers are close when they differ by at most `absolute + relative * abs(right)`."""

    relative: float = 1e-5
    absolute: float = 1e-8


@dataclass(frozen=True)
class ValueDifference:
    """One input or output of two calls.

    `largest` is the largest absolute difference of two elements, None when elements were not kept; `note` says on what
    the status rests when it is not on all elements.
    """

    role: str
    path: str
    status: Status
    left: str | None
    right: str | None
    largest: float | None = None
    note: str = ""


def compare_values(role: str, left: Value, right: Value, tolerance: Tolerance) -> ValueDifference:
    """Compares two values: by digest, by elements where both were kept, else by what their summaries prove.

    Args:
      role: "input", "output" or "gradient": goes into the result.
      left: The one value.
      right: The other.
      tolerance: How far numbers may be apart and still be close.
    """

    def result(status: Status, largest: float | None = None, note: str = "") -> ValueDifference:
        return ValueDifference(role, left.path, status, left.text, right.text, largest, note)

    if left.dtype != right.dtype:
        return result("different", note=f"{left.dtype} and {right.dtype}")
    if left.shape != right.shape:
        return result("different", note=f"shapes {left.shape} and {right.shape}")
    if same_digest(left, right):
        return result("equal", 0.0 if left.kept == right.kept == "full" and left.nan is not None else None)
    if left.kept and left.kept == right.kept:
        try:
            status, largest, note = compare_elements(left.array(), right.array(), tolerance)
        except NotKeptError:  # the budget left no room for the contents
            return result(*_summaries(left, right, tolerance))
        if left.kept == "full":
            return result(status, largest, note)
        if status != "equal":
            return result(status, largest, f"{note} of a sample".strip() if note else "by a sample of the elements")
    return result(*_summaries(left, right, tolerance))


def same_digest(left: Value, right: Value) -> bool | None:
    """Whether two values of one dtype and shape have equal elements; None where a digest is missing."""
    if left.digest is None or right.digest is None or len(left.digest) != len(right.digest):
        return None
    return left.digest == right.digest


def compare_elements(left: Array, right: Array, tolerance: Tolerance) -> tuple[Status, float | None, str]:
    """Compares two arrays of one dtype and shape: status, largest difference of two elements, and what to say of it."""
    if left.dtype.kind not in "biufcV":
        same = bool((left == right).all())
        return ("equal" if same else "different"), None, ""
    if left.dtype.kind == "V":  # bfloat16 and its like
        left, right = left.astype(np.float32), right.astype(np.float32)
    kinds = np.complex128 if left.dtype.kind == "c" else np.float64
    first, second = left.astype(kinds), right.astype(kinds)
    same = (left == right) | _both_nan(first, second)
    if bool(same.all()):
        return "equal", 0.0, ""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(first - second)
        bound = tolerance.absolute + tolerance.relative * np.abs(second)
        near = same | (np.isfinite(apart) & np.isfinite(bound) & (apart <= bound))
    finite = apart[~same & np.isfinite(apart)]
    largest = float(finite.max()) if finite.size else None
    wrong = int((~near).sum())
    if not wrong:
        return "close", largest, ""
    return "different", largest, f"{wrong:,} of {left.size:,} elements beyond tolerance"


def _both_nan(left: Array, right: Array) -> Array:
    """Where both are NaN; of complex numbers each part counts: nan+1j is not nan+2j."""
    if left.dtype.kind != "c":
        both: Array = np.isnan(left) & np.isnan(right)
        return both

    def same(one: Array, other: Array) -> Array:
        equal: Array = (one == other) | (np.isnan(one) & np.isnan(other))
        return equal

    return same(left.real, right.real) & same(left.imag, right.imag)


# -- summaries --------------------------------------------------------------------------------------------------------


def _summaries(left: Value, right: Value, tolerance: Tolerance) -> tuple[Status, float | None, str]:
    unequal = same_digest(left, right) is False
    if left.dtype == "string":
        if unequal or (not left.note and not right.note and left.text != right.text):
            return "different", None, ""
        return "unknown", None, "only the first strings were compared" if left.text else "only shapes were kept"
    if left.nan is None or right.nan is None:
        return ("different" if unequal else "unknown"), None, "" if unequal else "only shapes were kept"
    if _proves_apart(left, right, tolerance):
        return "different", None, "by summary"
    moved = _has_moved(left, right)
    if _is_constant(left) and _is_constant(right):  # then their statistics are the elements
        return ("close" if moved or unequal else "equal"), None, ""
    if moved:
        return "close", None, "by summary (order not compared)"
    if unequal and left.sampled is not None:
        return "different", None, NOT_KNOWN
    if unequal:
        return "different", None, "the same summary, but other elements or another order"
    return "unknown", None, "equal by summary (order not compared)"


def _proves_apart(left: Value, right: Value, tolerance: Tolerance) -> bool:
    """Whether no two arrays with these statistics can be close element by element."""
    if left.nan != right.nan or left.inf != right.inf:
        return True
    for name in ("min", "max"):
        one, other = getattr(left, name), getattr(right, name)
        if one is None or other is None:
            continue
        if abs(one - other) > tolerance.absolute + tolerance.relative * abs(other):
            return True
    # The mean of |right|, and the spread of what may be between the two, are at most the root of the mean square.
    for name in ("mean", "std"):
        one, other = getattr(left, name), getattr(right, name)
        if one is not None and other is not None:
            size = _size(right)
            if abs(one - other) > tolerance.absolute + tolerance.relative * size + _rounding(left, right):
                return True
    return False


def _has_moved(left: Value, right: Value) -> bool:
    """Whether the statistics differ by more than adding in another order explains."""
    if left.min != right.min or left.max != right.max or left.histogram != right.histogram:
        return True
    slack = _rounding(left, right)
    pairs = ((left.mean, right.mean), (left.std, right.std))
    return any(one is not None and other is not None and abs(one - other) > slack for one, other in pairs)


def _rounding(left: Value, right: Value) -> float:
    count = math.prod(left.shape or ())
    return _ROUNDING * max(1.0, math.sqrt(count)) * max(_size(left), _size(right))


def _size(value: Value) -> float:
    """The root of the mean square of the finite elements."""
    return math.hypot(value.mean or 0.0, value.std or 0.0)


def _is_constant(value: Value) -> bool:
    """Whether all elements are one finite number that the statistics hold exactly."""
    return (
        value.min is not None
        and value.min == value.max
        and not value.nan
        and not value.inf
        and value.sampled is None
        and not value.dtype.startswith("complex")
        and abs(value.min) < 2**53
    )
