"""What piles up while recording: counted about once a second, for the doctor to say how much a call adds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pyfunc_debug.program.memory import resident_bytes

_MOST = 120
"""Points that are kept; of more, every second one goes, and from then on they are twice as far apart."""
_APART_NS = 200_000_000


class Growth:
    """Points in time, each with what there was then.

    Args:
      counts: Asks how many there are of what may pile up, by name; the same names each time.
    """

    def __init__(self, counts: Callable[[], Mapping[str, int]]) -> None:
        self._counts = counts
        self._apart_ns = _APART_NS
        self._names: list[str] = []
        self._points: list[list[int]] = []

    def look(self, calls: int, queued_bytes: int, last: bool = False) -> bool:
        """Takes a point, unless the one before is near.

        Args:
          calls: How many calls began so far.
          queued_bytes: What the recorder holds in memory.
          last: Whether no other one follows: then it is taken.

        Returns:
          Whether there is a new one.
        """
        now = time.monotonic_ns()
        if not last and self._points and now - self._points[-1][0] < self._apart_ns:
            return False
        counts = self._counts()
        self._names = [*counts]
        self._points.append([now, calls, max(0, resident_bytes() - queued_bytes), *counts.values()])
        if len(self._points) > _MOST:
            self._points = self._points[::2]
            self._apart_ns *= 2
        return True

    def known(self) -> dict[str, Any]:
        """For the recording's `meta`: names of the columns, and the points."""
        return {"columns": ["ns", "calls", "resident_bytes", *self._names], "points": self._points}
