"""A write into an array that NumPy only reads: `np.asarray(x)` of an eager tensor is the tensor's own memory."""

from __future__ import annotations

import ast

import numpy as np

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls

_SAID = ("assignment destination is read-only", "output array is read-only", "array is read-only")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line writes into such an array by its name."""
    spot = situation.last
    if spot is None or not any(one in situation.message for one in _SAID):
        return None
    statement = spot.statement
    written = [name for name in _written(statement) if _is_read_only(spot.variables.get(name))]
    if statement is None or len({*written}) != 1:
        return None
    name = written[0]
    views = [one for one in calls(spot.function) if _is_view(one, name, spot)] if spot.function is not None else []
    if len(views) == 1:
        owner = dotted(views[0].func).rpartition(".")[0]
        edit = edit_of(spot.file, spot.source.replaced({views[0].func: f"{owner}.array"}))
        made = f"`{spot.source.text(views[0])}` is the memory of the tensor itself, which nobody may write into"
        if not situation.body:
            made = f"`{spot.source.text(views[0])}` gives an array here that may only be read"
    else:
        blanks = indent_of(spot.source.lines[statement.lineno - 1])
        edit = Edit(spot.file, statement.lineno, statement.lineno - 1, (f"{blanks}{name} = {name}.copy()",))
        made = f"{name} is an array that is only read: its memory belongs to another"
    if edit is None:
        return None
    return Explanation(
        RULE, spot.file, spot.line, f"{made}. A copy is {'the body' if situation.body else 'the function'}'s own.", edit
    )


def _written(statement: ast.stmt | None) -> list[str]:
    """`x` of `x[0] = 1`, `x[...] += 1`, `x *= 2` and `x.sort()`; and what a function is given to write into."""
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        owners = [one.value if isinstance(one, ast.Subscript) else one for one in targets]
        return [one.id for one in owners if isinstance(one, ast.Name)]
    called = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(called, ast.Call):
        return []
    owner = called.func.value if isinstance(called.func, ast.Attribute) else None
    return [one.id for one in (owner, *called.args) if isinstance(one, ast.Name)]


def _is_read_only(value: object) -> bool:
    return isinstance(value, np.ndarray) and not value.flags.writeable


def _is_view(call: ast.Call, name: str, spot: Spot) -> bool:
    """Whether a call is the `np.asarray(...)` that a name was assigned."""
    assigned = spot.source.parent(call)
    targets = assigned.targets if isinstance(assigned, ast.Assign) else []
    names = [one.id for one in targets if isinstance(one, ast.Name)]
    return dotted(call.func).endswith((".asarray", ".asanyarray")) and name in names
