"""Every call, held against the breakpoints: arms the tracer on the body's thread, and takes it off again.

`enter` and `leave` are the hot path while breakpoints are set: one dictionary look-up for a call that no breakpoint
names. A body without a Python frame (np.sin) is stopped in a stand-in frame that holds its inputs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from types import FrameType
from typing import Any

from pyfunc_debug.errors import PyfuncDebugWarning
from pyfunc_debug.events import NodeFacts, Notice
from pyfunc_debug.places import cell_label
from pyfunc_debug.program.frames import is_user
from pyfunc_debug.program.printable import columns_of, folded
from pyfunc_debug.program.waiting import in_bodies
from pyfunc_debug.stops.broker import Broker
from pyfunc_debug.stops.call_watch import CallWatch
from pyfunc_debug.stops.environment import Environment
from pyfunc_debug.stops.generated import Generated
from pyfunc_debug.stops.generators import Resumed
from pyfunc_debug.stops.judge import Judge
from pyfunc_debug.stops.misses import why_not_hit
from pyfunc_debug.stops.pause import Pause
from pyfunc_debug.stops.plan import Plan
from pyfunc_debug.stops.rules import Breakpoint, Rules
from pyfunc_debug.stops.shared import Shared
from pyfunc_debug.stops.stop import Abort, Stop, end_in_body, lines_of, one_line
from pyfunc_debug.stops.tracer import Tracer

_MOST_EAGER = 4096
_REST_S = 0.25
"""No Python of TensorFlow's for so long: what fetched ahead has come to rest."""
PAUSED = "paused; Ctrl-C again ends the program"


class StopObserver:
    """Tests calls against the rules.

    Args:
      rules: The breakpoints.
      broker: Who gives turns.
      environment: What it asks of the rest of the package.
    """

    def __init__(self, rules: Rules, broker: Broker, environment: Environment) -> None:
        self.rules = rules
        self.broker = broker
        self.environment = environment
        self._nodes: dict[str, NodeFacts] = {}
        self._eager: deque[str] = deque()
        self._gone_names: set[str] = set()
        self._fitted: list[Breakpoint] = []
        self._plans: dict[str, Plan] = {}
        self.unwanted: set[str] = set()
        """Tokens of nodes that no breakpoint names; another set after each change of the breakpoints."""
        judge = Judge(broker, environment, self.say)
        self._shared = Shared(rules, broker, environment, judge, self.say, self.node_names, self._step_on)
        self._stepped: dict[str, Resumed] = {}
        self._numbers: dict[str, Iterator[int]] = {}
        self._reported: set[str] = set()
        self.debugger = False
        """Whether an IDE's debugger is attached or coverage measures: every body's thread is shown to them."""
        self._inside: dict[int, CallWatch] = {}
        rules.listeners.append(self._rules_changed)
        rules.why_not_hit = self._why_not_hit
        broker.on_unanswered = self._unanswered

    def _rules_changed(self) -> None:
        self._plans, self.unwanted = {}, set()
        self._fitted = [rule for rule in self._fitted if rule in self.rules.all()]

    # -- nodes --------------------------------------------------------------------------------------------------------

    def node_made(self, node: NodeFacts) -> None:
        """A node was made, or an eager call is about to happen."""
        self._nodes[node.token] = node
        if node.site is not None:  # every eager call has a token of its own
            self._eager.append(node.token)
            if len(self._eager) > _MOST_EAGER:
                self._forget(self._eager.popleft())

    def node_gone(self, token: str) -> None:
        """Nobody asks for this node any more; what it was called may still be meant by a breakpoint."""
        facts = self._forget(token)
        if facts is not None and not facts.internal and len(self._gone_names) < _MOST_EAGER:
            self._gone_names.add(facts.body.name)

    def _forget(self, token: str) -> NodeFacts | None:
        self._plans.pop(token, None)
        self.unwanted.discard(token)
        return self._nodes.pop(token, None)

    def node(self, token: str, arguments: int = 0) -> NodeFacts | None:
        """The node's facts, found out now if it was made before."""
        facts = self._nodes.get(token)
        if facts is None:
            try:
                facts = self.environment.older_node(token, arguments)
                if facts is not None:
                    facts = self._nodes[token] = self.environment.locate_node(facts)
            except Exception as error:
                self.environment.trouble("describing an older node", error)
        return facts

    def node_names(self) -> set[str]:
        """What a breakpoint can call the nodes that there are: the user's bodies, without lambdas."""
        names = {facts.body.name for facts in list(self._nodes.values()) if not facts.internal}
        return {last for name in names if (last := name.rpartition(".")[2]).isidentifier()}

    def name_of(self, facts: NodeFacts | None) -> str:
        """What prompts call a node: its body's name, of a gradient node `∇` and that of the forward one's body."""
        if facts is None:
            return ""
        forward = self.node(facts.gradient_of) if facts.gradient_of is not None else None
        return f"∇ {forward.body.name}" if forward is not None else facts.body.name

    def _register(self, token: str, count: int) -> Plan:
        """What the breakpoints want of this node: asked once for each node after every change of the breakpoints."""
        plans, unwanted = self._plans, self.unwanted  # a change meanwhile makes others: this may be out of date then
        rules = self.rules.all() if not self.broker.closed else ()
        facts = self.node(token, count) if rules else None
        fitting = [rule for rule in rules if facts is not None and self._names(rule, facts)]
        self._fitted += [
            rule
            for rule in fitting
            if rule not in self._fitted and (facts is None or facts.body.elements != "another's" or rule.fits(facts))
        ]
        plan = plans[token] = self.plan(token, facts, fitting)
        if not plan:
            unwanted.add(token)
        return plan

    def plan(self, token: str, facts: NodeFacts | None, rules: Iterable[Breakpoint] = ()) -> Plan:
        """A plan for a node."""
        forward = self.node(facts.gradient_of) if facts is not None and facts.gradient_of is not None else None
        body = self.name_of(facts) or token
        return Plan(facts, forward, body, rules, self._numbers.setdefault(body, itertools.count(1)))

    def _names(self, rule: Breakpoint, facts: NodeFacts) -> bool:
        if facts.gradient_of is not None:
            forward = self.node(facts.gradient_of)
            if rule.where == facts.token:
                return True
            # A line may be in what a tf.custom_gradient runs.
            wanted = rule.when == "gradient" or (rule.when == "before" and rule.file is not None)
            return wanted and forward is not None and self._named(rule, forward)
        return rule.when != "gradient" and self._named(rule, facts)

    def _named(self, rule: Breakpoint, facts: NodeFacts) -> bool:
        elements = facts.body.elements
        if elements in ("threads", "processes"):  # not in calls of this node
            return False
        if rule.file is None:  # what a lambda gives to Dataset.from_generator has a name only when it runs
            return rule.fits(facts) or elements == "another's"
        # The line may be in the body, at the call site, or in a helper of the body; TensorFlow's node that takes the
        # elements of a Dataset.from_generator calls the user's code.
        return not facts.internal or bool(elements)

    def _why_not_hit(self, rule: Breakpoint) -> str:
        nodes, graphs = list(self._nodes.values()), self.environment.converted()
        return why_not_hit(rule, nodes, list(self._gone_names), rule in self._fitted, graphs)

    def tell_misses(self) -> None:
        """At the end of a program: breakpoints that were never hit, and why."""
        for rule in self.rules.all():
            why = self._why_not_hit(rule) if rule.enabled and not rule.hits and not rule.told else ""
            if why:
                self.say(f"breakpoint {rule.number} ({rule.when} {rule.text()}): 0 hits because {why}")

    # -- the hot path -------------------------------------------------------------------------------------------------

    def enter(self, token: str, args: Any, number: int | None) -> CallWatch | None:
        """A call is about to start. Raises Abort only."""
        if self.broker.ending:
            self.broker.check_beginning(Stop(self.node(token, len(args)), number, None, PAUSED))
        plan = self._plans.get(token)
        if plan is None:
            plan = self._register(token, len(args))
        if not plan and not self.debugger and token not in self._stepped:
            return None
        try:
            return self._watch(plan, token, args, number)
        except Abort:
            raise
        except Exception as error:
            self.environment.trouble("arming a breakpoint", error)
            return None

    def leave(self, call_watch: CallWatch, outputs: Any) -> Any:
        """The body returned. Raises Abort only."""
        try:
            return call_watch.leave(outputs)
        finally:
            self._inside.pop(id(call_watch), None)

    def fail(self, call_watch: CallWatch, error: BaseException) -> None:
        """The body raised. Raises Abort only."""
        try:
            call_watch.fail(error)
        finally:
            self._inside.pop(id(call_watch), None)

    def close(self, timeout_s: float) -> None:
        """Stops no more calls, and waits until those in progress are over.

        At the end of a program: a body that still wants the GIL when Python is gone hangs TensorFlow, and the process.
        What fetched ahead and was stopped goes on with its next elements: it must have come to rest.
        """
        stopped = self.broker.close()
        if stopped:
            those = f"{len(stopped)} calls that were stopped, or waited to be, go" if len(stopped) > 1 else ""
            one = f"{stopped[0].title}, which was stopped on {stopped[0].thread}, goes"
            self.say(f"the program has ended: {those or one} on without an answer")
        self._plans.clear()
        now = since = time.monotonic()
        end, rest_s = now + timeout_s, _REST_S if stopped else 0.0
        while now < end:
            if self._inside or self.broker.busy() or (stopped and in_bodies()):
                since = now
            elif now - since >= rest_s:
                break
            time.sleep(0.01)
            now = time.monotonic()

    def _watch(self, plan: Plan, token: str, args: Any, number: int | None) -> CallWatch | None:
        recorded = number is not None
        if number is None and not self.environment.records():  # else it would be taken for one of the recording's
            number = next(plan.numbers)
        if self.debugger:
            self.environment.let_coverage_see()
        first, why = None, ""
        for rule in () if plan.elements else plan.starts:  # else it is judged where the user's code is entered
            if rule.enabled:
                reason = self._shared.judge.reason(
                    rule, plan, number, args, {}, recorded, functools.partial(plan.names, args)
                )
                if reason is not None and first is None:
                    first, why = rule, reason
        resumed = self._stepped.pop(token, None) if self._stepped else None
        if resumed is not None and not plan:
            self.unwanted.add(token)
        if first is None and resumed is None and not plan.watches and not (plan.elements and plan.starts):
            if self.debugger:  # else the thread's trace function is ours during this call
                self.environment.attach_debugger()
            return None
        call_watch = CallWatch(self._shared, plan, token, args, number, recorded)
        call_watch.before, call_watch.before_reason, call_watch.resumed = first, why, resumed
        if first is None and not (call_watch.lines or call_watch.after or call_watch.entries or resumed):
            if self.debugger:
                self.environment.attach_debugger()
            return call_watch if call_watch.errors else None
        self._inside[id(call_watch)] = call_watch
        try:
            call_watch.arm()
        except BaseException:
            self._inside.pop(id(call_watch), None)
            raise
        return call_watch

    def _step_on(self, token: str, at: Resumed) -> None:
        self._stepped[token] = at
        self.unwanted.discard(token)

    # -- hits ---------------------------------------------------------------------------------------------------------

    def say(self, text: str, once: bool = False, values: bool = False) -> None:
        """A sentence for the user; one with the program's values stays in one line, a terminal's width or not."""
        if once and text in self._reported:
            return
        if once:
            self._reported.add(text)
        line = folded(f"pyfunc_debug: {text}", None if values else columns_of(sys.stderr))
        print(f"{line}\n", end="", file=sys.stderr)  # one write: others write at the same time

    def _unanswered(self, stop: Stop) -> None:
        """Nobody can answer: the recording gets what the prompt would have shown."""
        why = "no terminal, no input box"
        if "PYTEST_XDIST_WORKER" in os.environ:
            why = "pytest-xdist's workers have no terminal: run pytest with -n 0"
        told = "nobody can answer"
        if told not in self._reported:  # once, recorded or not
            self._reported.add(told)
            kept = "recorded, " if self.environment.records() else ""
            text = f"a breakpoint was hit and {told} ({why}): {kept}going on"
            self.say(text)
            if (
                "PYTEST_XDIST_WORKER" in os.environ and "_pytest" in sys.modules
            ):  # programs that a test starts have none
                # pytest shows nobody what a passed test wrote, but warnings. Where they are errors, nothing fails.
                with contextlib.suppress(PyfuncDebugWarning):
                    warnings.warn(text, PyfuncDebugWarning, stacklevel=2)
        frames = [
            f"{frame.f_code.co_name} ({cell_label(frame.f_code.co_filename) or frame.f_code.co_filename}:{line})"
            for frame, line in Generated(self.environment).stack(stop_frames())
        ]
        inputs = [f"{name} = {one_line(value)}" for name, value in zip(stop.names, stop.inputs)]
        self.environment.note(
            Notice.STOP_UNANSWERED, stop.node.token if stop.node is not None else None, stop.call, why=stop.why,
            frames=frames, inputs=inputs, locals=[one for one in lines_of(stop.locals()) if one not in inputs],
        )  # fmt: skip

    def call_failed(self, error: BaseException) -> None:
        """An exception has left a body: an Abort's traceback ends there, another tool has back what it took."""
        if isinstance(error, Abort):
            end_in_body(error)
        give_back = self._shared.aborted.pop(threading.get_ident(), None) if self._shared.aborted else None
        if give_back is not None:
            give_back()

    # -- Ctrl-C -------------------------------------------------------------------------------------------------------

    def pause(self, stop: Callable[[FrameType], object], missed: Callable[[], object]) -> Pause | None:
        """Stops one of the bodies that run, if somebody at a terminal can answer.

        Args:
          stop: Called at the next line of one of them, on its thread.
          missed: Called when all of them returned first.
        """
        return self.pause_for(stop, missed) if self.broker.can_pause(Stop(None, None, None, PAUSED)) else None

    def pause_for(self, stop: Callable[[FrameType], object], missed: Callable[[], object]) -> Pause | None:
        """The same, for somebody who is there."""
        running = self._running()
        pause = Pause(running, stop, missed)
        return pause if running and pause.arm() else None

    def end_running(self, stop: Callable[[FrameType], object], held: Container[int]) -> None:
        """Ends the bodies that run, each at its next line, as those are ended that wait behind a stop.

        Args:
          stop: Calls `stop_here` with `ending`.
          held: Threads whose calls stopped or waited, and end by themselves.
        """
        running = {ident: stack for ident, stack in self._running().items() if ident not in held}
        if running:
            Pause(running, stop, each=True).arm()

    def runs(self) -> bool:
        """Whether a call runs that neither stops nor waits."""
        return bool(self._running())

    def _running(self) -> dict[int, list[FrameType]]:
        """The frames of the calls that run, and neither stop nor wait."""
        held = self.broker.held()
        return {ident: stack for ident, stack in self.environment.running().items() if ident not in held}

    # -- breakpoint() -------------------------------------------------------------------------------------------------

    def stop_here(
        self, frame: FrameType, bottom: FrameType, token: str, args: Any, number: int | None, header: str | None = None,
        others: bool = False, why: str = "breakpoint()", ending: bool = False,
    ) -> bool:  # fmt: skip
        """`breakpoint()` in a body that `bottom` called: stops at the next line of `frame`.

        Args:
          frame: Who called it.
          bottom: Who called the body.
          token: The node's.
          args: The call's.
          number: The call's in the recording.
          header: What the prompt says first.
          others: Somebody else may be asked where nobody can answer.
          why: What stops it.
          ending: The call ends there, with Abort.

        Returns:
          False if nobody can answer and somebody else may be asked (`others`): then nothing was done.
        """
        running = getattr(frame.f_trace, "__self__", None)
        if isinstance(running, Tracer) and not running.ended:  # being stepped through already: go on to the next line
            running.set_step()
            return True
        watch = CallWatch.of(frame, bottom)
        if others and not self.broker.can_answer(Stop(self._plan_of(token, args).facts, number, None, why)):
            return False
        call_watch = watch or self._unwatched(token, args, number)
        tracer = call_watch.tracer_for(None, why)
        tracer.header = header
        tracer.stop.aborted = ending
        tracer.from_running(frame, bottom, alone=watch is None, at_line=why != "breakpoint()")
        return True

    def hold_here(
        self, frame: FrameType, bottom: FrameType, token: str, args: Any, number: int | None, why: str
    ) -> None:  # fmt: skip
        """`breakpoint()` in a body that `bottom` called: stops in the attached IDE, at this line of `frame`."""
        watch = CallWatch.of(frame, bottom) or self._unwatched(token, args, number)
        watch.hold_here(frame, why)

    def _plan_of(self, token: str, args: Any) -> Plan:
        return self.plan(token, self.node(token, len(args)))

    def _unwatched(self, token: str, args: Any, number: int | None) -> CallWatch:
        """Of a call in progress that no breakpoint watches."""
        plan, recorded = self._plan_of(token, args), number is not None
        if number is None:
            number = self.environment.number(plan.numbers)
        watch = CallWatch(self._shared, plan, token, args, number, recorded)
        watch.find_chained()
        return watch


def stop_frames() -> list[tuple[FrameType, int]]:
    """The user's frames of this thread, outermost first."""
    found = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_user(frame.f_code.co_filename):
            found.append((frame, frame.f_lineno))
        frame = frame.f_back
    return found[::-1]
