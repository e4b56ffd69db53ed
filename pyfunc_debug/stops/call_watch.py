"""One call under watch: the trace function that waits for the body's frame, the stops in it, and its end."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Collection, Iterable
from types import FrameType, TracebackType
from typing import Any

from pyfunc_debug.events import Notice
from pyfunc_debug.program.frames import is_generated, is_user, user_traceback
from pyfunc_debug.stops.chained_tracer import chained_tracer, settrace
from pyfunc_debug.stops.conditions import bind_back
from pyfunc_debug.stops.generated import Generated, has
from pyfunc_debug.stops.generators import Resumed, delegates, identity, is_generator, returns
from pyfunc_debug.stops.host import TracerHost
from pyfunc_debug.stops.in_ide import IDE, hold
from pyfunc_debug.stops.plan import Plan
from pyfunc_debug.stops.rules import STEPPING, STOPPED, Breakpoint, same_file
from pyfunc_debug.stops.shared import Shared
from pyfunc_debug.stops.stop import Abort, Stop
from pyfunc_debug.stops.tracer import Tracer

_LONG_NS = 1_000_000
"""Shorter waits of a call that queued for a stop and did not get its turn do not count."""
_RETURN = "__return__"
_MOST_SPANS = 100
"""Prompts of one stop whose times are reported one by one: somebody who steps through a loop makes thousands."""


class CallWatch(TracerHost):
    """One call under watch, from `enter` to `leave` or `fail`."""

    def __init__(self, shared: Shared, plan: Plan, token: str, args: Any, number: int | None, recorded: bool) -> None:
        self.shared = shared
        self.recorded = recorded
        """Whether `number` is the call's in a recording: else there is nothing to report to the recording."""
        self.plan = plan
        self.token = token
        self.args = args
        self.number = number
        self.facts = plan.facts
        self.forward = plan.forward
        self.body = plan.body
        self.before: Breakpoint | None = None
        self.before_reason = ""
        self.lines = [rule for rule in plan.lines if rule.enabled]
        self.after = [rule for rule in plan.after if rule.enabled]
        self.errors = [rule for rule in plan.errors if rule.enabled]
        self.entries = [rule for rule in plan.starts if rule.enabled] if plan.elements else []
        """Judged where the user's code is entered: a node that takes elements may come to none, or to a helper."""
        self.previous: Any = None
        self.tracer: Tracer | None = None
        self.frame: FrameType | None = None
        self.generated = Generated(shared.environment)
        self.resumed: Resumed | None = None
        """Where a step over a yield, in an earlier call, is to stop."""
        self._nested = False
        self._armed = False
        self._seen = False
        self._result: tuple[Any] | None = None
        self._line_at: dict[tuple[int, int, int | None], tuple[Breakpoint, ...]] = {}
        self._ide_at_line: tuple[Breakpoint, str, str] | None = None
        """What stops in the IDE at the body's first line."""

    # -- arming -------------------------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Waits for the body's frame on this thread."""
        before = self.before
        file = self.facts.body.file if self.facts is not None else None
        if self.facts is None or (file is None and not self.plan.elements) or self.facts.gradient_of is not None:
            if before is not None:
                self._stand_in(before, self.before_reason)
            if self.lines and not self._armed:  # in what a tf.custom_gradient runs
                self.find_chained()
                self._arm(self._call)
            return
        self.find_chained()
        self._arm(self._wait)

    def _arm(self, function: Any) -> None:
        """This thread's trace function is ours until the call ends, or an IDE steps on."""
        self._armed = True
        self.shared.environment.keep_debugger_off(True)
        settrace(function)

    def find_chained(self) -> None:
        """Notes whose trace function this thread has; ours, where a watched body calls another."""
        self.previous = sys.gettrace()
        owner = getattr(self.previous, "__self__", None)
        outer = owner.host if isinstance(owner, Tracer) else owner
        self._nested = isinstance(outer, CallWatch)
        self.chained = outer.chained if isinstance(outer, CallWatch) else chained_tracer(self.previous)

    @staticmethod
    def of(frame: FrameType, bottom: FrameType) -> CallWatch | None:
        """Who watches, in this thread's trace function, the call that `frame` is in; `bottom` called its body."""
        owner = getattr(sys.gettrace(), "__self__", None)
        watch = owner.host if isinstance(owner, Tracer) else owner
        one: FrameType | None = frame
        while isinstance(watch, CallWatch) and one is not None and one is not bottom:
            if one is watch.frame:
                return watch
            one = one.f_back
        return None

    def _stand_in(self, rule: Breakpoint, reason: str, **more: Any) -> None:
        """Stops in a frame of ours that holds the inputs: the body has none in Python, or it is a gradient's."""
        self.find_chained()
        why = f"breakpoint {rule.number} ({rule.when})"
        tracer = None if self._in_ide(rule) else self.tracer_for(rule, why, reason)
        before = list(self.args)
        names: dict[str, Any] = {**self.plan.names(self.args), **more}

        def prompt(frame: FrameType) -> None:
            self.stand_in = frame
            if tracer is None:
                self._hold(rule, why, reason, frame)
            else:
                tracer.header = self._what_to_do(rule)
                tracer.from_stand_in(frame)

        # Under the name of the body, so that `where` names it; an IDE shows a file of the user's.
        code = compile("stop(frame())", f"<{self.body}>", "exec").replace(co_name=self.body)
        place = self._place() if tracer is None else None
        if place is not None:
            code = code.replace(co_filename=place[0], co_firstlineno=place[1])
        modules = {name: sys.modules[of] for name, of in (("np", "numpy"), ("tf", "tensorflow")) if of in sys.modules}
        exec(code, {"stop": prompt, "frame": sys._getframe, **modules}, names)
        if rule.when != "after":
            self._change_inputs(names, before)
        if names.get(_RETURN) is not more.get(_RETURN):
            self._result = (names.get(_RETURN),)
            self._tell(Notice.CHANGED_BY_HAND, names=["the return value"])
        if tracer is None:
            return
        if tracer.stepping:  # into the user's code that the gradient calls
            self._armed = True
            settrace(tracer.trace_dispatch)
        else:
            tracer.finish()

    def _what_to_do(self, rule: Breakpoint) -> str:
        """What can be done at a prompt where there is no line of the user's."""
        if self.facts is not None and self.facts.gradient_of is not None:
            return "`s` goes to your code of the gradient; assign to `dy`, or to `__return__`"
        found = self.plan.input_names(len(self.args)) if rule.when != "after" else ()
        names = [f"`{name}`" if name.isidentifier() else f"`inputs[{n}]`" for n, name in enumerate(found)]
        return f"{self.body} has no Python code; assign to {', or to '.join([*names, '`__return__`'])}"

    def _place(self) -> tuple[str, int] | None:
        """A line of the user's for a call that has no frame of its own: its body's, else where its node is made."""
        facts = self.forward or self.facts
        if facts is None:
            return None
        if facts.body.file is not None:
            return facts.body.file, facts.body.line or 1
        return (facts.stack[-1].file, facts.stack[-1].line) if facts.stack else None

    def _change_inputs(self, names: dict[str, Any], before: list[Any]) -> None:
        """What was assigned at the prompt of a stand-in frame is what the body, or the gradient, gets."""
        now = list(self.args)
        for index, (value, old) in enumerate(zip(bind_back(names, self.plan.input_names(len(before))), before)):
            if value is not old and now[index] is old:
                now[index] = value
        if all(one is other for one, other in zip(now, before)):
            return
        try:
            self.args[:] = before  # what `inputs[0] = ...` did is checked first
            self.shared.environment.replace_inputs(self.args, now)
        except Exception as error:
            self.shared.say(
                f"the input that you gave {self.body} cannot be used ({type(error).__name__}: {error}): "
                "it got what TensorFlow passed"
            )

    def is_body(self, frame: FrameType) -> bool:
        return frame is self.frame or self._is_body_code(frame)

    def _is_body_code(self, frame: FrameType) -> bool:
        code, body = frame.f_code, self.facts.body if self.facts is not None else None
        if body is None or body.file is None or body.line is None:
            return False
        if code.co_filename == body.file:
            return code.co_firstlineno == body.line
        if not code.co_filename.startswith("<") and not is_generated(code.co_filename):
            return False
        return self.user_line(code.co_filename, code.co_firstlineno) == (body.file, body.line)

    def _is_entered(self, frame: FrameType) -> bool:
        """Whether this is the body's frame; where that only makes what yields the elements, one that a rule names."""
        if self.facts is None or self.facts.body.elements != "another's":
            return self._is_body_code(frame)
        return any(self._means(rule, frame) for rule in (*self.entries, *self.after))

    def _means(self, rule: Breakpoint, frame: FrameType) -> bool:
        """Whether a rule of this node's plan means this frame."""
        facts = self.facts
        if facts is None or facts.body.elements != "another's":
            return True
        if self._is_body_code(frame):
            return rule.file is not None or rule.fits(facts)
        return rule.file is None and is_user(frame.f_code.co_filename) and rule.fits_name(_qualified(frame))

    def _wait(self, frame: FrameType, event: str, arg: Any) -> Any:
        """The thread's trace function until the body's frame is entered; its own frames are never traced before."""
        other = self.chained
        if other is None:
            return self._await_body(frame, event)
        other.tell(frame, event, arg)
        return self._await_body(frame, event) or other.follow

    def _await_body(self, frame: FrameType, event: str) -> Any:
        try:
            if event != "call":
                return None
            again = self.resumed == identity(frame)
            if not again and not self._is_entered(frame):
                return self.entered(frame) if self.plan.elements and is_user(frame.f_code.co_filename) else None
            self._seen = True
            self.frame = frame
            for rule in self.entries:
                reason = self._reason(rule, self.generated.names(frame), frame) if self._means(rule, frame) else None
                if reason is not None and self.before is None:
                    self.before, self.before_reason = rule, reason
            before = self.before
            if before is not None:
                why = f"breakpoint {before.number} ({before.when})"
                if self._in_ide(before):
                    self._ide_at_line = before, why, self.before_reason
                    frame.f_trace_lines = True
                    settrace(self._call)
                    return self._stop_in_ide(frame) if delegates(frame) else self.local
                return self._stop_at_call(frame, self.tracer_for(before, why, self.before_reason))
            if again:
                return self._step_on(frame)
            frame.f_trace_lines = bool(self.lines) or self.generated.base(frame) is not None
            settrace(self._call)
            return self.local
        except Abort:
            raise
        except Exception as error:
            settrace(self.previous)
            self.trouble("arming a breakpoint", error)
            return None

    @staticmethod
    def _stop_at_call(frame: FrameType, tracer: Tracer) -> Any:
        """At the first line that comes; a generator in `yield from` goes on in another, and may come to none."""
        frame.f_trace_lines = True  # a generator's frame has that of the call before
        return tracer.from_line(frame) if delegates(frame) else tracer.from_call(frame)

    def _step_on(self, frame: FrameType) -> Any:
        """Stops where a step over a yield goes on; None elsewhere."""
        if self.resumed is None or self.resumed != identity(frame):
            return None
        return self._stop_at_call(frame, self.tracer_for(None, "stepped on after its yield"))

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A function that the body calls: traced if a `file.py:line` may be in it."""
        other = self.chained
        if other is not None:
            other.tell(frame, event, arg)
        return self._step_on(frame) or self.entered(frame) or (None if other is None else other.follow)

    def entered(self, frame: FrameType) -> Any:
        code = frame.f_code
        base = self.generated.base(frame)
        if base is not None and base is self.frame:  # a branch or a loop of the body
            return self.local
        if self.lines:
            file = code.co_filename if base is None else self.user_line(code.co_filename, base.f_code.co_firstlineno)[0]
            if any(same_file(rule.file or "", file) for rule in self.lines):
                return self.local
        return None

    def local(self, frame: FrameType, event: str, arg: Any) -> Any:
        """The trace function of a frame in which a rule may stop."""
        other = self.chained
        if other is not None:
            other.tell(frame, event, arg)
        return self.look(frame, event, arg)

    def look(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Whether a rule stops the call at this line, or as it returns."""
        try:
            if event == "line":
                if self._ide_at_line is not None and frame is self.frame:
                    return self._stop_in_ide(frame)
                for rule in self._rules_at(frame):
                    reason = self._reason(rule, self.generated.names(frame), frame)
                    if reason is not None:
                        why = f"breakpoint {rule.number} ({rule.where}{self._joined_to(rule, frame)})"
                        if self._in_ide(rule):
                            self._ide_at_line = rule, why, reason
                            return self._stop_in_ide(frame)
                        return self.tracer_for(rule, why, reason).from_line(frame)  # it traces the frame from here on
            elif event == "return" and frame is not self.frame:
                self.generated.note_left(frame)
            elif event == "return" and returns(frame, arg):
                for rule in self.after:
                    reason = self._reason(rule, self._returned(frame, arg), frame) if self._means(rule, frame) else None
                    if reason is not None:
                        why = f"breakpoint {rule.number} (after)"
                        if self._in_ide(rule):
                            self._return_in_ide(rule, why, reason, frame, arg)
                        else:
                            self.tracer_for(rule, why, reason).from_return(frame, arg)
                        break
        except Abort:
            if self.chained is not None:
                self.chained.unwind(frame, event, None)
            raise
        except Exception as error:
            self.trouble("a breakpoint", error)
            return None
        return self.local

    # -- in an IDE ----------------------------------------------------------------------------------------------------

    def _in_ide(self, rule: Breakpoint) -> bool:
        """Whether an attached IDE gets a rule's stop: the rule asks for it, or nobody was named to answer."""
        asked = rule.prompt == "debugger" or not self.shared.broker.somebody_is_named()
        return asked and self.shared.environment.debugger_attached()

    def hold_here(self, frame: FrameType, why: str) -> None:
        """Stops in the IDE at the line at which this frame is: `breakpoint()`."""
        steps = self._hold(None, why, "", frame)
        if self._armed and not (steps and sys.version_info < (3, 12)):
            self._arm(self._call)
        else:
            self.shared.environment.attach_debugger()

    def _hold(
        self, rule: Breakpoint | None, why: str, reason: str, frame: FrameType, error: BaseException | None = None,
        place: tuple[str, int] | None = None,
    ) -> bool:  # fmt: skip
        """Holds the call in the IDE, which shows the user's `place`; whether it goes on with a step."""
        broker, environment = self.shared.broker, self.shared.environment
        if reason:
            why += f", {reason}"
        stop = Stop(self.facts, self.number, rule, why, self.args, self.plan.input_names(len(self.args)), self.body)
        stop.condition_error = reason
        span: list[int | None] = [time.monotonic_ns(), None, None]
        stop.spans.append(span)
        stop.interrupted = True
        self._note_stop(stop, None)
        try:
            refused = broker.acquire(stop, IDE)
            stop.interrupted = False
            self.count(stop, refused or STOPPED, first=True)
            if refused:
                return False
            span[1] = time.monotonic_ns()
            environment.keep_debugger_off(False)
            return hold(stop, broker, environment, frame, error, place)
        finally:
            span[2] = time.monotonic_ns()
            self._note_stop(stop, span[2])

    def _stop_in_ide(self, frame: FrameType) -> Any:
        """Stops in the IDE at a line; the frame's trace function from here on."""
        if self._ide_at_line is None:
            return self.local
        held, self._ide_at_line = self._ide_at_line, None
        steps = self._hold(*held, frame)
        if steps and sys.version_info < (3, 12):  # the IDE's trace function stops after the step
            self.shared.environment.attach_debugger()
            return frame.f_trace
        self._arm(self._call)
        return self.local

    def _return_in_ide(self, rule: Breakpoint, why: str, reason: str, frame: FrameType, value: Any) -> None:
        """Stops in the IDE as the body returns: `__return__` is what it returns, and may be changed."""
        variables = frame.f_locals
        variables[_RETURN] = value
        seen = self.generated.seen(frame, frame.f_lineno)  # AutoGraph returns from a line of its own
        self._hold(rule, why, reason, frame, place=(seen.f_code.co_filename, seen.f_lineno))
        given = variables.get(_RETURN, value)
        if given is not value:
            self._result = (given,)
            self._tell(Notice.CHANGED_BY_HAND, names=["the return value"])

    def passed(self, frame: FrameType, event: str, arg: Any, already: Breakpoint | None) -> None:
        more: dict[str, Any] = {}
        rules: Iterable[Breakpoint] = ()
        if event == "line":
            rules, more = self._rules_at(frame), self.generated.names(frame)
        elif event == "return" and frame is self.frame and returns(frame, arg):
            rules, more = [rule for rule in self.after if self._means(rule, frame)], self._returned(frame, arg)
        for rule in rules:
            if rule is not already and self._reason(rule, more, frame) == "":
                rule.tally(STOPPED)

    def _returned(self, frame: FrameType, value: Any) -> dict[str, Any]:
        """What conditions see at the end of a call: a generator's inputs say nothing, its variables do."""
        return {**(self.generated.names(frame) if self.plan.elements else {}), "outputs": value}

    def _reason(self, rule: Breakpoint, more: dict[str, Any], frame: FrameType | None = None) -> str | None:
        """Why a rule stops this call here (see `Judge.reason`); None if it does not."""
        if not rule.enabled:
            return None

        def names() -> dict[str, Any]:
            return self.plan.names(self.args) if frame is None else self.generated.names(frame)

        def dropped(name: str) -> str:
            return "" if frame is None else self.generated.dropped(frame, name)

        def unset(name: str) -> bool:
            """A generator that begins has no variables yet."""
            return frame is not None and rule in self.entries and is_generator(frame) and has(frame.f_code, name)

        return self.shared.judge.reason(
            rule, self.plan, self.number, self.args, more, self.recorded, names, dropped, unset
        )

    @staticmethod
    def _tally(rule: Breakpoint, reason: str, outcome: str = STOPPED) -> None:
        if not reason:  # else its condition failed, and it was not hit
            rule.tally(outcome)

    def _rules_at(self, frame: FrameType) -> tuple[Breakpoint, ...]:
        at = self.generated.note(frame)
        if not self.lines:
            return ()
        source_line = (id(frame.f_code), frame.f_lineno, at)  # a comprehension has its statement's line
        found = self._line_at.get(source_line)
        if found is None:
            file, line = frame.f_code.co_filename, frame.f_lineno
            if self.generated.base(frame) is not None:
                file, line = self.user_line(file, line)[0], at or 0
            lines = {line, *self.generated.joined(frame.f_code, frame.f_lineno)}
            found = tuple(rule for rule in self.lines if rule.line in lines and same_file(rule.file or "", file))
            self._line_at[source_line] = found
        return found

    def _joined_to(self, rule: Breakpoint, frame: FrameType) -> str:
        """Says of a stop that its line is not the one shown."""
        at = self.generated.at_statement(frame) if self.generated.base(frame) is not None else rule.line
        return "" if rule.line == at else f", which AutoGraph joined to line {at}"

    def tracer_for(self, rule: Breakpoint | None, why: str, reason: str = "") -> Tracer:
        """A tracer for a stop; `reason` says what the condition raised, if that is why it stops."""
        earlier = self.tracer  # this call is being stepped through already: the new stop takes over
        self.resumed = None
        self._note()
        if reason:
            why += f", {reason}"
        stop = Stop(self.facts, self.number, rule, why, self.args, self.plan.input_names(len(self.args)), self.body)
        stop.condition_error = reason
        entered = self.frame is not None or (self.forward is not None and self._armed)
        watching = bool(self.lines or self.after) and entered
        tracer = self.tracer = Tracer(stop, self.shared.broker, self, self._call if watching else self.previous)
        tracer.resume = watching
        if earlier is not None:
            tracer.take_over(earlier)
        return tracer

    # -- the end of the call ------------------------------------------------------------------------------------------

    def leave(self, outputs: Any) -> Any:
        tracer = self.tracer
        if tracer is not None and self.plan.elements:
            tracer.tell_step()
        elif self.resumed is not None:  # another of this node's generators was asked
            self.shared.step_on(self.token, self.resumed)
        self._disarm()
        self._note()
        if self.before is not None and self._armed and not self._seen and self.stand_in is None:
            self.trouble("a breakpoint", RuntimeError(f"the frame of {self.body} was not seen"))
        outputs = self._replaced(outputs)
        if self.after and self.facts is not None and self.facts.body.file is None and not self.plan.elements:
            for rule in self.after:
                reason = self._reason(rule, {"outputs": outputs})
                if reason is not None:
                    self.before = rule
                    self._stand_in(rule, reason, outputs=outputs, **{_RETURN: outputs})
                    self._disarm()
                    self._note()
                    return self._replaced(outputs)
        return outputs

    def _replaced(self, outputs: Any) -> Any:
        """What TensorFlow gets: what the body returned, or what was put in its place by hand."""
        replaced, self._result = self._result, None
        if replaced is None:
            return outputs
        try:
            return self.shared.environment.replace_outputs(outputs, replaced[0])
        except Exception as error:
            self.shared.say(
                f"the return value that you gave {self.body} does not fit ({type(error).__name__}: {error}): "
                "the body's own was used"
            )
            return outputs

    def fail(self, error: BaseException) -> None:
        self._disarm()
        self._note()
        if isinstance(error, Abort) or not self.errors:
            return
        traceback_ = user_traceback(error.__traceback__)
        if traceback_ is None:
            return
        for rule in self.errors:
            *_, (innermost, _) = traceback.walk_tb(traceback_)
            reason = self._reason(rule, {"error": error}, innermost) if self._passed(rule, traceback_) else None
            if reason is not None:
                kind = type(error).__name__
                why = f"breakpoint {rule.number} (error): {kind}: {error}"[:300]
                if self._in_ide(rule):
                    self._hold(rule, why, reason, innermost, error)
                    return
                self.previous = sys.gettrace()
                tracer = self.tracer_for(rule, why, reason)
                try:
                    tracer.post_mortem(traceback_, error)
                finally:
                    tracer.finish()
                    self._note()
                return

    def _passed(self, rule: Breakpoint, traceback_: TracebackType | None) -> bool:
        """Whether a rule that names a line, or a function that makes elements, means an error with this traceback."""
        if rule.file is None and traceback_ is not None and self.plan.elements:
            return any(self._means(rule, frame) for frame, _ in traceback.walk_tb(traceback_))
        if rule.file is None or self.plan.at_line(rule):
            return True
        while traceback_ is not None:
            code = traceback_.tb_frame.f_code
            file, line = self.user_line(code.co_filename, traceback_.tb_lineno)
            lines = {line, *self.generated.joined(code, traceback_.tb_lineno)}
            if rule.line in lines and same_file(rule.file, file):
                return True
            traceback_ = traceback_.tb_next
        return False

    def _disarm(self) -> None:
        if self.tracer is not None:
            self.tracer.finish()
        if self._armed:
            self.give_back()

    def give_back(self) -> None:
        """The thread's trace function is again the one that was there."""
        self.shared.environment.keep_debugger_off(False)
        if self.chained is not None and not self._nested:
            self.chained.give_back()
        else:
            settrace(self.previous)

    def _note(self) -> None:
        """Tells the recording of the stop that has just ended."""
        tracer = self.tracer
        if tracer is None:
            return
        self.tracer = None
        self._note_stop(tracer.stop, time.monotonic_ns())
        if tracer.changed:
            self._tell(Notice.CHANGED_BY_HAND, names=sorted(set(tracer.changed)))
        self._result = tracer.result or self._result

    def _note_stop(self, stop: Stop, end_ns: int | None) -> None:
        """What the recording says of a stop: at its end, and before while the call is held (`end_ns` is None)."""
        spans = [(asked, got, end_ns if end is None else end) for asked, got, end in stop.spans]
        stopped = any(got is not None for _, got, _ in spans)
        held = sum(end - asked for asked, _, end in spans if asked is not None and end is not None)
        if spans and (stopped or stop.interrupted or end_ns is None or held >= _LONG_NS):
            last = None if end_ns is None else spans[-1][2]
            self._tell(
                Notice.HELD if end_ns is None else Notice.STOP, why=stop.why, start_ns=spans[0][0], end_ns=last,
                held_ns=held, spans=spans[-_MOST_SPANS:], interrupted=stop.interrupted,
            )  # fmt: skip

    def _tell(self, rule: Notice, **facts: Any) -> None:
        if self.recorded:
            self.shared.environment.note(rule, self.token, self.number, **facts)

    # -- TracerHost ---------------------------------------------------------------------------------------------------

    def steps_on(self, frame: FrameType) -> None:
        if self.plan.elements:
            self.shared.step_on(self.token, identity(frame))

    def trouble(self, where: str, error: BaseException) -> None:
        self.shared.environment.trouble(where, error)

    def count(self, stop: Stop, outcome: str, first: bool) -> None:
        rule = stop.breakpoint
        if not first:
            return
        if outcome == STEPPING:
            self.shared.say(
                f"{stop.title} did not stop ({stop.why}): the call that is stopped runs on after a step, "
                "and may be waiting for this one"
            )
        if rule is not None:
            self._tally(rule, stop.condition_error, outcome)

    def aborted(self) -> None:
        if self.previous is not None:
            self.shared.aborted[threading.get_ident()] = self.give_back

    def held(self, stop: Stop) -> None:
        self._note_stop(stop, None)

    def ended(self, stop: Stop) -> None:
        if self.tracer is not None and stop is self.tracer.stop:
            self._note()

    def user_line(self, file: str, line: int) -> tuple[str, int]:
        return self.shared.environment.user_line(file, line) if is_generated(file) else (file, line)

    def detach(self) -> None:
        for rule in self.rules():
            rule.disable()

    def rules(self) -> Iterable[Breakpoint]:
        return self.shared.rules.all()

    def node_names(self) -> Collection[str]:
        return self.shared.node_names()

    def break_on(self, node: str, condition: str | None, once: bool) -> Breakpoint:
        return self.shared.rules.add(node, condition=condition, once=once)

    def evaluation(self) -> contextlib.AbstractContextManager[Any]:
        return self.shared.environment.evaluation()


def _qualified(frame: FrameType) -> str:
    """The function of a frame as its class and its module name it; Python 3.10 knows its last name only."""
    name: str = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    return name.replace("<locals>.", "")
