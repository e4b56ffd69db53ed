"""How far what TensorFlow made of a body's array is from what the body returned."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

_ELEMENTS = 4096
"""How many evenly spaced elements are compared."""
_ROUNDING = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
"""How far rounding can move a number, as a share of it."""


@dataclass(frozen=True, slots=True)
class Cast:
    """A silent conversion of one value.

    Attributes:
      position: Which output.
      source, target: dtypes.
      call: The call in which it was worst.
      compared: How many elements were compared, in all sampled calls.
      changed: How many of them differ from what the body returned by more than rounding explains.
      error: The largest difference.
      own, made: The body's number and the tensor's, where it is largest.
      spread: The standard deviation of the body's numbers in that call; None for a single one.
    """

    position: int
    source: str
    target: str
    call: int
    compared: int
    changed: int
    error: float
    own: str
    made: str
    spread: float | None

    def worse(self, other: Cast) -> Cast:
        """The one with the larger error, with the counts of both."""
        one = other if not other.error <= self.error else self
        return Cast(**{**asdict(one), "compared": self.compared + other.compared,
                       "changed": self.changed + other.changed})  # fmt: skip


def cast(position: int, own: np.ndarray[Any, Any], tensor: Any, call: int) -> Cast | None:
    """Compares; None where there is nothing to compare (no numbers, no elements, other shapes).

    Args:
      position: Which output.
      own: What the body returned.
      tensor: What TensorFlow made of it.
      call: The call's number.
    """
    made = np.asarray(tensor)
    if own.shape != made.shape or not own.size or own.dtype.kind not in "iuf" or made.dtype.kind in "bcO":
        return None  # True is 1, and what is not 0 is True
    step = max(1, own.size // _ELEMENTS)
    before, after = (one.reshape(-1)[::step] if one.flags.c_contiguous else one.flat[::step] for one in (own, made))
    whole = before.dtype.kind in "biu" and after.dtype.kind in "biu"
    with np.errstate(all="ignore"):
        wide, new = before.astype(np.float64), after.astype(np.float64)
        same = before == after if whole else (wide == new) | np.isnan(wide)
        error = np.where(same, 0.0, np.abs(wide - new))
        allowed = np.abs(wide) * (0.0 if whole else _ROUNDING.get(made.dtype.name, 0.0))
        changed = ~same & ~(error <= allowed)
        worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        finite = wide[np.isfinite(wide)]
    return Cast(
        position, own.dtype.name, made.dtype.name, call, len(before), int(np.count_nonzero(changed)),
        float(error[worst]), str(before[worst]), str(after[worst]),
        float(finite.std()) if finite.size > 1 else None,
    )  # fmt: skip
