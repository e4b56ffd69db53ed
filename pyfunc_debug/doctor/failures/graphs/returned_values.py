"""`return y.numpy()` of a tf.function: the function gives a tensor, and its value is asked for where it is called."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, together
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

SAID = "The caller asks its result for the value."
_FARTHEST = 15
"""Lines between the two places of one paste."""


def at_the_call(situation: Situation, edit: Edit) -> Edit | None:
    """The paste for `return y.numpy()` with `.numpy()` behind the call, too; None where that is not sure.

    Args:
      situation: The failure in that line.
      edit: The line without `.numpy()`.
    """
    spot, statement = situation.last, situation.statement
    outer = situation.outer(spot) if spot is not None else None
    if spot is None or outer is None or not isinstance(statement, ast.Return) or outer.statement is None:
        return None
    value, function = statement.value, spot.function
    asks = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "numpy"
    if not asks or not isinstance(function, ast.FunctionDef):
        return None
    before = situation.spots[: situation.spots.index(outer) + 1]
    if any(one.by or one.generated for one in before):
        return None  # the call is traced, too
    found = [one for one in calls(outer.statement) if dotted(one.func) == function.name]
    every = [one for one in calls(spot.source.tree) if dotted(one.func) == function.name]
    if outer.file != spot.file or len(found) != 1 or len(every) != 1 or not function.decorator_list:
        return None
    call = found[0]
    if abs(call.lineno - edit.first) > _FARTHEST or isinstance(outer.source.parent(call), ast.Attribute):
        return None
    placed = outer.source.kept_lines({call: f"{outer.source.text(call)}.numpy()"})
    return together([edit, Edit(outer.file, *placed)], outer.source.lines)
