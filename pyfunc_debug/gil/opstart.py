"""The op-start grade: when each op began, from TensorFlow's own profiler in short windows.

A call's op begins before it takes the GIL, so the time from there to the body is the wait (and a little conversion).
Only the public tf.profiler.experimental API is used. A profiler session is exclusive: when the program wants the
profiler, the window is closed at once and none is opened again in this recording.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from pyfunc_debug.gil import xplane
from pyfunc_debug.gil.native import AbsentError, is_foreign
from pyfunc_debug.gil.samples import OpSpan, Samples
from pyfunc_debug.threads import hide_from_debuggers

MOST_CALLS = 10_000
"""Calls that a window should hold: closing one costs about 25 us a call, and more than linearly above this."""
_FIRST_S, _LONGEST_S, _SHORTEST_S = 0.5, 2.0, 0.02
_BUSY = 0.1
"""Share of the time that closing and reading windows may take."""
_MARKER = b"pyfunc_debug:"


class OpStartProbe:
    """Windows of TensorFlow's profiler, opened and closed by a thread of ours."""

    grade = "op-start"

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while a window is opened or closed; never while the program's code runs
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._open_since: int | None = None
        self._folder = ""
        self._stamps: dict[bytes, tuple[int, int]] = {}
        self._ops: list[OpSpan] = []
        self._windows: list[tuple[int, int]] = []
        self._until_ns = 0
        self._patched: list[tuple[Any, Any]] = []
        self._calls_s = 0.0
        self._count = 0
        self._idents: set[int] = set()
        self.yielded = ""
        """Why no window is opened any more, or empty."""
        self.cost_ns = 0
        """CPU time of our thread so far."""

    def start(self) -> None:
        """Opens the first window.

        Raises:
          AbsentError: Somebody else is profiling, or this TensorFlow's profiler does not do what is needed.
        """
        self._tf = sys.modules.get("tensorflow")
        if self._tf is None or not hasattr(self._tf, "profiler"):
            raise AbsentError("TensorFlow is not loaded")
        if sys.platform != "linux":
            raise AbsentError(f"the profiler's thread ids are known on Linux only, this is {sys.platform}")
        self._profiler = self._tf.profiler.experimental
        self._options = self._profiler.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
        )
        self._self_test()
        self._patch()
        with self._lock:
            self._open()
        _running.append(self)
        self._wake.clear()
        self._thread = threading.Thread(target=self._work, name="pyfunc_debug gil windows", daemon=True)
        hide_from_debuggers(self._thread)
        self._thread.start()

    def stop(self) -> None:
        """Closes the window and gives `tf.profiler.experimental.start` back."""
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            self._close(read=True)
        self._unpatch()
        if self in _running:
            _running.remove(self)

    def drain(self) -> Samples:
        """Spans of ops in windows that were closed since the last drain."""
        names = {t.ident: t.name for t in threading.enumerate() if t.ident and not is_foreign(t)}
        with self._lock:
            ops, self._ops = self._ops, []
            windows, self._windows = self._windows, []
            return Samples("op-start", self._until_ns, ops=ops, windows=windows, names=names)

    # Windows -----------------------------------------------------------------------------------------------------

    def _self_test(self) -> None:
        """Whether a marker of ours comes back on this thread's line, at the time at which it was made."""
        with self._lock:
            self._open()
            events = self._close(read=False)
        if self.yielded:
            raise AbsentError(self.yielded)
        if not any(e.line == xplane.line_of(threading.get_ident()) for e in events):
            raise AbsentError("the profiler of this TensorFlow names threads in a way that is not known")

    def _open(self) -> bool:
        """Opens a window, with the lock held. False when the profiler is not to be had."""
        if self.yielded or self._open_since is not None:
            return False
        self._folder = tempfile.mkdtemp(prefix="pyfunc_debug-")
        try:
            self._start()(self._folder, self._options)
        except Exception as error:  # AlreadyExistsError; whatever else it is, it must not reach the program
            self.yielded = f"the profiler is in use ({type(error).__name__})"
            if isinstance(error.__context__, type(error)):
                # A remote capture is running. TensorFlow keeps our failed session then, and would refuse the program's
                # next start (profiler_v2.py): take it away again.
                self._profiler.stop(save=False)
            shutil.rmtree(self._folder, ignore_errors=True)
            return False
        self._open_since = time.monotonic_ns()
        self._stamps = {}
        for _ in range(5):
            self._mark()
        return True

    def _mark(self) -> None:
        self._count += 1
        name = _MARKER + b"%d" % self._count
        trace = self._profiler.Trace(name.decode())
        before = time.monotonic_ns()
        trace.__enter__()
        trace.__exit__(None, None, None)
        self._stamps[name] = (before, time.monotonic_ns())

    def _close(self, *, read: bool) -> list[xplane.Event]:
        """Closes the window, with the lock held; returns its events, and with `read` keeps the ops among them."""
        if self._open_since is None:
            return []
        since, self._open_since = self._open_since, None
        until = time.monotonic_ns()
        events: list[xplane.Event] = []
        try:
            self._profiler.stop(save=True)
            for file in glob.glob(os.path.join(self._folder, "**", "*.xplane.pb"), recursive=True):
                with open(file, "rb") as stream:
                    events += xplane.events(stream.read(), _MARKER)
        except Exception as error:
            # UnavailableError: the program stopped a profiler it had not started, and got ours.
            self.yielded = f"a window could not be read ({type(error).__name__}: {error})"
            events = []
        shutil.rmtree(self._folder, ignore_errors=True)
        if read and events:
            self._keep(events, since, until)
        self._until_ns = until
        return events

    def _keep(self, events: list[xplane.Event], since: int, until: int) -> None:
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
        length, rounds = _FIRST_S, 0
        while not self._wake.wait(length) and not self.yielded:
            begin = time.thread_time_ns()
            with self._lock:
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
            with self._lock:
                self._open()

    # The program's own profiler ------------------------------------------------------------------------------------

    def _start(self) -> Callable[..., Any]:
        """TensorFlow's own start, past our wrapper."""
        current = self._profiler.start
        return getattr(current, "_pyfunc_debug_original", current)  # type: ignore[no-any-return] # TensorFlow is untyped

    def _patch(self) -> None:
        original = self._profiler.start

        def start(*args: Any, **options: Any) -> Any:
            self._yield_profiler()
            return original(*args, **options)

        start.__name__, start.__qualname__, start.__doc__ = original.__name__, original.__qualname__, original.__doc__
        start.__module__ = original.__module__
        start._pyfunc_debug_original = original  # type: ignore[attr-defined] # read by _start above
        for module in list(sys.modules.values()):
            # The public namespaces and the module that defines it, wherever this TensorFlow has them.
            if getattr(module, "__dict__", {}).get("start") is original:
                module.start = start  # type: ignore[attr-defined] # it is there
                self._patched.append((module, original))
        self._wrapper = start

    def _unpatch(self) -> None:
        for module, original in self._patched:
            if module.start is self._wrapper:
                module.start = original
        self._patched = []

    def _yield_profiler(self) -> None:
        with self._lock:
            if not self.yielded:
                self.yielded = "the program started the profiler itself, which allows one session at a time"
            if self._open_since is not None:
                self._open_since = None
                try:
                    self._profiler.stop(save=False)
                except Exception:  # it was closed already: then the program gets what it wants
                    pass
                shutil.rmtree(self._folder, ignore_errors=True)
        self._wake.set()


_running: list[OpStartProbe] = []


def _after_fork_in_child() -> None:
    """The window is the parent's, and so is the thread that would close it; its lock may be held for ever here."""
    for probe in _running.copy():
        probe._lock = threading.Lock()
        probe.yielded = "this process was forked"
        probe._open_since = None
        probe._thread = None
        probe._unpatch()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
