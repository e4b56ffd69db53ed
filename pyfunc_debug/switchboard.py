"""One interception for all who want calls: the recorder, the breakpoints, and whatever else a session switches on.

Interception is on while anybody wants it. With the recorder alone the hot path is the recorder's own; breakpoints are
in between only once there are some.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from pyfunc_debug.errors import PyfuncDebugError, PyfuncDebugWarning
from pyfunc_debug.events import NodeFacts, Notice, RunFacts, TraceFacts
from pyfunc_debug.program.frames import failure_frames
from pyfunc_debug.program.imports import when_imported
from pyfunc_debug.program.pools import pool_of
from pyfunc_debug.program.threads import own_thread
from pyfunc_debug.stops import Abort, Broker, Environment, Rules, StopObserver
from pyfunc_debug.stops.conditions import NO_SCOPE, Scope
from pyfunc_debug.stops.display import Display
from pyfunc_debug.stops.hooks import Hooks
from pyfunc_debug.stops.interrupts import Interrupts
from pyfunc_debug.stops.terminal import Terminal

if TYPE_CHECKING:  # loading the notebook extension must not import NumPy
    from pyfunc_debug.recorder import Recorder


class _Both:
    """A ticket of the recorder and one of the breakpoints."""

    __slots__ = ("call_watch", "recorded", "recorder")

    def __init__(self, recorder: Recorder | None, recorded: Any, call_watch: Any) -> None:
        self.recorder = recorder
        self.recorded = recorded
        self.call_watch = call_watch


_LAST_CALLS_S = 2.0


def _nothing(error: BaseException) -> None:
    """Nobody wants to know."""


_NOBODY: Any = (lambda token, args: None, lambda ticket, outputs: outputs, lambda ticket, error: None)


class Switchboard:
    """An `events.Observer` that passes everything on to whoever is plugged in. One in a process: `board`.

    Attributes:
      rules, broker: The breakpoints, and who may prompt.
      observer: Holds calls against the rules.
    """

    def __init__(self) -> None:
        self.rules = Rules()
        self.broker = Broker()
        self.broker.pool_of = pool_of
        self.terminal = Terminal()
        self.broker.fronts.append(self.terminal)
        self.observer = StopObserver(self.rules, self.broker, _Environment(self))
        self.rules.listeners.append(self._breakpoints_changed)
        self._lock = threading.RLock()
        self._interception: Any = None
        self._wanted_by: list[Any] = []
        self._recorder: Recorder | None = None
        self._breaking = False
        self._lines: Any = None
        self._cancel_import: Callable[[], None] | None = None
        self._display = Display(self.broker.show_interrupt, lambda error: self.exception_shown(error))
        self.exception_shown: Callable[[BaseException], None] = _nothing
        """Told of each exception that was displayed while interception is on; set by who explains them."""
        self._hooks = Hooks(self._breakpoint)
        self._interrupts = Interrupts(self.broker)
        self.last_failures: list[Any] = []
        self._cell_context: list[tuple[Any, Any]] = []
        self.path: tuple[Callable[..., Any], Callable[..., Any], Callable[..., None]] = _NOBODY
        """`enter`, `leave` and `fail` for the calls that begin now: see `interception.calls.call_path`."""

    # -- plugging in --------------------------------------------------------------------------------------------------

    @property
    def interception(self) -> Any:
        """The interception that is on, or None."""
        return self._interception

    def want(self, who: Any) -> Any:
        """Switches interception on for `who`, if it is off. TensorFlow is imported if it was not.

        Raises:
          UnsupportedTensorFlowError: calls cannot be seen on this TensorFlow.
        """
        from pyfunc_debug.interception import Interception

        with self._lock:
            if self._interception is None:
                interception = Interception(self)
                interception.start()
                interception.failures.on_stop_iteration = self._stop_iteration
                interception.failures.on_failure = self.observer.call_failed
                self._interception = interception
                self._display.install()
                self._hooks.install()
            self._interrupts.install()  # a recording, too: `breakpoint()` in a body stops without a rule
            if who not in self._wanted_by:
                self._wanted_by.append(who)
            self._look_for_debugger()
            return self._interception

    def unwant(self, who: Any) -> tuple[str, ...]:
        """Switches off once nobody wants interception any more: every attribute is the original again.

        Returns:
          Names of attributes that somebody else had replaced meanwhile and that were left as they are.
        """
        with self._lock:
            if who in self._wanted_by:
                self._wanted_by.remove(who)
            if self._wanted_by or self._interception is None:
                return ()
            interception, self._interception = self._interception, None
            self.last_failures = interception.failures.newest_first()
            foreign: tuple[str, ...] = interception.stop()
            interception.failures.forget()
            self._display.uninstall()
            self._hooks.uninstall()
            self._interrupts.uninstall()
            return foreign

    def plug_recorder(self, recorder: Recorder, lines: bool | str = False) -> Any:
        """Records every call from now on; with `lines`, also counts the lines that run, in graphs too with "graph"."""
        interception = self.want(recorder)
        try:
            if lines:
                self._lines = interception.start_lines(lines == "graph")
        except BaseException:
            interception.stop_lines()
            self.unwant(recorder)
            raise
        recorder.connect(
            interception.live_runs, interception.older_node, interception.locate_node, interception.user_line,
            interception.inputs.facts,
        )  # fmt: skip
        self._recorder = recorder
        self._choose_path()
        return interception

    def unplug_recorder(self, recorder: Recorder) -> tuple[str, ...]:
        """Records no more."""
        if self._recorder is recorder:
            self._recorder = None
            self.exception_shown = _nothing
            if self._lines is not None:
                self._lines = None
                self._interception.stop_lines()
            self._choose_path()
        return self.unwant(recorder)

    def _breakpoints_changed(self) -> None:
        """The first breakpoint switches interception on, the last one off."""
        if len(self.rules) and not self._breaking:
            self._breaking = True
            atexit.register(self._at_exit)
            self._cancel_import = when_imported("tensorflow", self._tensorflow_is_there)
        elif not len(self.rules) and self._breaking:
            self._breaking = False
            atexit.unregister(self._at_exit)
            if self._cancel_import is not None:
                self._cancel_import()
                self._cancel_import = None
            self.broker.release()
            self.unwant(self.rules)
            self._choose_path()

    def _at_exit(self) -> None:
        self.observer.close(_LAST_CALLS_S)
        self.rules.clear()

    def _tensorflow_is_there(self) -> None:
        in_import = self._cancel_import is not None
        try:
            self.want(self.rules)
        except PyfuncDebugError as error:
            self._breaking = False
            if not in_import:
                raise
            warnings.warn(f"pyfunc_debug: no breakpoints: {error}", PyfuncDebugWarning, stacklevel=2)
        self._choose_path()

    @property
    def cell_context(self) -> list[tuple[Any, Any]]:
        """Context variables that bodies get on TensorFlow's threads: what they print lands in the right cell."""
        return self._cell_context

    @cell_context.setter
    def cell_context(self, found: list[tuple[Any, Any]]) -> None:
        self._cell_context = found
        self._choose_path()

    def cell_begins(self) -> None:
        """A notebook's cell begins, on the main thread: the kernel has just set its own SIGINT handler."""
        self.broker.take_interrupt()
        if self._interception is not None:
            self._interrupts.install()
            self._hooks.install()
            self._look_for_debugger()

    def _look_for_debugger(self) -> None:
        """An IDE that is attached sees bodies' threads only if we report them to it, call by call."""
        self.observer.debugger = ide_attached()
        self._choose_path()

    def cell_ends(self) -> None:
        """The cell ended: the kernel and its event loop get SIGINT back."""
        self._interrupts.uninstall()

    def _choose_path(self) -> None:
        recorder = self._recorder
        if self._breaking or self.observer.debugger or self._cell_context:
            self.path = (self.enter, self.leave, self.fail)
        elif recorder is not None:
            self.path = (recorder.enter, recorder.leave, recorder.fail)
        else:
            self.path = _NOBODY
        if self._lines is not None:
            self.path = self._lines.around(self.path, self.number)

    # -- events.Observer: calls, while there are breakpoints ----------------------------------------------------------

    def enter(self, token: str, args: Any) -> Any:
        """A call is about to start. Raises Abort only."""
        if self._cell_context:
            _take_context(self._cell_context)
        recorder = self._recorder
        recorded = recorder.enter(token, args) if recorder is not None else None
        try:
            call_watch = self.observer.enter(token, args, recorded.call if recorded is not None else None)
        except Abort as abort:
            if recorder is not None:
                recorder.fail(recorded, abort)
            raise
        return _Both(recorder, recorded, call_watch)

    def leave(self, ticket: _Both, outputs: Any) -> Any:
        """The body returned. Raises Abort only."""
        if ticket.call_watch is not None:
            try:
                outputs = self.observer.leave(ticket.call_watch, outputs)
            except Abort as abort:
                if ticket.recorder is not None:
                    ticket.recorder.fail(ticket.recorded, abort)
                raise
        return outputs if ticket.recorder is None else ticket.recorder.leave(ticket.recorded, outputs)

    def fail(self, ticket: _Both, error: BaseException) -> None:
        """The body raised. Raises Abort only."""
        try:
            if ticket.call_watch is not None:
                self.observer.fail(ticket.call_watch, error)
        finally:
            if ticket.recorder is not None:
                ticket.recorder.fail(ticket.recorded, error)

    # -- events.Observer: everything else -----------------------------------------------------------------------------

    def node_made(self, node: NodeFacts) -> None:
        """A node was made, or an eager call is about to happen."""
        if self._recorder is not None:
            self._recorder.node_made(node)
        self.observer.node_made(node)

    def trace_ended(self, trace: TraceFacts) -> None:
        """TensorFlow finished a graph trace."""
        if self._recorder is not None:
            self._recorder.trace_ended(trace)

    def run_began(self, run: RunFacts) -> None:
        """Python started a tf.function."""

    def run_ended(self, run: RunFacts) -> None:
        """The tf.function returned or raised.

        Raises:
          KeyboardInterrupt: it raised because a stop in it was interrupted: here it is safe to say so.
        """
        if self._recorder is not None:
            self._recorder.run_ended(run)
        if run.error is not None and self.broker.interrupted and threading.current_thread() is threading.main_thread():
            self.broker.take_interrupt()
            raise KeyboardInterrupt("interrupted at a pyfunc_debug stop") from None

    def paired(self, ticket: Any, own: Any, used: Any, dy: tuple[int, ...], dx: tuple[int, ...]) -> None:
        """A gradient call found its forward call, and a tape."""
        recorder = self._recorder
        if recorder is not None:
            recorder.paired(_recorded(ticket), _recorded(own), _recorded(used), dy, dx)

    def gradient_notice(self, rule: Notice, token: str, ticket: Any, **facts: Any) -> None:
        """Something about gradients, for the doctor."""
        recorder = self._recorder
        if recorder is not None:
            recorder.gradient_notice(rule, token, _recorded(ticket), **facts)

    def trouble(self, where: str, error: BaseException) -> None:
        """Something of ours failed; the program went on."""
        if self._recorder is not None:
            self._recorder.trouble(where, error)
        else:
            self.observer.say(f"had trouble {where}: {type(error).__name__}: {error}", once=True)

    def notice(self, rule: Notice, token: str | None, call: int | None, **facts: Any) -> None:
        """Something for the recording, if there is one."""
        if self._recorder is not None:
            self._recorder.notice(rule, token, call, **facts)

    # -- breakpoint() -------------------------------------------------------------------------------------------------

    def _breakpoint(self, frame: FrameType) -> bool:
        """`breakpoint()` or `pdb.set_trace()` called in `frame`; whether it is in a body, and so ours."""
        from pyfunc_debug.interception.calls import bottom_frame, innermost_call

        call, bottom = innermost_call(), bottom_frame(frame)
        if call is None or bottom is None:
            return False
        self.observer.stop_here(frame, bottom, call.token, call.args, self.number(call.ticket))
        return True

    def _stop_iteration(self, token: str, error: BaseException) -> None:
        """Says so at once: TensorFlow may end a loop or an epoch because of it, without an error."""
        file, line, function = failure_frames(error.__traceback__)[-1]
        self.observer.say(
            f"StopIteration left the body of a py_function ({file}:{line}, in {function}): TensorFlow takes it for the "
            "end of the data and may end a loop or an epoch without an error. Catch it in the body, or give next() a "
            "default.",
            once=True,
        )

    def failures(self) -> list[Any]:
        """Failed calls that are remembered, newest first."""
        if self._interception is not None:
            found: list[Any] = self._interception.failures.newest_first()
            return found or self.last_failures
        return self.last_failures

    @staticmethod
    def number(ticket: Any) -> int | None:
        """The number in the recording of the call with this ticket."""
        return getattr(_recorded(ticket), "call", None)

    def forget_in_child(self) -> None:
        """In a forked child: everything off."""
        self._lock = threading.RLock()
        self._recorder = None
        self._lines = None
        self._wanted_by.clear()
        self.rules.clear()
        if self._interception is not None:
            self.unwant(None)


def _recorded(ticket: Any) -> Any:
    """The recorder's part of a ticket."""
    ticket = getattr(ticket, "ticket", ticket)  # `interception.lines.Counted`
    return ticket.recorded if type(ticket) is _Both else ticket


def _take_context(context: list[tuple[Any, Any]]) -> None:
    """Sets context variables on a thread of TensorFlow's; its thread state, and with it these, end with the call."""
    if own_thread() is None:  # those of the program's own threads are the program's
        for variable, value in context:
            variable.set(value)


class _Environment(Environment):
    """What the breakpoints ask of this process."""

    def __init__(self, board: Switchboard) -> None:
        self._board = board

    def older_node(self, token: str, arguments: int) -> NodeFacts | None:
        interception = self._board.interception
        return interception.older_node(token, arguments) if interception is not None else None

    def locate_node(self, node: NodeFacts) -> NodeFacts:
        interception = self._board.interception
        return interception.locate_node(node) if interception is not None else node

    def user_line(self, file: str, line: int) -> tuple[str, int]:
        interception = self._board.interception
        return interception.user_line(file, line) if interception is not None else (file, line)

    def scope(self, token: str) -> Scope:
        interception = self._board.interception
        return interception.scope(token) if interception is not None else NO_SCOPE

    def evaluation(self) -> contextlib.AbstractContextManager[Any]:
        from pyfunc_debug.interception.graphs.eagerly import eagerly_if_possible

        return eagerly_if_possible()

    def replace_outputs(self, outputs: Any, value: Any) -> Any:
        """Raises what TensorFlow raises when the value does not fit the node's types."""
        import numpy as np
        import tensorflow as tf

        many = isinstance(outputs, (list, tuple))
        before = list(outputs) if many else [outputs]
        values = tf.nest.flatten(value, expand_composites=True)
        if len(values) != len(before):
            raise ValueError(f"{len(values)} value(s) for {len(before)} output(s)")
        after = [
            tf.convert_to_tensor(new, dtype=old.dtype) if tf.is_tensor(old) else np.asarray(new, dtype=old.dtype)
            for new, old in zip(values, before)
        ]
        return after if many else after[0]

    def replace_inputs(self, inputs: Any, values: list[Any]) -> None:
        """Raises what TensorFlow raises when a value does not fit, and TypeError for numpy_function's tuple."""
        from pyfunc_debug.interception.calls import innermost_call

        before, after = list(inputs), self.replace_outputs(list(inputs), values)
        call = innermost_call(entered=False)
        whole = call.given if call is not None and call.args is inputs and call.given is not None else inputs
        inputs[:] = after
        for first in range(len(whole) - len(before) + 1) if whole is not inputs else ():
            if all(one is other for one, other in zip(whole[first:], before)):
                whole[first : first + len(before)] = after
                break

    def note(self, rule: Notice, token: str | None, call: int | None, **facts: Any) -> None:
        self._board.notice(rule, token, call, **facts)

    def trouble(self, where: str, error: BaseException) -> None:
        self._board.trouble(where, error)

    def attach_debugger(self) -> bool:
        if not ide_attached():
            return False
        if threading.current_thread() is not threading.main_thread():  # which the IDE sees anyway
            sys.modules["debugpy"].debug_this_thread()
        return True

    def break_in_debugger(self, frame: FrameType | None) -> None:
        """As debugpy.breakpoint() does, but in the body's frame and not in ours (debugpy/server/api.py)."""
        import pydevd

        pydevd.settrace(suspend=True, trace_only_current_thread=True, patch_multiprocessing=False, stop_at_frame=frame)


def ide_attached() -> bool:
    """Whether an IDE debugs this process through debugpy."""
    if "debugpy.server.api" not in sys.modules:  # asking would import it, and it replaces sys.breakpointhook
        return False
    try:
        return bool(sys.modules["debugpy"].is_client_connected())
    except (AttributeError, KeyError):
        return False


board = Switchboard()
"""This process's."""

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=lambda: board.forget_in_child())
