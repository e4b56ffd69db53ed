"""Two shapes that have the same sizes in another order: channels first and channels last."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pyfunc_debug.doctor.failures.reading.shapes import Shape

_CHANNELS = (1, 3, 4)
_AXES = 3
"""How many axes of an element are looked at: those of an image, or of a sequence of rows."""


def axis_order(got: Sequence[Shape], wanted: Shape) -> tuple[int, ...] | None:
    """What `transpose` takes to give the shape that is wanted; None where that cannot be told, or is not the matter.

    Height and width that are exchanged are none: which of the two is meant is not known.

    Args:
      got: The shapes that there are, of one rank; the first size of four is that of a batch.
      wanted: The shape that is said of them.
    """
    batch = len(wanted) - _AXES
    if batch not in (0, 1) or any(len(one) != len(wanted) for one in got):
        return None
    if batch and any(one[0] != wanted[0] for one in got if None not in (wanted[0], one[0])):
        return None
    inner, said = [one[batch:] for one in got], wanted[batch:]
    found = [
        order for order in itertools.permutations(range(_AXES))
        if all(said[axis] in (None, one[place]) for one in inner for axis, place in enumerate(order))
    ]  # fmt: skip
    order = found[0] if len(found) == 1 and None not in said and len(set(said)) == _AXES else _moved(inner, said)
    if order not in found or order == tuple(range(_AXES)) or (order == (1, 0, 2) and said[-1] in _CHANNELS):
        return None
    return (*range(batch), *(place + batch for place in order))


def _moved(inner: Sequence[Shape], said: Shape) -> tuple[int, ...] | None:
    """The order that takes channels from the first place to the last, or from the last to the first."""
    for axis, place, order in ((-1, 0, (1, 2, 0)), (0, -1, (2, 0, 1))):
        here = said[axis] in _CHANNELS and all(one[place] == said[axis] and one.count(said[axis]) == 1 for one in inner)
        if here and said.count(said[axis]) == 1:
            return order
    return None
