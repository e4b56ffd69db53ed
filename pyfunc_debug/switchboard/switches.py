"""Switching on and off: interception is on while anybody wants it, the recorder, the breakpoints or a cell."""

from __future__ import annotations

import atexit
import sys
import threading
import time
import warnings
from collections.abc import Callable, Container
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from pyfunc_debug.errors import PyfuncDebugError, PyfuncDebugWarning
from pyfunc_debug.places import cell_label
from pyfunc_debug.program.covered import coverage_traces
from pyfunc_debug.program.frames import failure_frames
from pyfunc_debug.program.imports import when_imported
from pyfunc_debug.program.threads import name_of
from pyfunc_debug.stops import Broker, Rules, StopObserver
from pyfunc_debug.stops.display import Display, at_a_prompt
from pyfunc_debug.stops.generated import Generated
from pyfunc_debug.stops.hooks import Hooks
from pyfunc_debug.stops.interrupts import Interrupts
from pyfunc_debug.stops.look import RunningCall
from pyfunc_debug.stops.observer import PAUSED
from pyfunc_debug.stops.pause import Pause
from pyfunc_debug.stops.stop import Abort
from pyfunc_debug.stops.terminal import Piped, Terminal
from pyfunc_debug.stops.uncaptured import Uncaptured
from pyfunc_debug.switchboard.attached import attached, show_names
from pyfunc_debug.switchboard.environment import ProcessEnvironment
from pyfunc_debug.switchboard.relay import Relay

if TYPE_CHECKING:  # loading the notebook extension must not import NumPy
    from pyfunc_debug.recorder import Recorder


_LAST_CALLS_S = 2.0
_BETWEEN_S, _TICK_S = 0.5, 0.0005
"""How long a call of a body is waited for that Ctrl-C may end, and between two looks."""
_CELL = "a cell whose code may call breakpoint()"


def _nothing(error: BaseException) -> None:
    """Nobody wants to know."""


class Switchboard:
    """Plugs recorder, breakpoints and cells into one interception. One in a process: `switchboard.board`.

    Attributes:
      rules, broker: The breakpoints, and who may prompt.
      observer: Tests calls against the rules.
      relay: The way of each call.
    """

    def __init__(self) -> None:
        self.rules = Rules()
        self.broker = Broker()
        self.terminal = Terminal()
        self.broker.fronts += [self.terminal, Uncaptured(), Piped()]
        self._environment = ProcessEnvironment()
        self.broker.pool_of = self._environment.pool_of
        self.broker.end_running = self._end_running
        self.observer = StopObserver(self.rules, self.broker, self._environment)
        self._environment.observer = self.relay = Relay(self.observer, self.broker)
        self.broker.on_ending = self.relay.choose_path
        self.rules.listeners.append(self._breakpoints_changed)
        self._lock = threading.RLock()
        self._wanted_by: list[Any] = []
        self._closes_stops = False
        self._cancel_import: Callable[[], None] | None = None
        self._cancel_cell: Callable[[], None] | None = None
        self._display = Display(self.broker.show_interrupt, self.as_written, lambda error: self.exception_shown(error))
        self.exception_shown: Callable[[BaseException], None] = _nothing
        """Told of each exception that was displayed while interception is on; set by who explains them."""
        self._hooks = Hooks(self._breakpoint)
        self._interrupts = Interrupts(self.broker, self.observer.say, self._pause, self._interrupt_running)
        self._paused: Pause | None = None
        self._last_failures: Any = None  # of the interception that was on last
        self._ide_asked = False
        self._ide_patches: Any = None
        self._cancel_ide: Callable[[], None] | None = None

    # -- plugging in --------------------------------------------------------------------------------------------------

    @property
    def interception(self) -> Any:
        """The interception that is on, or None."""
        return self._environment.interception

    def want(self, who: Any) -> Any:
        """Switches interception on for `who`, if it is off. TensorFlow is imported if it was not.

        Raises:
          UnsupportedTensorFlowError: calls cannot be seen on this TensorFlow.
        """
        from pyfunc_debug.interception import Interception

        with self._lock:
            interception = self.interception
            if interception is None:
                self._help_ide(False)  # whoever sees all calls shows them to the IDE, too
                interception = Interception(self.relay)
                try:
                    interception.start()
                except BaseException:
                    self._help_ide(self._ide_asked)
                    raise
                interception.failures.on_stop_iteration = self._stop_iteration
                interception.failures.on_failure = self.observer.call_failed
                interception.failures.on_known = self._known
                interception.failures.call_of = self.relay.number
                interception.failures.keep = at_a_prompt()
                self._environment.interception = interception
                if not self._closes_stops:
                    self._closes_stops = True
                    atexit.register(self._close_stops)  # for good: a stop may outlive what switched interception on
                self._display.install()
                self._hooks.install()
            self._interrupts.install()  # a recording, too: `breakpoint()` in a body stops without a rule
            if who not in self._wanted_by:
                self._wanted_by.append(who)
            self._look_for_debugger()
            return interception

    def unwant(self, who: Any) -> tuple[str, ...]:
        """Switches off once nobody wants interception any more: every attribute is the original again.

        Returns:
          Names of attributes that somebody else had replaced meanwhile and that were left as they are.
        """
        if self._wanted_by == [who]:
            self.broker.settle()
        with self._lock:
            if who in self._wanted_by:
                self._wanted_by.remove(who)
            interception = self.interception
            if self._wanted_by or interception is None:
                return ()
            self._environment.interception = None
            foreign: tuple[str, ...] = interception.stop()
            interception.failures.end()
            if who != _CELL or interception.failures.newest_first():  # else an earlier cell's are still asked for
                self._last_failures = interception.failures
            self._display.uninstall()
            self._hooks.uninstall()
            self._interrupts.uninstall()
            self._help_ide(self._ide_asked)
            show_names()
            return foreign

    def plug_recorder(self, recorder: Recorder, lines: bool | str = False) -> Any:
        """Records every call from now on; with `lines`, also counts the lines that run, in graphs too with "graph"."""
        interception = self.want(recorder)
        try:
            interception.start_ids()
            if lines:
                self.relay.lines = interception.start_lines(lines == "graph")
        except BaseException:
            interception.stop_lines()
            interception.stop_ids()
            self.unwant(recorder)
            raise
        recorder.connect(
            interception.live_runs, interception.older_node, interception.locate_node, interception.user_line,
            interception.inputs.facts,
        )  # fmt: skip
        self.relay.recorder = recorder
        self.relay.choose_path()
        return interception

    def unplug_recorder(self, recorder: Recorder) -> tuple[str, ...]:
        """Stops recording."""
        if self.relay.recorder is recorder:
            self.relay.recorder = None
            self.exception_shown = _nothing
            if self.relay.lines is not None:
                self.relay.lines = None
                self.interception.stop_lines()
            self.relay.choose_path()
            foreign: tuple[str, ...] = self.interception.stop_ids()
            return foreign + self.unwant(recorder)
        return self.unwant(recorder)

    def _breakpoints_changed(self) -> None:
        """The first breakpoint switches interception on, the last one off."""
        if len(self.rules) and not self.relay.breaking:
            self.relay.breaking = True
            atexit.register(self._at_exit)
            self._cancel_import = when_imported("tensorflow", self._tensorflow_is_there)
        elif not len(self.rules) and self.relay.breaking:
            self.relay.breaking = False
            atexit.unregister(self._at_exit)
            if self._cancel_import is not None:
                self._cancel_import()
                self._cancel_import = None
            self.broker.release()
            self.unwant(self.rules)
        self.relay.choose_path()

    def _close_stops(self) -> None:
        """The program has ended, and a pipeline's thread may still be stopped: nobody would end the process then."""
        if self.broker.busy():
            self.observer.close(_LAST_CALLS_S)

    def _at_exit(self) -> None:
        self.observer.close(_LAST_CALLS_S)
        self.observer.tell_misses()
        self.rules.clear()

    def _tensorflow_is_there(self) -> None:
        in_import = self._cancel_import is not None
        try:
            self.want(self.rules)
        except PyfuncDebugError as error:
            self.relay.breaking = False
            if not in_import:
                raise
            warnings.warn(f"pyfunc_debug: no breakpoints: {error}", PyfuncDebugWarning, stacklevel=2)
        self.relay.choose_path()

    @property
    def cell_context(self) -> list[tuple[Any, Any]]:
        """Context variables that bodies get on TensorFlow's threads: what they print lands in the right cell."""
        return self.relay.cell_context

    @cell_context.setter
    def cell_context(self, found: list[tuple[Any, Any]]) -> None:
        self.relay.cell_context = found
        self.relay.choose_path()

    def cell_begins(self, breaks: bool = False) -> None:
        """A notebook's cell begins, on the main thread: the kernel has just set its own SIGINT handler.

        Args:
          breaks: Whether its code may call `breakpoint()`: then calls are seen until it ends.
        """
        self.broker.take_interrupt()
        if breaks and self._cancel_cell is None:
            self._cancel_cell = when_imported("tensorflow", self._see_the_cell)
        if self.interception is not None:
            self._interrupts.install()
            self._hooks.install()
            self._look_for_debugger()
        elif attached():
            self._help_ide(True)

    def _see_the_cell(self) -> None:
        try:
            self.want(_CELL)
        except PyfuncDebugError as error:
            warnings.warn(
                f"pyfunc_debug: breakpoint() does not stop in bodies: {error}", PyfuncDebugWarning, stacklevel=2
            )

    def _look_for_debugger(self) -> None:
        """An IDE that is attached, and coverage, see bodies' threads only if we report them to it, call by call."""
        self.observer.debugger = self._ide_asked or attached() or coverage_traces()
        self.relay.choose_path()

    def cell_ends(self) -> None:
        """The cell ended: the kernel and its event loop get SIGINT back."""
        if self._cancel_cell is not None:
            self._cancel_cell()
            self._cancel_cell = None
            self.unwant(_CELL)
        self._interrupts.uninstall()
        self._help_ide(self._ide_asked)

    def help_ide(self, on: bool) -> None:
        """Lets an IDE's line breakpoints stop in bodies, whenever it attaches, and coverage count their lines.

        Raises:
          UnsupportedTensorFlowError: calls cannot be seen on this TensorFlow.
        """
        with self._lock:
            self._ide_asked = on
            self._help_ide(self._ide_asked)
            if self.interception is not None:
                self._look_for_debugger()

    def _help_ide(self, on: bool) -> None:
        """Without interception a patch of its own shows the calls to the IDE and to coverage."""
        wanted = on and self.interception is None
        if wanted and self._ide_patches is None and self._cancel_ide is None:
            self._cancel_ide = when_imported("tensorflow", self._patch_for_ide)
        elif not wanted and (self._ide_patches is not None or self._cancel_ide is not None):
            if self._cancel_ide is not None:
                self._cancel_ide()
            if self._ide_patches is not None:
                self._ide_patches.revert()
            self._ide_patches = self._cancel_ide = None

    def _patch_for_ide(self) -> None:
        from pyfunc_debug.interception.ide import ide_patches
        from pyfunc_debug.interception.patches import Patches

        if sys.version_info >= (3, 12) and not coverage_traces():
            return  # debuggers see every thread by sys.monitoring
        in_import = self._cancel_ide is not None
        try:
            patches = Patches()
            patches.apply(ide_patches(self._environment.show_thread))
            self._ide_patches = patches
        except PyfuncDebugError as error:
            if not in_import:
                raise
            warnings.warn(f"pyfunc_debug: no IDE breakpoints: {error}", PyfuncDebugWarning, stacklevel=2)

    # -- breakpoint() -------------------------------------------------------------------------------------------------

    def _breakpoint(self, frame: FrameType, header: str | None, others: bool) -> bool:
        """`breakpoint()` or `pdb.set_trace()` called in `frame`; whether it is in a body, and was taken care of.

        Args:
          frame: Who called it.
          header: What the prompt says first.
          others: Whether another hook may be asked where nobody can answer.
        """
        return self._stop_in_body(frame, "breakpoint()", header, others)

    def _pause(self, missed: Callable[[], None]) -> Pause | None:
        """Ctrl-C while bodies run."""
        return self.observer.pause(lambda frame: self._stop_in_body(frame, PAUSED), missed)

    def _interrupt_running(self) -> bool:
        """The second Ctrl-C for bodies that hold the program, where nobody is at a terminal: the kernel's Interrupt.

        Also for short ones that a pipeline calls again and again: between two calls none of them runs.
        """
        until_s = time.monotonic() + _BETWEEN_S
        while not self.observer.runs():
            if time.monotonic() > until_s:
                return False
            time.sleep(_TICK_S)
        self.broker.interrupt_running()
        return True

    def _end_running(self, held: Container[int]) -> None:
        self.observer.end_running(lambda frame: self._stop_in_body(frame, PAUSED, ending=True), held)

    def look(self) -> list[dict[str, Any]]:
        """What runs in bodies now, on any thread: for each call what `stops.look.RunningCall.view` says. Stops nothing.

        Returns:
          By call: `node`, `call` (None where neither recorded nor stopped), `thread`, `since_ns` (None where not
          recorded), `stopped` (it is at a prompt or waits for one), `file`, `line`, `function`, `frames` (outermost
          first), `source` and `locals` (`name`, `type`, `text`) of the innermost frame. Calls without a line of the
          user's running (np.sin) are not among them.
        """
        if self.interception is None:
            return []
        from pyfunc_debug.interception.calls import fields_of

        views, held = [], self.broker.held()
        for ident, stack in self._environment.running().items():
            fields = fields_of(ident)
            if fields is None:  # it ended meanwhile
                continue
            token, ticket = fields[1], fields[3]
            number, native_id, since_ns = self.relay.facts_of(ticket)
            body = self.observer.name_of(self.observer.node(token, len(fields[2]))) or token
            running = RunningCall(
                body, number, name_of(ident, native_id), since_ns, ident in held,
                Generated(self._environment).stack([(frame, frame.f_lineno) for frame in stack]),
            )  # fmt: skip
            views.append(running.view(self._environment.user_line))
        return views

    def pause(self, missed: Callable[[], object] = lambda: None) -> bool:
        """Stops one of the bodies that run, at its next line, whoever answers then; for a panel's button.

        Args:
          missed: Called when all of them returned before they came to a line, on the thread of the last.

        Returns:
          Whether a body runs that can be stopped. It may still return before it comes to another line.
        """
        if self._paused is not None:
            self._paused.cancel()
        self._paused = self.observer.pause_for(lambda frame: self._stop_in_body(frame, "paused"), missed)
        return self._paused is not None

    def _stop_in_body(
        self, frame: FrameType, why: str, header: str | None = None, others: bool = False, ending: bool = False
    ) -> bool:
        from pyfunc_debug.interception.calls import bottom_frame, innermost_call

        call, bottom = innermost_call(), bottom_frame(frame)
        if call is None or bottom is None:
            return False
        number = self.relay.number(call.ticket)
        by_panel = why == "paused"  # the panel's Pause asks in the panel
        asked_there = not by_panel and not ending and not self.broker.somebody_is_named()
        if asked_there and self._environment.debugger_attached():
            self.observer.hold_here(frame, bottom, call.token, call.args, number, why)
            return True
        return self.observer.stop_here(frame, bottom, call.token, call.args, number, header, others, why, ending)

    def _known(self, error: BaseException) -> None:
        if isinstance(error, Abort):
            self.broker.program_knows()

    def _stop_iteration(self, token: str, error: BaseException) -> None:
        """Says so at once: TensorFlow may end a loop or an epoch because of it, without an error."""
        file, line, function = failure_frames(error.__traceback__)[-1]
        where = f"{cell_label(file) or file}:{line}"
        self.observer.say(
            f"StopIteration left the body of a py_function ({where}, in {function}): TensorFlow takes it for the "
            "end of the data and may end a loop or an epoch without an error. Catch it in the body, or give next() a "
            "default.",
            once=True,
        )

    def as_written(self, traceback: TracebackType | None) -> TracebackType | None:
        """A traceback in which functions that AutoGraph rewrote are as the user wrote them."""
        from pyfunc_debug.stops.written import as_written

        return as_written(traceback, self._environment)

    def failures(self) -> list[tuple[int | None, BaseException]]:
        """Failed calls whose exceptions are alive, newest first: of now, else of the last time that calls were seen.

        Returns:
          The call's number in the recording, if there was one, and the exception.
        """
        found: list[tuple[int | None, BaseException]] = []
        if self.interception is not None:
            found = self.interception.failures.newest_first()
        if not found and self._last_failures is not None:
            found = self._last_failures.newest_first()
        return found

    def forget_in_child(self) -> None:
        """In a forked child: everything off."""
        self._lock = threading.RLock()
        self.relay.recorder = self.relay.lines = None
        self._wanted_by.clear()
        self.rules.clear()
        if self.interception is not None:
            self.unwant(None)
