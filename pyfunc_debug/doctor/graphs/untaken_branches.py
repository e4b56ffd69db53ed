"""The branch of a graph that a node which never ran stands in: an `if` under AutoGraph, or a `tf.cond`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts, makes_node
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import calls
from pyfunc_debug.records import Frame, Node

_COND = re.compile(r"(?:^|/)cond(?:_\d+)?(?=/)")
_SHOWN = 60


@dataclass(frozen=True)
class Branch:
    """A branch.

    Attributes:
      line: The line of the `if` or the `tf.cond`.
      condition: What decides, as it is written.
      when: Whether the branch is for a condition that is true.
      runs: How often the graphs that hold it were seen to run; 0 where C++ starts them, and nobody counts.
    """

    line: int
    condition: str
    when: bool
    runs: int

    @property
    def why(self) -> str:
        """Why its node never ran."""
        is_so = "is true" if self.when else "is false"
        where = f"it stands in the branch of line {self.line} where `{short(self.condition, _SHOWN)}` {is_so}"
        if self.runs == 1:
            return f"{where}, which its one run did not take"
        return f"{where}, which none of {self.runs:,} runs took" if self.runs else f"{where}, and that was not taken"

    @property
    def fix(self) -> str:
        """What shows why it is not taken."""
        return f"tf.print({self.condition})  # above line {self.line}: what decides, in each run"


def branch_of(facts: Facts, node: Node) -> Branch | None:
    """The innermost branch around a node, if the source shows which it is; None outside of any, or if nothing ran."""
    count = len(_COND.findall(node.name or ""))
    pairs = zip(node.stack, node.stack[1:]) if count else ()
    found = [one for frame, inner in pairs if (one := _branch(facts, frame, inner)) is not None]
    if not count or len(found) != count:
        return None
    line, condition, when = found[-1]
    traces = [one.id for one in facts.traces if node.id in one.nodes]
    asked = "SELECT count(*) FROM run WHERE trace = ? AND kind = 'forward'"
    runs = sum(int(facts.reader.rows(asked, (one,))[0][0]) for one in traces)
    made = facts.functions.get(node.function or 0)
    counted = made is not None and made.kind == "tf.function"
    return Branch(line, condition, when, runs) if runs or not counted else None


def _branch(facts: Facts, frame: Frame, inner: Frame) -> tuple[int, str, bool] | None:
    """The line, the condition and the side of a branch that AutoGraph or `tf.cond` built in a line."""
    source = pastes.source(facts, frame.file)
    statement = source.statement(frame.line)
    if statement is None or inner.file != frame.file:
        return None
    if isinstance(statement, ast.If):
        held = [any(_holds(one, inner.line) for one in part) for part in (statement.body, statement.orelse)]
        sides = [side for side, is_in in zip((True, False), held) if is_in]
        return (statement.lineno, source.text(statement.test), sides[0]) if len(sides) == 1 else None
    for call in calls(statement):
        if pastes.last_name(call.func) != "cond" or len(call.args) + len(call.keywords) < 3:
            continue
        given = [pastes.argument(call, place, name) for place, name in enumerate(("pred", "true_fn", "false_fn"))]
        sides = [side for side, one in zip((True, False), given[1:]) if one is not None and _is_in(inner, one)]
        if given[0] is not None and len(sides) == 1:
            return call.lineno, source.text(given[0]), sides[0]
    return None


def _is_in(frame: Frame, given: ast.expr) -> bool:
    """Whether a frame is one of what `tf.cond` was given."""
    if isinstance(given, ast.Lambda):
        named = any(map(makes_node, calls(given))) or isinstance(given.body, ast.Call)
        return _holds(given, frame.line) and named
    return isinstance(given, ast.Name) and given.id == frame.function


def _holds(part: ast.stmt | ast.expr, line: int) -> bool:
    return part.lineno <= line <= (part.end_lineno or part.lineno)
