"""Chooses the best grade that works here, and says which it is and why.

`open_probe` gives one probe whatever the grade. Its self-test runs in `start`; a native probe that then does not see
the program's calls steps down by itself.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.gil.blame import Span
from pyfunc_debug.gil.canary import Canary, held_shares
from pyfunc_debug.gil.join import Join, Row, as_rows, open_join
from pyfunc_debug.gil.native import AbsentError, NativeProbe
from pyfunc_debug.gil.native_join import NativeJoin
from pyfunc_debug.gil.opstart import OpStartProbe
from pyfunc_debug.gil.samples import Answer, CallTimes, Grade, Samples, Tick

Asked = Literal["auto", "native", "op-start", "bound"]

RESOLUTION_NS: dict[Grade, int] = {"native": 10_000, "op-start": 50_000, "bound": 50_000, "none": 0}
"""Numbers below it are shown as `< 10 us`, `< 50 us`."""

WORDS: dict[Grade, str] = {
    "native": "measured",
    "op-start": "measured from op start",
    "bound": "at most: executor queue + GIL",
    "none": "no GIL",
}
"""What the numbers of a grade are called where they are shown."""

_ENOUGH = 32


class Backend(Protocol):
    """What measures: one for each grade."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def drain(self) -> Samples: ...


class _Nothing:
    """Measures nothing: for the bound, which needs no samples, and where there is no GIL."""

    def __init__(self, grade: Grade) -> None:
        self._grade = grade

    def start(self) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Nothing to do."""

    def drain(self) -> Samples:
        """Empty samples."""
        return Samples(self._grade, time.monotonic_ns())


def has_gil() -> bool:
    """Whether this interpreter runs with a GIL now."""
    enabled: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)  # documented since 3.13
    return enabled()


class Probe:
    """Measures what calls do with the GIL, at the best grade that works.

    Attributes:
      grade: The grade; known after `start`.
      why: In one sentence for people, why it is this one.
    """

    def __init__(self, grade: Asked = "auto", *, canary: bool | None = None) -> None:
        self.grade: Grade = "none"
        self.why = "not started"
        self._asked = grade
        self._want_canary = canary
        self._backend: Backend = _Nothing("none")
        self._body: Callable[[int], str] = lambda call: "call"
        self._join: Join | None = None
        self._canary: Canary | None = None
        self._ticks: deque[Tick] = deque(maxlen=50_000)
        self._spans: deque[Span] = deque(maxlen=50_000)
        self._lost = 0
        self._running = False
        self._ladder()  # no such grade: said now
        self._lock = threading.Lock()  # `rows` and `stop` may come from different threads of ours

    def start(self) -> None:
        """Goes down the grades until one passes its self-test (native: about 3 ms). Never fails.

        Runs no TensorFlow op: that would fix the program's devices and thread pools before it can.
        """
        if self._running:
            return
        reasons: list[str] = []
        self._running = True
        if not has_gil():
            self._use("none", _Nothing("none"), "this Python is free-threaded: there is no GIL")
            return
        for grade, make in self._ladder():
            try:
                backend = make()
                backend.start()
            except AbsentError as error:
                reasons.append(f"no {grade}: {error}")
                continue
            tested = getattr(backend, "tested", "")
            self._use(grade, backend, "; ".join(filter(None, [tested, *reasons])) or WORDS[grade])
            break

    def stop(self) -> None:
        """Switches everything off; every patched slot and attribute has its original value again."""
        with self._lock:  # not while `answers` changes to another grade
            if not self._running:
                return
            self._running = False
            if self._canary is not None:
                self._canary.stop()
            self._backend.stop()

    def drain(self) -> Samples:
        """What was measured since the last drain; also after `stop`, once."""
        samples = self._backend.drain()
        self._lost += samples.lost
        if self._canary is not None:
            samples.ticks.extend(self._canary.drain())
        return samples

    def rows(
        self, calls: Iterable[CallTimes], body: Callable[[int], str] | None = None, *, final: bool = False
    ) -> list[Row]:
        """Drains, and joins with calls that finished since the last time.

        Call it a few times a second while recording, and once with `final` after `stop`.

        Args:
          calls: Call id, `threading.get_ident()` of the call's thread, start_ns and end_ns, of each finished call.
          body: Name of a call's body; the first one given stays.
          final: Whether no more calls come.

        Returns:
          What is known now; a call may come in a later batch than it was given in, or never: not measured.
        """
        return as_rows(self.answers(calls, body, final=final))

    def answers(
        self, calls: Iterable[CallTimes], body: Callable[[int], str] | None = None, *, final: bool = False
    ) -> list[Answer]:
        """The same as plain tuples, which is faster: for the recorder."""
        with self._lock:
            if self._join is None:
                self._body = body or self._body
                self._join = open_join(self.grade, self._body)
            batch = list(calls)
            samples = self.drain()
            if self._canary is not None:
                self._ticks.extend(samples.ticks)
                self._spans.extend(Span(start, end, thread, call) for call, thread, start, end in batch)
            rows = self._join.feed(samples, batch, final=final)
            blind = self.grade == "native" and self._join.unmatched >= _ENOUGH and not self._join.matched
            if blind and self._running and not final:
                self._step_down()
            return rows

    def report(self) -> dict[str, Any]:
        """Grade, reason, counts and costs, as JSON can hold them: for the recording's meta."""
        if isinstance(self._backend, OpStartProbe) and self._backend.yielded:
            self.why = f"stopped measuring: {self._backend.yielded}"
        reported: dict[str, Any] = {
            "grade": self.grade,
            "why": self.why,
            "words": WORDS[self.grade],
            "resolution_ns": RESOLUTION_NS[self.grade],
            "lost_rows": self._lost,
            "matched": self._join.matched if self._join else 0,
            "unmatched": self._join.unmatched if self._join else 0,
            "broken": getattr(self._join, "broken", 0),
            "waited_outside_ns": dict(getattr(self._join, "waited_ns", {})),
            "elsewhere": self._join.elsewhere.as_json() if isinstance(self._join, NativeJoin) else None,
            "canary": None,
            "held": self._held(),
        }
        contention = self._canary.contention() if self._canary else None
        if contention is not None:
            reported["canary"] = contention._asdict()
        return reported

    def _held(self) -> dict[str, tuple[float, int]]:
        """By body: the estimated share of its time that held the GIL, and the number of samples behind it."""
        bodies: dict[str, int] = {}
        spans = [s._replace(call=bodies.setdefault(self._body(s.call), len(bodies))) for s in self._spans]
        shares = held_shares(self._ticks, spans)
        return {name: shares[number] for name, number in bodies.items() if number in shares}

    def _ladder(self) -> list[tuple[Grade, Callable[[], Backend]]]:
        rungs: list[tuple[Grade, Callable[[], Backend]]] = [
            ("native", NativeProbe),
            ("op-start", OpStartProbe),
            ("bound", lambda: _Nothing("bound")),
        ]
        if self._asked == "auto":
            return rungs
        names = [name for name, _ in rungs]
        if self._asked not in names:
            raise BadOptionError(f"unknown GIL grade {self._asked!r}: use 'auto', {', '.join(map(repr, names))}")
        return rungs[names.index(self._asked) :]

    def _use(self, grade: Grade, backend: Backend, why: str) -> None:
        self.grade, self._backend, self.why = grade, backend, why
        wanted = grade in ("op-start", "bound") if self._want_canary is None else self._want_canary
        if wanted and grade != "none" and self._canary is None:
            self._canary = Canary()
            self._canary.start()

    def _step_down(self) -> None:
        """The native probe saw none of the program's calls: this TensorFlow enters Python in another way."""
        self._backend.stop()
        reason = f"no native: of the first {_ENOUGH} calls it saw none"
        self._asked = "op-start"
        self._running = False
        self._join = None
        self.start()
        self.why = f"{self.why}; {reason}" if self.why else reason


def open_probe(grade: Asked = "auto", *, canary: bool | None = None) -> Probe:
    """A probe of the GIL; nothing happens before its `start`.

    Args:
      grade: The best grade to try; what does not work here gives way to the next, and `probe.why` says so.
      canary: Whether to sample the contention of the whole process. By default without the native grade only.

    Raises:
      BadOptionError: No such grade.
    """
    return Probe(grade, canary=canary)
