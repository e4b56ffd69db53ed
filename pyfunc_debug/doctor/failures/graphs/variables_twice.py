"""`get_variable` of TensorFlow 1 that makes a variable of a name which the graph has (ops/variable_scope.py)."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "uninitialized"
_SAID = re.compile(r"Variable (\S+) already exists, disallowed")
_FARTHEST = 8
"""Lines of a statement that gets a block around it."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a function that makes variables was called twice, for weights that are to be shared."""
    said, made = _SAID.search(situation.message), situation.last
    statement = made.statement if made is not None else None
    if said is None or made is None or statement is None or situation.body:
        return None
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == "get_variable"]
    spot = situation.spots[-2] if made.function is not None and len(situation.spots) > 1 else made
    line = spot.statement
    if len(found) != 1 or line is None or spot.file != made.file:
        return None
    name, tf = said[1].partition(":")[0], dotted(found[0].func).rpartition(".")[0]
    where = "" if made is spot else f" (line {made.line})"
    cause = (
        f"get_variable{where} makes {name}, and the graph has it from a call before. A second call gets the same "
        "variable only if its scope says so."
    )
    advice = "For weights of its own give each call a variable_scope of another name."
    edit = _scoped(spot, line, tf) if tf else None
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else advice, "likely")


def _scoped(spot: Spot, statement: ast.stmt, tf: str) -> Edit | None:
    """A statement in a scope in which variables are made once."""
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    if hasattr(statement, "body") or last - first >= _FARTHEST:
        return None
    lines = spot.source.lines[first - 1 : last]
    blanks = indent_of(lines[0])
    above = f"{blanks}with {tf}.variable_scope({tf}.get_variable_scope(), reuse={tf}.AUTO_REUSE):"
    return Edit(spot.file, first, last, (above, *(f"    {line}" if line.strip() else line for line in lines)))
