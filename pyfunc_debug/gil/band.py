"""How much of the GIL something held over time: a fixed number of columns, which double in width as time goes on."""

from __future__ import annotations

from typing import Any

import numpy as np

_Array = np.ndarray[Any, Any]

_COLUMNS = 512
_FIRST_WIDTH_NS = 1_000_000


class Band:
    """Sums of intervals that do not overlap and come in order, by column of time."""

    def __init__(self) -> None:
        self._start_ns = 0
        self._width_ns = _FIRST_WIDTH_NS
        self._sums: _Array = np.zeros(_COLUMNS)
        self._used = 0

    def add(self, since: _Array, to: _Array) -> None:
        """Adds intervals, in ns of `time.monotonic_ns()`."""
        if not len(since):
            return
        if not self._used:
            self._start_ns = int(since[0])
        low, high = since - self._start_ns, to - self._start_ns
        while high[-1] >= self._width_ns * _COLUMNS:
            self._sums = np.concatenate([self._sums.reshape(-1, 2).sum(1), np.zeros(_COLUMNS // 2)])
            self._used = -(-self._used // 2)
            self._width_ns *= 2
        first, last = int(low[0]) // self._width_ns, int(high[-1]) // self._width_ns + 1
        # What was held up to a time grows only inside the intervals.
        total = np.concatenate([[0], np.cumsum(high - low)])
        edges = np.arange(first, last + 1) * self._width_ns
        until = np.interp(edges, np.stack([low, high], 1).reshape(-1), np.repeat(total, 2)[1:-1])
        self._sums[first:last] += np.diff(until)
        self._used = max(self._used, last)

    def as_json(self) -> dict[str, Any] | None:
        """When it begins, how wide a column is, and the time in each in µs; None where there is nothing."""
        if not self._used:
            return None
        return {
            "start_ns": self._start_ns,
            "width_ns": self._width_ns,
            "us": np.rint(self._sums[: self._used] / 1000).astype(int).tolist(),
        }
