"""Readings of both clocks over a recording: what a monotonic time was by the wall clock, also when that was set."""

from __future__ import annotations

import time

_MOST = 128
_PERIOD_NS = 10_000_000_000

Anchor = tuple[int, int, int]
"""Monotonic and wall clock at one moment, and how far apart the two readings may be, all in ns."""


def anchor() -> Anchor:
    """A reading, the best of three: the system may turn to another thread between the two clocks."""
    readings = []
    for _ in range(3):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((before, wall, after - before))
    return min(readings, key=lambda one: one[2])


class Anchors:
    """Readings over the recording: at most 128, then every second one goes and they are taken half as often.

    Attributes:
      taken: Those so far, in order.
    """

    def __init__(self) -> None:
        self.taken = [anchor()]
        self._period_ns = _PERIOD_NS

    def due(self) -> bool:
        """Whether it is time to take one."""
        return time.monotonic_ns() - self.taken[-1][0] >= self._period_ns

    def take(self) -> list[Anchor]:
        """Takes one now, and gives all of them."""
        if len(self.taken) >= _MOST:
            self.taken = self.taken[::2]
            self._period_ns *= 2
        self.taken.append(anchor())
        return self.taken
