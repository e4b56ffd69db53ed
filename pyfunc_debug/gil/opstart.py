"""The op-start grade: when each op began, from TensorFlow's own profiler in short windows.

A call's op begins before it takes the GIL, so the time from there to the body is the wait (and a little conversion).
When the program wants the profiler, the window is closed at once and none is opened again in this recording
(`pyfunc_debug.profiler.session`).
"""

from __future__ import annotations

import os
import sys
import threading
import time

from pyfunc_debug.gil.native import AbsentError
from pyfunc_debug.gil.samples import OpSpan, Samples
from pyfunc_debug.profiler import xplane, xspace
from pyfunc_debug.profiler.session import InUseError, Profiler
from pyfunc_debug.program.threads import daemon_thread, made_by_cpp

MOST_CALLS = 10_000
"""Calls that a window should hold: closing one costs about 25 us a call, and more than linearly above this."""
FIRST_S, _LONGEST_S, _SHORTEST_S = 0.5, 2.0, 0.02
_BUSY = 0.1
"""Share of the time that closing and reading windows may take."""
_MARKER = b"pyfunc_debug:"


class OpStartProbe:
    """Windows of TensorFlow's profiler, opened and closed by a thread of ours."""

    grade = "op-start"

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._profiler = Profiler(2, self._wake.set)
        self._thread: threading.Thread | None = None
        self._open_since: int | None = None
        self._stamps: dict[bytes, tuple[int, int]] = {}
        self._ops: list[OpSpan] = []
        self._windows: list[tuple[int, int]] = []
        self._until_ns = 0
        self._calls_s = 0.0
        self._count = 0
        self.cost_ns = 0
        """CPU time of our thread so far."""

    @property
    def yielded(self) -> str:
        """Why no window is opened any more, or empty."""
        return self._profiler.yielded

    def start(self) -> None:
        """Opens the first window.

        Raises:
          AbsentError: Somebody else is profiling, or this TensorFlow's profiler does not do what is needed.
        """
        try:
            self._profiler.load()
        except InUseError as error:
            raise AbsentError(str(error)) from None
        if sys.platform != "linux":
            raise AbsentError(f"the profiler's thread ids are known on Linux only, this is {sys.platform}")
        self._self_test()
        self._profiler.watch()
        with self._profiler.lock:
            self._open()
        self._wake.clear()
        self._thread = daemon_thread(self._work, "pyfunc_debug gil windows")
        self._thread.start()

    def stop(self) -> None:
        """Closes the window and gives `tf.profiler.experimental.start` back."""
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._profiler.lock:
            self._close(read=True)
        self._profiler.unwatch()

    def drain(self) -> Samples:
        """Spans of ops in windows that were closed since the last drain."""
        names = {t.ident: t.name for t in threading.enumerate() if t.ident and not made_by_cpp(t)}
        with self._profiler.lock:
            ops, self._ops = self._ops, []
            windows, self._windows = self._windows, []
            return Samples("op-start", self._until_ns, ops=ops, windows=windows, names=names)

    # Windows -----------------------------------------------------------------------------------------------------

    def _self_test(self) -> None:
        """Whether a marker of ours comes back on this thread's line, at the time at which it was made."""
        with self._profiler.lock:
            self._open()
            events = self._close(read=False)
        if self.yielded:
            raise AbsentError(self.yielded)
        if not any(e.line == xplane.line_of(threading.get_ident()) for e in events):
            raise AbsentError("the profiler of this TensorFlow names threads in a way that is not known")

    def _open(self) -> None:
        """Opens a window, if the profiler is available, with the lock held."""
        if not self._profiler.open():
            return
        self._open_since = time.monotonic_ns()
        self._stamps = {}
        for _ in range(5):
            self._mark()

    def _mark(self) -> None:
        self._count += 1
        name = _MARKER + b"%d" % self._count
        trace = self._profiler.trace(name.decode())
        before = time.monotonic_ns()
        trace.__enter__()
        trace.__exit__(None, None, None)
        self._stamps[name] = (before, time.monotonic_ns())

    def _close(self, *, read: bool) -> list[xspace.Event]:
        """Closes the window, with the lock held; returns its events, and with `read` keeps the ops among them."""
        if self._open_since is None or not self._profiler.is_open:
            return []
        since, self._open_since = self._open_since, None
        until = time.monotonic_ns()
        events: list[xspace.Event] = []
        for data in self._profiler.close():
            events += xspace.events(data, lambda name: xplane.is_op(name) or name.startswith(_MARKER))
        if read and events:
            self._keep(events, since, until)
        self._until_ns = until
        return events

    def _keep(self, events: list[xspace.Event], since: int, until: int) -> None:
        clocks = []
        for event in events:
            stamp = self._stamps.get(event.name)
            if stamp:
                # The marker was made between the two readings: their middle is off by half their distance at most.
                clocks.append((stamp[1] - stamp[0], (stamp[0] + stamp[1]) // 2 - (event.begin_ns + event.end_ns) // 2))
        if not clocks:
            return
        shift = min(clocks)[1]
        self._windows.append((since, until))
        ops = [e for e in events if xplane.is_op(e.name)]
        self._ops.extend(OpSpan(e.line, e.begin_ns + shift, e.end_ns + shift) for e in ops)
        self._calls_s = len(ops) / max(1e-3, (until - since) / 1e9)

    def _work(self) -> None:
        quiet = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") not in ("", "0")
        length, rounds = FIRST_S, 0
        while not self._wake.wait(length) and not self.yielded:
            begin = time.thread_time_ns()
            with self._profiler.lock:
                self._close(read=True)
            spent = time.thread_time_ns() - begin
            self.cost_ns += spent
            rounds += 1
            pause = max(0.0, spent / 1e9 / _BUSY - length)
            if not quiet:
                # TensorFlow logs five lines a window at level INFO: few windows then, farther and farther apart.
                pause = max(pause, 2.0**rounds)
            length = min(_LONGEST_S, max(_SHORTEST_S, MOST_CALLS / 2 / max(1.0, self._calls_s)))
            if self._wake.wait(pause) or self.yielded:
                return
            with self._profiler.lock:
                self._open()
