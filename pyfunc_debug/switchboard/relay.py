"""The way of a call through this process: from interception to the recorder, to the breakpoints, or to both.

With the recorder alone the hot path is the recorder's own; breakpoints are in between only once there are some.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING, Any

from pyfunc_debug.events import FunctionFacts, NodeFacts, Notice, RunFacts, TraceFacts
from pyfunc_debug.program.threads import own_thread
from pyfunc_debug.stops import Abort, Broker, StopObserver

if TYPE_CHECKING:  # loading the notebook extension must not import NumPy
    from pyfunc_debug.interception.lines.python_lines import Lines
    from pyfunc_debug.recorder import Recorder


class _Both:
    """A ticket of the recorder and one of the breakpoints; `number` is the call's where it has neither."""

    __slots__ = ("call_watch", "number", "recorded", "recorder")

    def __init__(self, recorder: Recorder | None, recorded: Any, call_watch: Any, number: int | None = None) -> None:
        self.recorder = recorder
        self.recorded = recorded
        self.call_watch = call_watch
        self.number = number


_NOBODY: Any = (lambda token, args: None, lambda ticket, outputs: outputs, lambda ticket, error: None)


class Relay:
    """An `events.Observer` that passes everything on to whoever is plugged in.

    Args:
      stops: Tests calls against the breakpoints.
      broker: Knows whether a stop was interrupted.

    Attributes:
      recorder: Who records, or None.
      breaking: Whether there are breakpoints.
      lines: What counts lines, or None.
      cell_context: Context variables that bodies get on TensorFlow's threads: what they print lands in the right cell.
      path: `enter`, `leave` and `fail` for the calls that begin now: see `interception.calls.call_path`.
      unwanted: Tokens of the nodes whose calls nobody asks for: as there.
    """

    def __init__(self, stops: StopObserver, broker: Broker) -> None:
        self._stops = stops
        self._broker = broker
        self.recorder: Recorder | None = None
        self.breaking = False
        self.lines: Lines | None = None
        self.cell_context: list[tuple[Any, Any]] = []
        self.path: tuple[Callable[..., Any], Callable[..., Any], Callable[..., None]] = _NOBODY
        self.unwanted: Container[str] = ()
        self._shortcut: Any = None

    def choose_path(self) -> None:
        """Call it after each change of an attribute: calls that begin then take another way."""
        recorder, told = self.recorder, self._told()
        self.unwanted = self._stops.unwanted if recorder is None and self.lines is None and not told else ()
        hot = None
        if self.breaking or told:
            self.path = (self.enter, self.leave, self.fail)
        elif recorder is not None:
            self.path = (recorder.enter, recorder.leave, recorder.fail)
            hot = recorder.samples
        else:
            self.path = _NOBODY
        if self.lines is not None:
            self.path = self.lines.around(self.path, self.number)
            hot = None
        if self._shortcut is not None:
            self._shortcut.take(hot, self.path, self.unwanted)

    def shortcut(self, full: Any, *passed: Any) -> Any:
        """What takes the place of `full`, the replacement of `FuncRegistry.__call__`: see `Shortcut` in _hot.c.

        Calls that sampling leaves out, or of nodes that nobody asks for, do not pass through Python there. Everything
        else goes through `full`.
        """
        from pyfunc_debug.recorder.hot import Shortcut

        if Shortcut is None:
            return full
        self._shortcut = Shortcut(full, *passed)
        self.choose_path()
        return self._shortcut

    def _told(self) -> bool:
        return self._stops.debugger or bool(self.cell_context) or self._broker.ending

    # -- events.Observer: calls, while there are breakpoints ----------------------------------------------------------

    def enter(self, token: str, args: Any) -> Any:
        """A call is about to start. Raises Abort only."""
        if self.cell_context:
            _take_context(self.cell_context)
        recorder = self.recorder
        recorded = recorder.enter(token, args) if recorder is not None else None
        try:
            call_watch = self._stops.enter(token, args, recorded.call if recorded is not None else None)
        except Abort as abort:
            if recorder is not None:
                recorder.fail(recorded, abort)
            raise
        return _Both(recorder, recorded, call_watch)

    def leave(self, ticket: _Both, outputs: Any) -> Any:
        """The body returned. Raises Abort only."""
        if ticket.call_watch is not None:
            try:
                outputs = self._stops.leave(ticket.call_watch, outputs)
            except Abort as abort:
                if ticket.recorder is not None:
                    ticket.recorder.fail(ticket.recorded, abort)
                raise
        return outputs if ticket.recorder is None else ticket.recorder.leave(ticket.recorded, outputs)

    def fail(self, ticket: _Both, error: BaseException) -> None:
        """The body raised. Raises Abort only."""
        try:
            if ticket.call_watch is not None:
                self._stops.fail(ticket.call_watch, error)
        finally:
            if ticket.recorder is not None:
                ticket.recorder.fail(ticket.recorded, error)

    def keras_takes(self, node: NodeFacts) -> None:
        """Keras is about to take elements itself: no recording has this node, or its calls."""
        self._stops.node_made(node)

    def taking(self) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., None]]:
        """`enter`, `leave` and `fail` for these elements."""
        return (self._take, self.leave, self.fail) if self.breaking or self._told() else _NOBODY

    def _take(self, token: str, args: Any) -> Any:
        if self.cell_context:
            _take_context(self.cell_context)
        return _Both(None, None, self._stops.enter(token, args, None))

    def returned(self, ticket: Any, value: Any, declared: Any) -> Any:
        """The body returned, and TensorFlow has not converted its value yet."""
        recorder, recorded = self.recorder, _recorded(ticket)
        if recorder is None or recorded is None:
            return None
        found = recorder.returned(recorded, value, declared)
        return None if found is None else (recorder, found)

    def converted(self, returned: Any, outputs: Any) -> None:
        """TensorFlow has converted it."""
        recorder, found = returned
        recorder.converted(found, outputs)

    def rejected(self, ticket: Any, error: BaseException) -> None:
        """What an eager body returned cannot be made a tensor."""
        recorder, recorded = self.recorder, _recorded(ticket)
        if recorder is not None and recorded is not None:
            recorder.rejected(recorded, error)

    # -- events.Observer: everything else -----------------------------------------------------------------------------

    def node_made(self, node: NodeFacts) -> None:
        """A node was made, or an eager call is about to happen."""
        if self.recorder is not None:
            self.recorder.node_made(node)
        self._stops.node_made(node)

    def node_gone(self, token: str) -> None:
        """An eager call is over and can have no gradient call."""
        self._stops.node_gone(token)

    def trace_began(self, trace: int, function: FunctionFacts) -> None:
        """TensorFlow begins to trace a function."""
        if self.recorder is not None:
            self.recorder.trace_began(trace, function)

    def trace_ended(self, trace: TraceFacts) -> None:
        """TensorFlow finished a graph trace."""
        if self.recorder is not None:
            self.recorder.trace_ended(trace)

    def run_began(self, run: RunFacts) -> None:
        """Python started a tf.function."""
        if self.recorder is not None:
            self.recorder.run_began(run)

    def run_ended(self, run: RunFacts) -> None:
        """The tf.function returned or raised.

        Raises:
          KeyboardInterrupt: it raised because a stop in it was interrupted: here it is safe to say so.
        """
        if self.recorder is not None:
            self.recorder.run_ended(run)
        if run.error is not None and self._broker.interrupted and threading.current_thread() is threading.main_thread():
            self._broker.take_interrupt()
            interrupt: Any = KeyboardInterrupt("interrupted at a pyfunc_debug stop")
            interrupt.pyfunc_exception = getattr(sys.exc_info()[1], "pyfunc_exception", None)  # for %debug
            raise interrupt from None

    def paired(self, ticket: Any, own: Any, used: Any, dy: tuple[int, ...], dx: tuple[int, ...]) -> None:
        """A gradient call found its forward call, and a tape."""
        recorder = self.recorder
        if recorder is not None:
            recorder.paired(_recorded(ticket), _recorded(own), _recorded(used), dy, dx)

    def gradient_notice(self, rule: Notice, token: str, ticket: Any, **facts: Any) -> None:
        """Something about gradients, for the doctor."""
        recorder = self.recorder
        if recorder is not None:
            recorder.gradient_notice(rule, token, _recorded(ticket), **facts)

    def trouble(self, where: str, error: BaseException) -> None:
        """Something of ours failed; the program went on."""
        if self.recorder is not None:
            self.recorder.trouble(where, error)
        else:
            self._stops.say(f"had trouble {where}: {type(error).__name__}: {error}", once=True)

    def notice(self, rule: Notice, token: str | None, call: int | None, **facts: Any) -> None:
        """Something for the recording, if there is one."""
        if self.recorder is not None:
            self.recorder.notice(rule, token, call, **facts)

    @staticmethod
    def number(ticket: Any) -> int | None:
        """The number in the recording of the call with this ticket."""
        return getattr(_recorded(ticket), "call", None)

    @staticmethod
    def facts_of(ticket: Any) -> tuple[int | None, int | None, int | None]:
        """Of the call with this ticket its number, its thread's native number, and when it began, where known."""
        recorded = _recorded(ticket)
        number = getattr(recorded, "call", None)
        if number is None:
            own = getattr(ticket, "ticket", ticket)
            number = getattr(getattr(own, "call_watch", None) or own, "number", None)
        return number, getattr(recorded, "thread", None), getattr(recorded, "start_ns", None) or None

    def numbered(self, ticket: Any, numbers: Iterator[int]) -> tuple[int, Any]:
        """The number of a call that stops, the same at each of its stops, and the ticket that keeps it."""
        number = self.facts_of(ticket)[0]
        if number is None:
            number = next(numbers)
            if ticket is None:  # nobody asked for the call as it began
                ticket = _Both(None, None, None, number)
            elif type(ticket) is _Both:
                ticket.number = number
        return number, ticket


def _recorded(ticket: Any) -> Any:
    """The recorder's part of a ticket."""
    ticket = getattr(ticket, "ticket", ticket)  # `interception.lines.Counted`
    return ticket.recorded if type(ticket) is _Both else ticket


def _take_context(context: list[tuple[Any, Any]]) -> None:
    """Sets context variables on a thread of TensorFlow's; its thread state, and with it these, end with the call."""
    if own_thread() is None:  # those of the program's own threads are the program's
        for variable, value in context:
            variable.set(value)
