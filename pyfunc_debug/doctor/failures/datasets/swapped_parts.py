"""A part of an element that is declared a number, and came with the very shape of another part: one of the two."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.datasets import signature_parts
from pyfunc_debug.doctor.failures.reading.situation import Situation

_MOST = 2
"""Parts that are named."""


def alike(situation: Situation) -> tuple[str, str] | None:
    """The part that failed, and the others that have its shape, by their keys or places; None without such others.

    Args:
      situation: The failure, in which an element's shape did not fit its signature.
    """
    found = signature_parts.compared(situation)
    if found is None:
        return None
    parts, named, failed = list(zip(found.arrays, found.shapes)), list(_names(found.types)), found.failed
    if len(failed) != 1 or len(named) != len(parts):
        return None
    array, wanted = parts[failed[0]]
    if wanted.rank != 0 or math.prod(array.shape) <= 1:
        return None
    others = [
        named[place] for place, (one, shape) in enumerate(parts)
        if place != failed[0] and one.shape == array.shape and shape.rank is not None
    ]  # fmt: skip
    return (named[failed[0]], _listed(others)) if others else None


def _listed(others: list[str]) -> str:
    """`'ids' has`, `'ids' and 'mask' have`."""
    return f"{' and '.join(others[:_MOST])} {'has' if len(others) == 1 else 'have'}"


def _names(types: Any, key: str = "", path: tuple[int, ...] = ()) -> Iterator[str]:
    """What to call each part of an element, in TensorFlow's order."""
    if isinstance(types, dict):
        for one in sorted(types):
            yield from _names(types[one], repr(one))
    elif isinstance(types, tuple):
        for place, one in enumerate(types):
            yield from _names(one, key, (*path, place))
    else:
        yield (key or "element") + "".join(f"[{place}]" for place in path)
