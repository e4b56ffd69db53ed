"""Stopping bodies that run, where they are: at the next line of the user's that one of the threads, or each, comes to.

Before Python 3.12 another thread's trace function is set in C (`_pause.c`); since then sys.monitoring watches the
lines of the functions that the threads are in.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from pyfunc_debug.program.frames import is_user
from pyfunc_debug.stops.chained_tracer import settrace

_c: Any = None
with contextlib.suppress(ImportError):  # Python 3.12 and newer, or it was not built
    _c = importlib.import_module("pyfunc_debug.stops._pause")

_TOOLS = (3, 4, 2)
"""Free numbers of sys.monitoring: debuggers take 0, coverage 1, optimizers 5."""


class Pause:
    """Waits until one of several threads, or each of them, comes to a line of the user's.

    Args:
      stacks: By thread, the user's frames in the body that it runs, outermost first.
      stop: Called there, on that thread, with the frame.
      missed: Called, on the last of the threads, when every body returned before it came to a line.
      each: Each thread is stopped, not one of them.
    """

    def __init__(
        self, stacks: Mapping[int, list[FrameType]], stop: Callable[[FrameType], object],
        missed: Callable[[], object] = lambda: None, each: bool = False,
    ) -> None:  # fmt: skip
        self._bodies = {ident: stack[0] for ident, stack in stacks.items()}
        self._codes = {frame.f_code for stack in stacks.values() for frame in stack}
        self._stacks = dict(stacks)
        self._lines: list[tuple[int, FrameType]] = []
        self._stop = stop
        self._missed = missed
        self._each = each
        self._lock = threading.Lock()
        self._over = False
        self._tool: int | None = None

    @property
    def waits(self) -> bool:
        """Whether no thread has come to a line yet."""
        return not self._over

    def arm(self) -> bool:
        """Begins to wait; whether that is possible."""
        if sys.version_info >= (3, 12):
            return self._monitor()
        for ident, stack in self._stacks.items() if _c is not None else ():
            for frame in stack:
                if not frame.f_trace_lines:  # who traces it wants to see it return, and nothing else
                    frame.f_trace_lines = True
                    self._lines.append((ident, frame))
        self._stacks.clear()
        return _c is not None and bool(_c.trace_threads(set(self._bodies), self._event))

    def cancel(self) -> None:
        """No thread is to be stopped any more."""
        with self._lock:
            self._over = True
            for _, frame in self._lines:
                frame.f_trace_lines = False
            self._lines.clear()
        self._end_monitoring()

    def _event(self, frame: FrameType, line: bool) -> None:
        """A line, or a return, on any thread."""
        ident = threading.get_ident()
        body = self._bodies.get(ident)
        if body is not None and not self._over and not (is_user(frame.f_code.co_filename) if line else frame is body):
            return
        with self._lock:
            self._bodies.pop(ident, None)
            first = line and not self._over and body is not None
            missed = not line and not self._over and not self._bodies
            self._over = self._over or (first and not self._each) or not self._bodies
            for _, frame_ in [one for one in self._lines if one[0] == ident or self._over]:
                frame_.f_trace_lines = False
            self._lines = [] if self._over else [one for one in self._lines if one[0] != ident]
        if self._tool is None:
            settrace(sys.gettrace())  # what this thread had
        elif self._over:
            self._end_monitoring()
        if first:
            self._stop(frame)
        elif missed:
            self._missed()

    def _monitor(self) -> bool:
        api: Any = getattr(sys, "monitoring", None)
        for tool in _TOOLS:
            try:
                api.use_tool_id(tool, "pyfunc_debug pause")
            except ValueError:  # somebody has it
                continue
            self._tool = tool
            api.register_callback(tool, api.events.LINE, self._line)
            api.register_callback(tool, api.events.JUMP, self._jump)
            api.register_callback(tool, api.events.PY_RETURN, self._return)
            for code in self._codes:
                api.set_local_events(tool, code, api.events.LINE | api.events.JUMP | api.events.PY_RETURN)
            return True
        return False

    def _line(self, code: CodeType, line: int) -> None:
        if threading.get_ident() in self._bodies:
            self._event(sys._getframe(1), True)

    def _jump(self, code: CodeType, offset: int, target: int) -> None:
        """A loop of one line comes to no other line."""
        if threading.get_ident() in self._bodies:
            self._event(sys._getframe(1), True)

    def _return(self, code: CodeType, offset: int, value: Any) -> None:
        if threading.get_ident() in self._bodies:
            self._event(sys._getframe(1), False)

    def _end_monitoring(self) -> None:
        api: Any = getattr(sys, "monitoring", None)
        with self._lock:
            tool, self._tool = self._tool, None
        if tool is None:
            return
        for code in self._codes:
            api.set_local_events(tool, code, api.events.NO_EVENTS)
        for event in (api.events.LINE, api.events.JUMP, api.events.PY_RETURN):
            api.register_callback(tool, event, None)
        api.free_tool_id(tool)
