"""Which bodies became slower or faster between two recordings, with the spread of their calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.stopped import HELD_SQL

_ENOUGH = 5
"""Fewer calls on a side have no spread to speak of."""


class Speed(NamedTuple):
    """A body's times in both recordings: calls, and quartiles in ms (25, 50, 75 %)."""

    body: str
    calls: tuple[int, int]
    left: tuple[float, float, float]
    right: tuple[float, float, float]

    @property
    def verdict(self) -> str:
        """Only where the middle halves of the calls do not overlap."""
        if min(self.calls) < _ENOUGH:
            return "too few calls"
        if self.right[0] > self.left[2]:
            return f"{self.right[1] / self.left[1]:.2g}x slower" if self.left[1] else "slower"
        if self.right[2] < self.left[0]:
            return f"{self.left[1] / self.right[1]:.2g}x faster" if self.right[1] else "faster"
        return ""

    def __str__(self) -> str:
        sides = [f"{middle:.3g} ms ({low:.3g} to {high:.3g})" for low, middle, high in (self.left, self.right)]
        return f"{self.body}: {sides[0]} -> {sides[1]}  {self.verdict}".rstrip()


def speeds(left: Reader, right: Reader) -> list[Speed]:
    """Bodies that both recordings have calls of, those that changed most first; time at breakpoints is taken off."""
    one, other = _times(left), _times(right)
    found = [
        Speed(body, (len(times), len(other[body])), _quartiles(times), _quartiles(other[body]))
        for body, times in one.items() if body in other
    ]  # fmt: skip
    return sorted(found, key=lambda speed: (not speed.verdict[:1].isdigit(), -abs(speed.right[1] - speed.left[1])))


def _times(reader: Reader) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    query = (
        "SELECT n.body, c.kind, c.end_ns - c.start_ns - coalesce(held.ns, 0) FROM call c JOIN node n ON n.id = c.node "
        f"LEFT JOIN {HELD_SQL} held ON held.call = c.id WHERE c.end_ns IS NOT NULL AND n.origin = 'user'"
    )
    for body, kind, ns in reader.rows(query):
        found.setdefault(f"∇ {body}" if kind == "gradient" else body, []).append(ns / 1e6)
    return found


def _quartiles(times: list[float]) -> tuple[float, float, float]:
    low, middle, high = np.percentile(times, (25, 50, 75))
    return float(low), float(middle), float(high)
