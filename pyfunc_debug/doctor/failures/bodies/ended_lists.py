"""A generator that takes one after another away from a list in an endless loop: in the end it is empty."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls

_SAID = ("pop from empty list", "pop from an empty deque", "pop from an empty set")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `files.pop()` of a generator failed."""
    spot, statement = situation.last, situation.statement
    if situation.message not in _SAID or spot is None or statement is None or not situation.data:
        return None
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in ("pop", "popleft")]
    if len(found) != 1 or not isinstance(found[0].func, ast.Attribute):
        return None
    call, source = found[0], spot.source
    name = source.text(found[0].func.value)
    loop = next((one for one in source.around(call) if isinstance(one, (ast.While, ast.For))), None)
    cause = f"{name} is empty: line {spot.line} takes one away in each round, and nothing fills it again."
    first = loop.body[0] if isinstance(loop, ast.While) else None
    place = ast.unparse(call.args[0]) if len(call.args) == 1 else ""
    from_left = place == "0" or call.func.attr == "popleft"  # type: ignore[attr-defined]  # a method's
    if (
        isinstance(loop, ast.While)
        and isinstance(first, ast.Assign)
        and first.value is call
        and isinstance(loop.test, ast.Constant)
        and (from_left or not call.args)
        and situation.message != _SAID[2]
        and len(loop.body) > 1
    ):
        given = name if from_left else f"reversed({name})"
        line = f"{indent_of(source.lines[loop.lineno - 1])}for {source.text(first.targets[0])} in {given}:"
        cause += " A loop over it ends, and leaves it as it is for the next pass."
        return Explanation(
            RULE, spot.file, spot.line, cause, Edit(spot.file, loop.lineno, first.end_lineno or first.lineno, (line,))
        )
    advice = f"Loop over it, `for one in {name}:`, which ends and leaves it as it is; or ask `if not {name}: break`."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
