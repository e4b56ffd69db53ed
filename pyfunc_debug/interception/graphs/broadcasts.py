"""Differences of a column and a row of numbers, which TensorFlow makes a square: labels [n] and predictions [n, 1]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyfunc_debug.program.frames import user_frames
from pyfunc_debug.records import Frame

_OPS = frozenset({"Sub", "SquaredDifference"})
_ON_PURPOSE = frozenset({"ExpandDims", "Reshape", "StridedSlice", "Transpose"})
"""Ops that give a tensor the axis by which all pairs are meant."""
_MOST_OPS = 20_000


def squared(graph: Any) -> Iterator[tuple[Frame, list[int | None], list[int | None]]]:
    """The user's lines with such a difference in a graph, and the shapes of both sides."""
    every = graph.get_operations()
    for op in every if len(every) <= _MOST_OPS else ():
        if op.type not in _OPS:
            continue
        one, other = (each.shape.as_list() if each.shape.rank is not None else [] for each in op.inputs)
        if sorted((len(one), len(other))) != [1, 2]:
            continue
        flat, column = (one, other) if len(one) == 1 else (other, one)
        if column[1] != 1 or column[0] != flat[0] or flat[0] == 1:
            continue
        if any(each.op.type in _ON_PURPOSE for each in op.inputs):
            continue
        site = user_frames(op.traceback)[-1:]
        if site:
            yield site[0], one, other
