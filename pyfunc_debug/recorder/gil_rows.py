"""Gives finished calls to a GIL probe, and makes rows of what it says. Lives on the writer thread."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pyfunc_debug.newest import Newest
from pyfunc_debug.recorder.ticket import Ticket

_PERIOD_NS = 250_000_000
_PATIENCE_NS = 4_000_000_000
"""An answer that a probe has not given by then it never gives (gil/native_join.py)."""
_ROW_BYTES = 40


class GilProbe(Protocol):
    """What measures, as the recorder knows it (`gil.Probe`)."""

    grade: Any

    def answers(
        self, calls: Iterable[tuple[int, int, int, int]], body: Callable[[int], str], *, final: bool = False
    ) -> list[Any]: ...

    def report(self) -> dict[str, Any]: ...


class GilRows:
    """Rows of the table `gil`, a few times a second."""

    def __init__(self, probe: GilProbe) -> None:
        self._probe = probe
        self._calls: list[tuple[int, int, int, int]] = []
        self._names: Newest[str] = Newest()  # also of calls not stored: others may have waited for them
        self._unstored: Newest[bool] = Newest()
        self._last_ns = time.monotonic_ns()
        self._added = 0  # stored calls that the probe was not asked about yet
        self._asked: deque[tuple[int, int]] = deque()  # when, and about how many that have no answer
        self._blame_bytes = 0  # of a row, on average

    @property
    def waiting_bytes(self) -> int:
        """About how much the rows of stored calls that may still come take in the file."""
        waiting = self._added + sum(count for _, count in self._asked)
        return waiting * (_ROW_BYTES + self._blame_bytes)

    def add(self, ticket: Ticket, body: str, stored: bool, held_back: bool) -> None:
        """A call finished. An eager numpy_function runs without an op, on a thread that has the GIL: no wait.

        Args:
          ticket: The call.
          body: The name of its body.
          stored: Whether it is stored.
          held_back: Whether it may be stored at the end.
        """
        if ticket.token.startswith("eager_"):
            return
        # Looking at the inputs is part of what a native probe sees as held; a profiler's wait must not include it.
        start = ticket.start_ns if self._probe.grade == "native" else ticket.entered_ns
        self._calls.append((ticket.call, ticket.ident, start, ticket.end_ns))
        self._names[ticket.call] = body
        if stored:
            self._added += 1
        elif not held_back:
            self._unstored[ticket.call] = True

    def forget(self, call: int) -> None:
        """A call could not be stored: it gets no row."""
        self._unstored[call] = True

    def due(self) -> bool:
        """Whether it is time to ask the probe again."""
        return time.monotonic_ns() - self._last_ns > _PERIOD_NS

    def rows(self, final: bool) -> list[tuple[Any, ...]]:
        """What is known by now, as rows."""
        self._last_ns = time.monotonic_ns()
        calls, self._calls = self._calls, []
        found = self._probe.answers(calls, self._name, final=final)
        rows = [
            (*rest, json.dumps(blame) if blame else "[]") for *rest, blame in found if rest[0] not in self._unstored
        ]
        self._asked.append((self._last_ns, self._added))
        self._added = 0
        if rows:
            self._blame_bytes = sum(len(row[-1]) for row in rows) // len(rows)
            self._answered(len(rows))
        while self._asked and self._last_ns - self._asked[0][0] > _PATIENCE_NS:
            self._asked.popleft()
        return rows

    def _answered(self, count: int) -> None:
        """Answers came: they are taken for those to the oldest questions."""
        while self._asked and count >= self._asked[0][1]:
            count -= self._asked.popleft()[1]
        if self._asked:
            asked_ns, waiting = self._asked[0]
            self._asked[0] = asked_ns, waiting - count

    def report(self) -> str:
        """What to say of the measurement in `meta`, as JSON."""
        return json.dumps(self._probe.report())

    def _name(self, call: int) -> str:
        return self._names.get(call, "a py_function")
