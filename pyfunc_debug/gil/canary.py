"""A thread that asks for the GIL at random moments, and notes how long it took: contention of the process as a whole.

It sleeps 5 ms on average, jittered so that no periodic program can hide from it. Its cost is measured and reported.
The same wake-ups, with where the other threads stood, estimate the share of a body's time that holds the GIL.
"""

from __future__ import annotations

import dis
import random
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from pyfunc_debug.gil.blame import Span
from pyfunc_debug.gil.samples import Tick
from pyfunc_debug.program.garbage import no_search, other_frames
from pyfunc_debug.program.threads import daemon_thread

PERIOD_S = 0.005
LATE_NS = 400_000
"""A wake-up later than this found the GIL taken; less is the timer and the scheduler."""
FEWEST = 30
"""Samples below which no share is reported."""

# Where the interpreter looks whether it should give the GIL away (Python/ceval.c).
_BREAKS = {dis.opmap[name] for name in ("RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "SEND") if name in dis.opmap}


class Contention(NamedTuple):
    """The canary's answer: of `samples` moments, in what share the GIL was taken; and what asking cost."""

    share: float
    samples: int
    cost_ns: int


class Canary:
    """Wakes up every 5 ms or so. Ticks are bounded: the oldest go."""

    def __init__(self, period_s: float = PERIOD_S, keep: int = 50_000) -> None:
        self.period_s = period_s
        self.cost_ns = 0
        """CPU time of its thread so far."""
        self._asked = self._late = 0
        self._ticks: deque[Tick] = deque(maxlen=keep)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread."""
        self._stop.clear()
        self._thread = daemon_thread(self._work, "pyfunc_debug canary")
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def drain(self) -> list[Tick]:
        """Ticks since the last drain."""
        ticks = []
        while self._ticks:
            ticks.append(self._ticks.popleft())
        return ticks

    def contention(self) -> Contention | None:
        """How often the GIL was taken; None with fewer than 30 samples."""
        if self._asked < FEWEST:
            return None
        return Contention(self._late / self._asked, self._asked, self.cost_ns)

    def _work(self) -> None:
        jitter = random.Random(0)  # not the program's generator
        while not self._stop.is_set():
            pause = self.period_s * (0.5 + jitter.random())
            due = time.monotonic_ns() + int(pause * 1e9)
            time.sleep(pause)  # not Event.wait: that takes a lock more than one of which could be late
            got = time.monotonic_ns()
            self._ticks.append(Tick(due, got, _stood()))
            self._asked += 1
            self._late += got - due > LATE_NS
            self.cost_ns = time.thread_time_ns()


def _stood() -> tuple[tuple[int, bool], ...]:
    """The other threads, and whether each stood where the interpreter gives the GIL away.

    A function of its own: what kept a frame while the canary sleeps would keep the program's objects alive.
    """
    stood = []
    with no_search():
        now = other_frames()
    for ident, frame in now.items():
        at = frame.f_lasti
        code = frame.f_code.co_code
        stood.append((ident, 0 <= at < len(code) and code[at] in _BREAKS))
    return tuple(stood)


def held_shares(ticks: Iterable[Tick], spans: Iterable[Span]) -> dict[int, tuple[float, int]]:
    """Estimates the share of a body's time in which it held the GIL.

    When the canary was late, one of the bodies running then held the GIL: one that stood where the interpreter gives
    it away, or one that ended while the canary waited; several share the moment.

    Args:
      ticks: From the canary.
      spans: The bodies; their `call` may be any number to group by, a node's for example.

    Returns:
      Share and number of samples by that number; with fewer than 30 samples it is left out.
    """
    ordered = sorted(spans)
    first = 0
    active: list[Span] = []
    counts: dict[int, int] = {}
    held: dict[int, float] = {}
    for tick in sorted(ticks):
        while first < len(ordered) and ordered[first].start_ns <= tick.due_ns:
            active.append(ordered[first])
            first += 1
        active = [s for s in active if s.end_ns > tick.due_ns]
        suspects: list[Span] = []
        if tick.got_ns - tick.due_ns > LATE_NS:
            giving = {ident for ident, gives in tick.threads if gives}
            suspects = [s for s in active if s.thread in giving or s.end_ns <= tick.got_ns] or active
        for span in active:
            counts[span.call] = counts.get(span.call, 0) + 1
        for span in suspects:
            held[span.call] = held.get(span.call, 0.0) + 1 / len(suspects)
    return {group: (min(1.0, held.get(group, 0.0) / n), n) for group, n in counts.items() if n >= FEWEST}
