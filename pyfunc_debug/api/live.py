"""The recording that this process makes: started, stopped, and read meanwhile. One at a time."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import sys
import tempfile
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from pyfunc_debug.api.gradient_check import GradientCheck, check
from pyfunc_debug.api.instruments import Instruments
from pyfunc_debug.api.meta import Options, first_meta, last_meta, late_role
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.errors import BadOptionError, NotKeptError, PyfuncDebugError, PyfuncDebugWarning, RecordingBusyError
from pyfunc_debug.events import Notice
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.program.file_limit import room_for_files
from pyfunc_debug.program.frames import failure_frames
from pyfunc_debug.program.imports import when_imported
from pyfunc_debug.program.machine import Beside
from pyfunc_debug.recorder import Recorder
from pyfunc_debug.records import Call, Finding, Node
from pyfunc_debug.stops.display import chain, original_of
from pyfunc_debug.switchboard import board

if TYPE_CHECKING:  # the doctor is loaded when it is asked
    from pyfunc_debug.doctor.failures.pastes.explanation import Explanation

_FEW_CALLS = 200
"""Fewer calls of a body are not worth trying it as graph code: the finding `graduate`."""


class _Current:
    """The recording of this process, and the lock that guards only the question whether there is one."""

    lock = threading.Lock()
    session: LiveRecording | None = None
    latest: weakref.ref[LiveRecording] | None = None


class LiveRecording(Recording):
    """A recording that this process makes. Use it with `with`, or `start()` and `stop()`; read it at any time.

    Reading while it records shows everything up to the moment of asking.

    Attributes:
      explained: Why the newest exception reached the user, if that was said.
    """

    def __init__(self, path: str | os.PathLike[str] | None, options: Options) -> None:
        self._options = options
        self._explained: BaseException | None = None
        self._going_on = False  # whether a trace without an end was said
        self.explained: Finding | None = None
        self.failed_line: dict[str, Any] | None = None
        """What the names of the line held that failed for no known cause."""
        self.gives_way = False  # whether it stops when the program begins a recording of its own
        self._wanted_path = None if path is None else os.fspath(path)
        self._recorder: Recorder | None = None
        self._instruments: Instruments | None = None
        self._cancel_import: Any = None
        self._open_reader: Reader | None = None
        self._discard: Any = None
        self._temporary: list[Reader] = []
        self._ended: dict[str, Any] | None = None
        self._beside: Beside | None = None
        self._state = "new"
        self._path = self._wanted_path

    # -- switching ----------------------------------------------------------------------------------------------------

    def start(self) -> LiveRecording:
        """Starts recording, at once or as soon as the program imports TensorFlow.

        Returns:
          This recording.

        Raises:
          RecordingBusyError: this process is recording already.
          CannotWriteError: the file cannot be written there.
          BadOptionError: there is a file already, and `overwrite` was not asked for.
          UnsupportedTensorFlowError: this TensorFlow is too different.

        Example:
          recording = pfd.record("train.pfrec", overwrite=True).start()
        """
        if self._state != "new":
            raise RecordingBusyError(f"this recording is {self._state}: make a new one with pyfunc_debug.record()")
        standing = _Current.session
        if standing is not None and standing.gives_way:
            standing.stop()
        with _Current.lock:
            if _Current.session is not None:
                raise RecordingBusyError(
                    f"already recording into {_Current.session.path}: stop that first (one recording at a time)"
                )
            _Current.session = self
            _Current.latest = weakref.ref(self)
        try:
            path = self._wanted_path
            if path is None:
                folder = tempfile.mkdtemp(prefix="pyfunc_debug_")
                self._discard = weakref.finalize(self, _discard, folder, self._temporary, os.getpid())
                path = os.path.join(folder, "recording.pfrec")
            options = self._options
            self._recorder = Recorder(
                path, options.policies, options.budget, first_meta(options), options.overwrite, options.sampling
            )
            self._path = self._recorder.path
            self._beside = Beside()
            self._recorder.ask_for_role(late_role)
            self._instruments = Instruments(options, self._recorder)
            advice, endless = weakref.WeakMethod(self._advice), weakref.WeakMethod(self._endless)
            self._instruments.watch_for_hangs(
                functools.partial(_while_held, advice), functools.partial(_while_held, endless)
            )
            self._state = "recording"
            self._cancel_import = when_imported("tensorflow", self._tensorflow_is_there)
        except BaseException:
            self._state = "stopped" if self._recorder else "new"
            _Current.session = None
            if self._recorder is not None:
                if self._instruments is not None:
                    self._instruments.off()
                self._recorder.close({})
            raise
        atexit.register(self._at_exit)
        return self

    def stop(self) -> None:
        """Stops recording, puts TensorFlow back as it was, and completes the file. Stopping twice does nothing.

        Example:
          recording.stop()
          print(recording.ledger())
        """
        if self._state != "recording":
            return
        self._state = "stopping"
        recorder, instruments = self._recorder, self._instruments
        assert recorder is not None
        assert instruments is not None
        try:
            if self._cancel_import is not None:
                self._cancel_import()
                self._cancel_import = None  # it holds this object: a temporary recording is deleted with the last name
            instruments.note_leaks()
            instruments.note_entries()
            instruments.note_sessions()
            growth = recorder.growth()
            foreign = instruments.off()
            news = instruments.note_lines()
            end_ns = time.monotonic_ns()  # what is tried afterwards is not the program's time
            others = self._beside.share() if self._beside is not None else None
            if self._may_try():
                self._check_gradients()
                self._try_graph_code(end_ns)
                self._put_batches_together()
            if self._open_reader is not None:
                self._open_reader.release()
            result = recorder.close({**last_meta(instruments.limits, self._ended, end_ns), "others": others, **growth})
            if news:  # only now: a filter may make exceptions of warnings
                self._say(news)
            if foreign:
                self._say(f"{', '.join(foreign)} had been replaced by something else meanwhile and was left as it is")
            if result["stopped"]:
                self._say(result["stopped"])
            for trouble, times in result["troubles"].items():
                self._say(f"had trouble ({times}x), the program was not affected: {trouble}")
        finally:
            self._state = "stopped"
            self._explained = None  # it holds the program's frames
            _Current.session = None
            atexit.unregister(self._at_exit)

    def _may_try(self) -> bool:
        """Whether bodies may run once more: the program did not fail, and nothing of it runs or waits to end."""
        recorder = self._recorder
        if self._interception is None or recorder is None or sys.is_finalizing():
            return False
        return (self._ended or {}).get("error") is None and not recorder.now()["open"]

    def _try_graph_code(self, end_ns: int) -> None:
        """Notes whether bodies that seem to need no Python are the same, and faster, as graph code."""
        recorder = self._recorder
        assert recorder is not None
        if self._options.sampling is not None or recorder.now()["calls"] < _FEW_CALLS:
            return
        from pyfunc_debug.api.graph_code_sample import tried
        from pyfunc_debug.doctor.facts import Facts

        try:
            recorder.flush()
            facts = Facts(self._reader)
            for node, seen in tried(self, facts, end_ns - int(facts.meta["clock"]["monotonic_ns"])):
                recorder.notice(Notice.GRAPH_CODE, node.token, None, **seen)
        except Exception as error:
            recorder.trouble("trying bodies as graph code", error)

    def _advice(self, rule: str) -> str:
        """What the doctor says to do about something that stands still, on the thread that noticed it."""
        recorder = self._recorder
        if recorder is None:
            return ""
        from pyfunc_debug.doctor.text import fix_lines

        try:
            recorder.flush()
            with contextlib.closing(Recording(recorder.path)) as so_far:
                found = so_far.findings(select=[rule])
            why = [f"  {one}" for one in found[0].evidence if one.startswith("because ")] if found else []
            return "\n".join([*why, *fix_lines(found[0].fix)]) if found else ""
        except Exception as error:
            recorder.trouble("advice about a hang", error)
            return ""

    def _endless(self, frame: FrameType) -> str:
        """Why the graph trace, or Keras' epoch, that the main thread is in does not end; on the thread that looks."""
        recorder, interception = self._recorder, self._interception
        if recorder is None or interception is None or self._going_on:
            return ""
        from pyfunc_debug.doctor.failures.datasets import dropping_filters, endless_loops, endless_readings
        from pyfunc_debug.doctor.failures.graphs import endless_traces
        from pyfunc_debug.doctor.failures.kept import noted
        from pyfunc_debug.doctor.failures.models import endless_epochs

        what = "a graph trace"
        try:
            explanation = endless_traces.going_on(frame, interception.user_line)
            if explanation is None:
                explanation, what = endless_epochs.going_on(frame, interception.user_line), "an epoch"
            if explanation is None:
                explanation, what = endless_loops.going_on(frame, interception.user_line), "a loop"
            if explanation is None:
                explanation, what = endless_readings.going_on(frame, interception.user_line), "a pass"
            inputs = interception.inputs.facts() if explanation is None and dropping_filters.waits(frame) else []
            if any("Filter" in [stage["kind"] for stage in one["stages"]] for one in inputs if not one["taken"]):
                recorder.flush()
                with contextlib.closing(Recording(recorder.path)) as so_far:
                    rows = so_far.reader.rows
                    explanation = dropping_filters.going_on(frame, interception.user_line, inputs, rows)
        except Exception as error:  # the thread goes on while we look
            recorder.trouble("looking at a graph trace", error)
            return ""
        if explanation is None:
            return ""
        recorder.notice(Notice.FAILURE, None, None, **noted(explanation, f"{what} that did not end"))
        self._going_on = True
        return explanation.text()

    def _put_batches_together(self) -> None:
        """Notes metrics whose mean over batches is not what the rows of these batches have together."""
        recorder = self._recorder
        assert recorder is not None
        if not recorder.now()["calls"]:
            return
        from pyfunc_debug.api.batch_mean_sample import batch_means
        from pyfunc_debug.doctor.facts import Facts

        try:
            recorder.flush()
            for node, found in batch_means(self, Facts(self._reader)):
                recorder.notice(Notice.BATCH_MEAN, node.token, None, **found)
        except Exception as error:
            recorder.trouble("putting batches together", error)

    def _check_gradients(self) -> None:
        """Notes gradients of the user's own that finite differences contradict."""
        recorder = self._recorder
        assert recorder is not None
        if not self._options.policies.keeps_any_in_full():
            return
        from pyfunc_debug.api.gradient_sample import wrong_gradients

        try:
            recorder.flush()
            for node, found in wrong_gradients(self):
                worst = next(part for part in found[0].inputs if part.wrong)
                recorder.notice(
                    Notice.GRADIENT_CHECK, node.token, found[0].gradient, path=worst.path, index=list(worst.worst),
                    recorded=worst.recorded, finite=worst.finite, gradients=[one.gradient for one in found],
                )  # fmt: skip
        except Exception as error:
            recorder.trouble("checking gradients", error)

    def note_end(self, error: BaseException | None) -> None:
        """Notes how what was recorded ended; call it before `stop`.

        Args:
          error: The exception that ended it; None if it ended well. Until this is called, nobody knows.
        """
        self._ended = {"error": None}
        if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
            return
        original = original_of(error)
        frames = failure_frames(error.__traceback__)
        if self._interception is not None:
            frames = [(*self._interception.user_line(file, line), name) for file, line, name in frames]
        self._ended = {
            "error": type(error).__name__,
            "message": str(error)[:2000],
            "body": None if original is None else type(original).__name__,
            "frames": frames,
        }

    def __enter__(self) -> LiveRecording:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.note_end(error)
        if error is not None:
            self.explain_failure(error)
            with room_for_files(str(error)):
                chain(error, board.as_written)  # it will be displayed when the hooks that do this are gone
        self.stop()

    def explain_failure(self, error: BaseException, quietly: bool = False) -> Finding | None:
        """Prints why an exception reached the user, if its cause is a known trap, and records it for the doctor.

        Args:
          error: The exception, as it is about to leave the recorded code. Telling the same one again does nothing.
          quietly: Whether it is only recorded.

        Returns:
          What was said, as the finding that the doctor will give; None for any other failure.
        """
        if self._state != "recording" or self._recorder is None:
            return None
        if self._explained is error or not isinstance(error, (Exception, KeyboardInterrupt)):
            return None
        self._explained = error
        with room_for_files(str(error)):
            return self._explained_failure(error, quietly)

    def _explained_failure(self, error: BaseException, quietly: bool) -> Finding | None:
        assert self._recorder is not None
        try:
            if self._interception is None:  # TensorFlow was not imported, or that failed
                return self._explain_import(error, quietly)
            from pyfunc_debug.doctor.failures.causes import explain
            from pyfunc_debug.doctor.failures.datasets import endless_loops, endless_readings
            from pyfunc_debug.doctor.failures.graphs import endless_traces
            from pyfunc_debug.doctor.failures.models import endless_epochs
            from pyfunc_debug.doctor.failures.reading.failed_line import held

            asked = error, self._interception.user_line, lambda *query: self._reader.rows(*query)
            stopped = error.__context__ if isinstance(error, SystemError) else error  # TensorFlow lost an interrupt
            if isinstance(stopped, KeyboardInterrupt):
                explanation = endless_traces.interrupted(stopped, self._interception.user_line)
                explanation = explanation or endless_epochs.interrupted(stopped, asked[1], asked[2])
                explanation = explanation or endless_loops.interrupted(stopped, self._interception.user_line)
                explanation = explanation or endless_readings.interrupted(stopped, self._interception.user_line)
                if explanation is None or self._going_on:  # that was said, perhaps of a line further in
                    return None
            else:
                explanation = explain(*asked)
            if explanation is None:
                line = held(*asked, shown=self._recorder.sees_values)
                if line is not None:
                    self.failed_line = line
                    self._recorder.notice(Notice.FAILED_LINE, None, None, **line)
                return None
            return self._told(explanation, error, quietly)
        except Exception as trouble:  # never in the way of the program's own exception
            self._recorder.trouble("explaining a failure", trouble)
            return None

    def _explain_import(self, error: BaseException, quietly: bool) -> Finding | None:
        """The same before TensorFlow is there: a file of the program's may have the name of one of its modules."""
        from pyfunc_debug.doctor.failures.graphs import own_names
        from pyfunc_debug.doctor.failures.reading.situation import situation

        explanation = own_names.explain(situation(error, lambda file, line: (file, line), lambda *query: []))
        return self._told(explanation, error, quietly) if explanation is not None else None

    def _told(self, explanation: Explanation, error: BaseException, quietly: bool) -> Finding:
        """Prints and records why an exception reached the user."""
        from pyfunc_debug.doctor.failures.kept import finding_of, recorded_facts

        assert self._recorder is not None
        self._recorder.notice(Notice.FAILURE, None, None, **recorded_facts(explanation, error))
        if not quietly:
            above = "" if str(error).endswith("\n") else "\n"  # AutoGraph's words end with an empty line
            print(f"{above}{explanation.text()}", file=sys.stderr, flush=True)
        self.explained = finding_of(recorded_facts(explanation, error))
        return self.explained

    def _at_exit(self) -> None:
        self.stop()

    def _tensorflow_is_there(self) -> None:
        """Switches interception on. Runs inside the program's `import tensorflow`: it must not raise there."""
        instruments = self._instruments
        assert instruments is not None
        in_import = self._cancel_import is not None
        try:
            instruments.on()
            this = weakref.ref(self)
            board.exception_shown = lambda error: _explain(this(), error)
        except Exception as error:
            if not in_import:
                raise
            why = str(error) if isinstance(error, PyfuncDebugError) else f"{type(error).__name__}: {error}"
            instruments.limits = f"not recording: {why}"
        if instruments.limits:
            try:
                self._say(instruments.limits)
            except PyfuncDebugWarning:  # a filter made an exception of it: the recording's `meta` says it too
                if not in_import:
                    raise

    @staticmethod
    def _say(text: str) -> None:
        warnings.warn(f"pyfunc_debug: {text}", PyfuncDebugWarning, stacklevel=4)

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def _interception(self) -> Any:
        """The interception that is on, or was; None before TensorFlow is there."""
        return None if self._instruments is None else self._instruments.interception

    @property
    def _reader(self) -> Reader:
        if self._state == "new":
            raise BadOptionError(
                "nothing is recorded yet: call start(), or use `with pyfunc_debug.record(...) as recording:`"
            )
        if self._state == "recording" and self._recorder is not None and self._instruments is not None:
            limits = self._instruments.note_lines()
            if limits:
                self._say(limits)
            self._recorder.flush()
        if self._open_reader is None:
            self._open_reader = Reader(self.path, trusted=True)
            if self._discard is not None:  # the temporary file goes when this object does
                self._temporary.append(self._open_reader)
        self._open_reader.follow(self.path)
        return self._open_reader

    def _alive(self, call: Call) -> Call:
        """Its `check_gradient` and `replay` work, as long as the body lives."""
        return replace(super()._alive(call), _check=self.check_gradient)

    def check_gradient(self, number: int) -> GradientCheck:
        """Finite differences of a call's body at its recorded inputs, against the recorded gradient.

        Args:
          number: A forward call that was differentiated, or a gradient call.

        Raises:
          NotKeptError: it cannot be checked; the message says why.
          NotDeterministicError: the body gives something else for the same inputs.
        """
        gradient = super().call(number)
        if gradient.kind == "forward":
            if not gradient.gradients:
                raise NotKeptError(f"call #{number} was not differentiated: there is no gradient to check")
            gradient = super().call(gradient.gradients[0])
        if gradient.forward is None or gradient.status != "ok":
            raise NotKeptError(f"it is not known which call gradient call #{gradient.id} belongs to, or it failed")
        call = super().call(gradient.forward)
        return check(call, gradient, self._body(call, None))

    def _body(self, call: Call, through: Callable[..., Any] | None) -> Callable[..., list[Any]]:
        node, body = self._node_of(call), None
        if node.token is not None and "tensorflow" in sys.modules:
            from pyfunc_debug.interception.rerun import body_runner

            body = body_runner(node.token, through)
        if body is None:
            raise NotKeptError(f"the body of call #{call.id} does not exist any more in this process")
        first = next(self.calls(node=node.id), None)
        if self._eager_with_own(node) and (first is None or first.id != call.id):
            raise NotKeptError(
                f"call #{call.id} is one of several eager calls of {node.body} from one line, each of which may have "
                "variables of its own around it: only those of the first one are known. Give the body: "
                f"recording.call({call.id}).replay(function=...)"
            )
        return body

    def _eager_with_own(self, node: Node) -> bool:
        """Whether eager calls share a node, and its body has a closure or is a partial, which other calls may lack."""
        from pyfunc_debug.interception.bodies import scope
        from pyfunc_debug.interception.rerun import body_function

        kind = next((function.kind for function in self.functions() if function.id == node.function), None)
        found = body_function(node.token) if kind == "eager" and node.token is not None else None
        return found is not None and bool(scope(found[0])[0])

    def _names_of_body(self, call: Call) -> dict[str, Any]:
        node = self._node_of(call)
        if node.token is None or "tensorflow" not in sys.modules:
            return {}
        from pyfunc_debug.interception.bodies import scope
        from pyfunc_debug.interception.rerun import body_function

        found = body_function(node.token)
        if found is None:
            return {}
        own, globals_ = scope(found[0])
        return globals_ if self._eager_with_own(node) else {**globals_, **own}

    @property
    def path(self) -> str:
        """The file."""
        if self._recorder is not None:
            self._path = self._recorder.path  # it may have been moved
        if self._path is None:
            raise BadOptionError("the recording has no file before start()")
        return self._path

    @property
    def state(self) -> str:
        """`new`, `recording`, `stopping` or `stopped`."""
        return self._state

    def function_number(self, function: Any) -> int | None:
        """The number under which a tf.function object was traced in this recording (`trace.object`), or None."""
        number: int | None = None if self._interception is None else self._interception.function_number(function)
        return number

    def keep(self, node: str) -> bool:
        """Keeps the values of calls in full from now on, of nodes whose body, op or token matches.

        Args:
          node: A glob.

        Returns:
          Whether there is a recording going on that does; else record again with values={node: "full"}.
        """
        if self._recorder is None or self._state != "recording":
            return False
        self._recorder.keep(node)
        return True

    def progress(self) -> dict[str, int]:
        """Counts while recording: `calls`, `queued`, `open`. Cheap: reads no file."""
        return self._recorder.now() if self._recorder is not None else {"calls": 0, "queued": 0, "open": 0}

    def close(self) -> None:
        """Stops, if need be, and closes the file."""
        self.stop()
        if self._open_reader is not None:
            self._open_reader.close()
            self._open_reader = None

    def abandon(self) -> None:
        """In a forked child: stops recording there, and leaves the file to the parent."""
        if self._cancel_import is not None:
            self._cancel_import()
            self._cancel_import = None
        if self._recorder is not None:
            self._recorder.abandon()
        self._state = "stopped"
        atexit.unregister(self._at_exit)
        if self._open_reader is not None:
            self._open_reader.abandon()

    def __repr__(self) -> str:
        return "<recording, not started>" if self._state == "new" else super().__repr__()


def _explain(recording: LiveRecording | None, error: BaseException) -> None:
    if recording is not None:
        recording.explain_failure(error)


def current() -> LiveRecording | None:
    """The recording that is going on in this process, or None."""
    return _Current.session


def latest() -> LiveRecording | None:
    """The recording that this process began last, if somebody still holds it."""
    return None if _Current.latest is None else _Current.latest()


def _after_fork_in_child() -> None:
    """A forked child never writes into its parent's file."""
    _Current.lock = threading.Lock()
    session, _Current.session = _Current.session, None
    if session is not None:
        session.abandon()


def _discard(folder: str, readers: list[Reader], process: int) -> None:
    """Deletes the temporary file of a recording that nobody holds any more; a forked child leaves it to its parent."""
    if os.getpid() != process:
        return
    for reader in readers:
        reader.close()
    shutil.rmtree(folder, ignore_errors=True)


def _while_held(method: weakref.WeakMethod[Any], asked: Any) -> str:
    """Calls a method of a recording, if somebody holds it: a temporary one is deleted with the last name of it."""
    found = method()
    return str(found(asked)) if found is not None else ""


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork_in_child)
