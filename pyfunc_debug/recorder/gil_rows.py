"""Gives finished calls to a GIL probe, and makes rows of what it says. Lives on the writer thread."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pyfunc_debug.newest import Newest
from pyfunc_debug.recorder.ticket import Ticket

_PERIOD_NS = 250_000_000


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

    def add(self, ticket: Ticket, body: str, stored: bool) -> None:
        """A call finished. An eager numpy_function runs without an op, on a thread that has the GIL: no wait."""
        if ticket.token.startswith("eager_"):
            return
        # Looking at the inputs is part of what a native probe sees as held; a profiler's wait must not include it.
        start = ticket.start_ns if self._probe.grade == "native" else ticket.entered_ns
        self._calls.append((ticket.call, ticket.ident, start, ticket.end_ns))
        self._names[ticket.call] = body
        if not stored:
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
        return [
            (*rest, json.dumps(blame) if blame else "[]") for *rest, blame in found if rest[0] not in self._unstored
        ]

    def report(self) -> str:
        """What to say of the measurement in `meta`, as JSON."""
        return json.dumps(self._probe.report())

    def _name(self, call: int) -> str:
        return self._names.get(call, "a py_function")
