"""Whether a breakpoint stops a call: its condition is evaluated, its hits are counted, and what fails is reported."""

from __future__ import annotations

import functools
import keyword
import math
import threading
from collections.abc import Callable
from typing import Any

from pyfunc_debug.events import Notice
from pyfunc_debug.places import source_line
from pyfunc_debug.program.threads import current_name
from pyfunc_debug.stops.broker import Broker
from pyfunc_debug.stops.conditions import Condition, ConditionCall
from pyfunc_debug.stops.endings import Interrupted
from pyfunc_debug.stops.environment import Environment
from pyfunc_debug.stops.plan import Plan
from pyfunc_debug.stops.rules import EVALUATION, LOGGED, Breakpoint
from pyfunc_debug.stops.stop import Abort, Stop, lines_of, one_line

_PATIENCE_S = 0.25
"""How long a call waits while another thread evaluates the same condition; that thread may be waiting for this call."""


LOG = "its log "
"""What a sentence about a log that was interrupted begins with."""


class Judge:
    """Holds calls against the conditions of breakpoints.

    Args:
      broker: Who may prompt.
      environment: What the rest of the package knows.
      say: Prints a sentence for the user; with `once`, only the first time.
    """

    def __init__(self, broker: Broker, environment: Environment, say: Callable[..., None]) -> None:
        self._broker = broker
        self._environment = environment
        self._say = say
        self._judged: dict[int, list[Breakpoint]] = {}  # by thread: whose conditions it evaluates
        self._running: dict[Breakpoint, threading.Event] = {}  # conditions that run code of the program's own

    def reason(
        self, rule: Breakpoint, plan: Plan, number: int | None, args: Any, more: dict[str, Any], recorded: bool,
        names: Callable[[], dict[str, Any]], dropped: Callable[[str], str] = lambda name: "",
        unset: Callable[[str], bool] = lambda name: False,
    ) -> str | None:  # fmt: skip
        """Why a breakpoint stops a call. One that writes down what there is stops none.

        Args:
          rule: The breakpoint.
          plan: What is known of the node.
          number: The call's number.
          args: The call's inputs.
          more: Other names for the condition: `outputs`, `error`, locals.
          recorded: Whether `number` is that of a call in a recording.
          names: Gives the body's variables.
          dropped: Says why a name is not among them, where that is AutoGraph's doing.
          unset: Whether a name is that of a variable which the body has yet to set: a condition about it is false.

        Returns:
          Empty for a hit, a sentence when the condition raised, or its log was interrupted, and somebody can answer,
          None to go on.
        """
        condition = rule.test
        if condition is not None:
            try:
                unjudged = rule.unjudged
                if not self._holds(rule, condition, plan, number, args, more):
                    rule.came_false = rule.came_false or unjudged == rule.unjudged
                    return None
            except Abort:
                raise
            except Exception as error:
                if isinstance(error, NameError) and unset(error.name or ""):
                    rule.came_false = True
                    return None
                return self._failed(rule, plan, args, more, error, dropped)
        if not rule.hit():
            return None
        if self._broker.evaluates(threading.get_ident()):
            rule.tally(EVALUATION)
            return None
        if rule.logged or rule.keep:
            interrupted = self._log(rule, plan, number, args, more, recorded, names, dropped)
            rule.tally(LOGGED)
            return interrupted
        return ""

    def _log(
        self, rule: Breakpoint, plan: Plan, number: int | None, args: Any, more: dict[str, Any], recorded: bool,
        names: Callable[[], dict[str, Any]], dropped: Callable[[str], str],
    ) -> str | None:  # fmt: skip
        """Writes down what there is; a sentence when Ctrl-C ended an expression and somebody can answer."""
        texts, numbers, interrupted = [], {}, None
        for expression in rule.logged:
            try:
                found = self._evaluate(rule, expression, plan, number, args, more, _shown)
                text, worth = found or ("not evaluated, since it runs the node itself", None)
            except Abort:
                raise
            except Interrupted as error:
                text, worth = f"*** {error}", None
                if self._broker.can_answer(Stop(plan.facts, None, rule, "")):
                    interrupted = f"{LOG}({expression.text}) was {error}"
            except Exception as error:
                text, worth = f"*** {type(error).__name__}: {error}", None
                if isinstance(error, NameError) and (why := dropped(error.name or "")):
                    text += f" ({why})"
            texts.append(f"{expression.text} = {text}")
            if worth is not None:
                numbers[expression.text] = worth
        at = source_line(rule.file, rule.line) if rule.file is not None else rule.when
        if texts:
            self._say(f"{plan.body}{'' if number is None else f' #{number}'} ({at}): {', '.join(texts)}", values=True)
        if recorded and plan.facts is not None:
            self._environment.note(
                Notice.LOGGED, plan.facts.token, number, at=at, texts=texts, numbers=numbers,
                locals=lines_of(_own(names(), args)) if rule.keep else [],
            )  # fmt: skip
        return interrupted

    def _holds(
        self, rule: Breakpoint, condition: Condition, plan: Plan, number: int | None, args: Any, more: dict[str, Any]
    ) -> bool:
        return bool(self._evaluate(rule, condition, plan, number, args, more, Condition.holds))

    def _evaluate(
        self, rule: Breakpoint, condition: Condition, plan: Plan, number: int | None, args: Any, more: dict[str, Any],
        read: Callable[[Condition, dict[str, Any]], Any],
    ) -> Any:  # fmt: skip
        """What `read` makes of the expression; None where evaluating it would never end."""
        me = threading.get_ident()
        judged = self._judged.get(me, [])
        if rule in judged:  # the condition runs the very node that it belongs to
            rule.count_unjudged()
            return None
        running = self._running.get(rule)
        if running is not None and not running.wait(_PATIENCE_S):  # it runs the node on this other thread
            rule.count_unjudged()
            return None
        values = {**plan.names(args), **more}
        if "call" not in values and "call" in condition.names:
            kind = "gradient" if plan.forward else "forward"
            values["call"] = ConditionCall(number, plan.body, kind, current_name(), args)
        if "outputs" in values and "out" in condition.names:
            values.setdefault("out", values["outputs"])  # as recordings name it
        self._judged[me] = [*judged, rule]
        self._broker.judging.add(me)  # calls that the condition makes pass breakpoints
        try:
            token = plan.facts.token if plan.facts is not None else plan.scope_token
            names, foreign = condition.bind(values, lambda: self._environment.scope(plan.scope_token), token)
            return self._foreign(rule, condition, names, read) if foreign else self._read(condition, names, read)
        finally:
            if judged:
                self._judged[me] = judged
            else:
                self._judged.pop(me, None)
                self._broker.judging.discard(me)

    def _foreign(
        self, rule: Breakpoint, condition: Condition, names: dict[str, Any],
        read: Callable[[Condition, dict[str, Any]], Any],
    ) -> Any:  # fmt: skip
        """For a condition that may run nodes: tf.functions run eagerly, on this thread, where their calls pass."""
        self._running[rule] = done = threading.Event()
        try:
            with self._environment.evaluation():
                return self._read(condition, names, read)
        finally:
            done.set()
            if self._running.get(rule) is done:
                self._running.pop(rule, None)

    def _read(
        self, condition: Condition, names: dict[str, Any], read: Callable[[Condition, dict[str, Any]], Any]
    ) -> Any:
        return self._broker.endings.evaluate(functools.partial(read, condition, names))

    def _failed(
        self, rule: Breakpoint, plan: Plan, args: Any, more: dict[str, Any], error: Exception,
        dropped: Callable[[str], str],
    ) -> str | None:  # fmt: skip
        text = str(error) if isinstance(error, Interrupted) else f"{type(error).__name__}: {error}"
        if isinstance(error, NameError):
            there = {*plan.names(args), *more, "call", "np", "tf"}
            known = f"there are {', '.join(sorted(name for name in there if not keyword.iskeyword(name)))}"
            text += f" ({dropped(error.name or '') or known})"
        rule.count_error(text)
        sentence = f"its condition ({rule.condition}) failed: {text}"
        evaluates = self._broker.evaluates(threading.get_ident())
        if not evaluates and self._broker.can_answer(Stop(plan.facts, None, rule, "")):
            return sentence
        self._say(
            f"breakpoint {rule.number}: {sentence}. Nobody can answer, so these calls go on; the breakpoint stays "
            "on, and its `condition_errors` counts them",
            once=True,
        )
        return None


def _own(names: dict[str, Any], args: Any) -> dict[str, Any]:
    """The body's variables, without `inputs`, which is one only where the body has it."""
    return {name: value for name, value in names.items() if name != "inputs" or value is not args}


def _shown(expression: Condition, names: dict[str, Any]) -> tuple[str, float | None]:
    """The value of an expression as text, and as a number where it is one that can be drawn."""
    value = expression.value(names)
    try:
        number = float(value) if getattr(value, "shape", ()) == () and not isinstance(value, (str, bytes)) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    return one_line(value), number if number is not None and math.isfinite(number) else None
