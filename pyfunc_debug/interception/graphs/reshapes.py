"""Reshapes that give a tensor the sizes it has in another order, as if they exchanged its axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.program.frames import user_frames
from pyfunc_debug.records import Frame

_AXES = 3
"""Axes of an image: fewer are mostly cut into other rows on purpose."""
_MOST_OPS = 20_000


def permuting(graph: Any) -> Iterator[tuple[Frame, list[int | None], list[int | None]]]:
    """The user's lines with such a reshape in a graph, and the shapes before and after it."""
    every = graph.get_operations()
    for op in every if len(every) <= _MOST_OPS else ():
        if op.type != "Reshape":
            continue
        before, after = (
            each.shape.as_list() if each.shape.rank is not None else [] for each in (op.inputs[0], op.outputs[0])
        )
        site = user_frames(op.traceback)[-1:] if is_permuted(before, after) else []
        if site:
            yield site[0], before, after


def is_permuted(before: Sequence[int | None], after: Sequence[int | None]) -> bool:
    """Whether a shape has the sizes of another one in another order, those of 1 left out."""
    one, other = ([size for size in shape if size != 1] for shape in (before, after))
    same = sorted(map(str, before)) == sorted(map(str, after))
    return len(before) >= _AXES and same and one != other and one.count(None) < 2
