"""The engines that count lines as they run: sys.settrace before Python 3.12, sys.monitoring since."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from pyfunc_debug.interception.lines.line_maps import SourceLine, Table
from pyfunc_debug.program.frames import is_generated

if TYPE_CHECKING:
    from pyfunc_debug.interception.lines.python_lines import Lines

_TOOLS = (3, 4, 2)  # free ones of sys.monitoring: debuggers take 0, coverage 1, optimizers 5


class Tracing:
    """sys.settrace, armed again in each phase: threads made in C++ forget it after each call (Python 3.10, 3.11)."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._alone = self._tracer(None)  # one for all phases: most have no other tracer

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def arm(self) -> Any:
        """Sets our trace function on this thread, in front of a Python one that is there."""
        before = sys.gettrace()
        foreign = _foreign(before)
        if foreign:
            self._lines.python_limits = f"lines are not counted where {foreign} is tracing (on Python before 3.12)"
            return None
        if hasattr(before, "pfd_lines"):
            return None  # a phase inside a phase: armed already
        ours = self._alone if before is None else self._tracer(before)
        sys.settrace(ours)
        return before, ours

    def disarm(self, armed: Any) -> None:
        """Puts the one before back, unless a debugger took over meanwhile."""
        if armed is not None and sys.gettrace() is armed[1]:
            sys.settrace(armed[0])

    def _tracer(self, before: Any) -> Any:
        lines, here, tables = self._lines, self._lines.here, self._lines.tables
        libraries = tables.libraries

        def alone(frame: FrameType, event: str, arg: Any) -> Any:
            code = frame.f_code
            # A graph trace calls 100,000 functions of TensorFlow's: this line is most of what counting costs.
            if id(code) in libraries:
                return None
            table = tables.of(code)
            if not table.source_lines:
                return None
            return _local(table, lines, here, is_generated(code.co_filename), None)

        def chained_tracer(frame: FrameType, event: str, arg: Any) -> Any:
            chained = before(frame, event, arg)
            table = tables.of(frame.f_code)
            if not table.source_lines:
                return chained
            return _local(table, lines, here, is_generated(frame.f_code.co_filename), chained)

        trace = alone if before is None else chained_tracer
        trace.pfd_lines = True  # type: ignore[attr-defined]  # a mark for `arm`
        return trace


def _local(
    table: Table, lines: Lines, here: Any, generated: bool, chained: Any
) -> Callable[[FrameType, str, Any], Any]:
    """The trace function of one frame: counts a statement once for each time it is begun."""
    source_lines, entered = table.source_lines, table.entered
    last: SourceLine | None = None

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal last, chained
        if chained is not None:
            chained = chained(frame, event, arg)
        if event == "line":
            source_line = source_lines.get(frame.f_lineno)
            if source_line is not None and frame.f_lasti > entered.get(frame.f_lineno, frame.f_lasti):
                return trace  # a `with` block is left
            if source_line is not None and source_line != last:
                phase = getattr(here, "phase", None)
                if phase is not None and lines.hit(source_line, phase) and chained is None:
                    frame.f_trace_lines = False  # for the whole frame: its other lines are "at least" as well
                    lines.cap(source_lines.values())
            if source_line is not None or not generated:
                last = source_line
        return trace

    return trace


def _foreign(before: Any) -> str:
    """A tracer that we cannot run together with."""
    if type(before).__name__ == "CTracer":
        return "coverage"
    constants = sys.modules.get("_pydevd_bundle.pydevd_constants")
    debugger = getattr(constants, "get_global_debugger", lambda: None)()
    return "a debugger (debugpy)" if debugger is not None else ""


class Monitoring:
    """sys.monitoring (PEP 669): for all threads at once, nothing for code that is not the user's."""

    _restart = False  # whether an earlier recording disabled lines that reached the cap

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._tool: int | None = None
        self._api: Any = getattr(sys, "monitoring", None)

    def start(self) -> None:
        """Takes a free tool number."""
        api = self._api
        self._tool = next((number for number in _TOOLS if api.get_tool(number) is None), None)
        if self._tool is None:
            self._lines.python_limits = "lines are not counted: other tools have all numbers of sys.monitoring"
            return
        api.use_tool_id(self._tool, "pyfunc_debug")
        api.register_callback(self._tool, api.events.PY_START, self._begins)
        api.register_callback(self._tool, api.events.LINE, self._line)
        api.set_events(self._tool, api.events.PY_START)
        if Monitoring._restart:
            api.restart_events()
            Monitoring._restart = False

    def stop(self) -> None:
        """Gives the number back."""
        if self._tool is None:
            return
        api, tool = self._api, self._tool
        self._tool = None
        api.set_events(tool, 0)
        for code in self._lines.tables.counted():
            api.set_local_events(tool, code, 0)
        for event in (api.events.PY_START, api.events.LINE):
            api.register_callback(tool, event, None)
        api.free_tool_id(tool)

    def arm(self) -> Any:
        return None

    def disarm(self, armed: Any) -> None:
        pass

    def _begins(self, code: CodeType, offset: int) -> Any:
        """A function starts: lines are asked for only in the user's code, from its first line on."""
        table = self._lines.tables.of(code)
        api, tool = self._api, self._tool
        if not table.source_lines or tool is None:
            return api.DISABLE
        if api.get_local_events(tool, code) == 0:
            api.set_local_events(tool, code, api.events.LINE)
        if table.repeats:
            here = self._lines.here
            if getattr(here, "phase", None) is not None:
                self._last().pop(id(sys._getframe(1)), None)
        return None

    def _last(self) -> dict[int, SourceLine]:
        """The last statement of each frame of this thread."""
        here = self._lines.here
        try:
            return here.last  # type: ignore[no-any-return]  # a thread-local of ours
        except AttributeError:
            here.last = {}
            return here.last  # type: ignore[no-any-return]

    def _line(self, code: CodeType, line: int) -> Any:
        table = self._lines.tables.of(code)
        source_line = table.source_lines.get(line)
        if source_line is None:
            return self._api.DISABLE  # also for other threads: right, it is nobody's line
        phase = getattr(self._lines.here, "phase", None)
        if phase is None:
            return None  # not DISABLE: that would be for all threads
        if line in table.entered and sys._getframe(1).f_lasti > table.entered[line]:
            return None  # a `with` block is left
        if table.repeats:
            last, frame = self._last(), id(sys._getframe(1))
            if last.get(frame) == source_line:
                return None
            last[frame] = source_line
        if self._lines.hit(source_line, phase):
            Monitoring._restart = True
            return self._api.DISABLE
        return None
