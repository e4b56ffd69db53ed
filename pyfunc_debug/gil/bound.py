"""The bound: the most that a call can have waited, from nothing but the calls' own times.

A thread executes one op after the other. So a call cannot have waited for longer than since the end of the call
before it on the same thread. That includes the executor's queue and idle time: it is "at most", and never called the
wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyfunc_debug.gil.samples import Answer, CallTimes, Samples


class BoundJoin:
    """At most, for each call: the gap to the call before it on its thread. The first call of a thread has no bound."""

    def __init__(self) -> None:
        self.matched = 0
        self.unmatched = 0
        self._ended: dict[int, int] = {}

    def feed(self, samples: Samples, calls: Iterable[CallTimes], *, final: bool = False) -> list[Answer]:
        """See `Join.feed`; needs no samples. Calls of a batch that overlap on one thread are nested: no bound."""
        rows: list[Answer] = []
        for call, thread, start_ns, end_ns in sorted(calls, key=lambda c: c[2]):
            ended = self._ended.get(thread)
            if ended is not None and ended <= start_ns:
                self.matched += 1
                rows.append((call, "bound", start_ns - ended, None, None, None, ()))
            else:
                self.unmatched += 1
            self._ended[thread] = max(end_ns, ended or 0)
        return rows
