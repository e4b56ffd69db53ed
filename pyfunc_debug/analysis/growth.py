"""What piled up while recording: how many there were first and last, and how many more with each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FEWEST = 4
"""Fewer points show no line."""
_STRAIGHT = 0.9


@dataclass(frozen=True)
class Grown:
    """How something grew, from one point of the recording to its end.

    Attributes:
      first, last: How many, or how many bytes, there were.
      first_calls, last_calls: How many calls had begun then.
      a_call: How many more with each call: the slope of a straight line, where the points lie on one; None otherwise.
      a_second: The same of time.
    """

    first: int
    last: int
    first_calls: int
    last_calls: int
    a_call: float | None
    a_second: float | None


def grown(meta: Mapping[str, Any], name: str, since: float = 0.0) -> Grown | None:
    """How something grew.

    Args:
      meta: Of the recording.
      name: "entries", "graphs", "tapes" or "resident_bytes".
      since: From which part of the points on: 0.5 leaves out the first half.

    Returns:
      The answer; None where it was not counted often enough.
    """
    known = meta.get("growth")
    if not isinstance(known, dict) or name not in known.get("columns", ()):
        return None
    every = known["points"]
    points = every[int(len(every) * since) :]
    if len(points) < _FEWEST:
        return None
    column = known["columns"].index(name)
    values, calls = [one[column] for one in points], [one[1] for one in points]
    seconds = [one[0] / 1e9 for one in points]
    return Grown(values[0], values[-1], calls[0], calls[-1], _slope(calls, values), _slope(seconds, values))


def _slope(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Of the straight line through the points (least squares); None where they do not lie on one that rises."""
    across, up = sum(xs) / len(xs), sum(ys) / len(ys)
    width = sum((x - across) ** 2 for x in xs)
    height = sum((y - up) ** 2 for y in ys)
    both = sum((x - across) * (y - up) for x, y in zip(xs, ys))
    if width <= 0 or height <= 0 or both <= 0 or both * both / (width * height) < _STRAIGHT:
        return None
    return both / width
