"""A variable that a graph asks for its value, `w.numpy()`, `np.clip(w, -1, 1)`: only ops read it there."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures import wrapping
from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.rewrites import as_ops
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import dotted, short
from pyfunc_debug.doctor.failures.symbols import calls, lookup
from pyfunc_debug.doctor.failures.traced_text import RULE, runs, when
from pyfunc_debug.doctor.failures.value_uses import needs_values

_SAID = "numpy() is only available when eager execution is enabled"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line of a graph asked a variable for its value, and ops do what it is asked for."""
    spot = situation.last
    statement = spot.source.statement(spot.line) if spot is not None else None
    if spot is None or statement is None or situation.body or _SAID not in situation.message:
        return None
    value = wrapping.value_here(spot, statement)
    held = _variables(value, spot) if value is not None else []
    if value is None or not held or not wrapping.entry(situation)[1]:
        return None
    edit = _in_ops(spot, statement, value, held)
    code = short(spot.source.text(statement).split("\n")[0], 44)
    cause = (
        f"`{code}` asked {held[0]} for its value {when(situation)}: a variable has one only when the graph runs, and "
        f"NumPy cannot read it there. {runs(situation)}"
    )
    return None if edit is None else Explanation(RULE, spot.file, spot.line, cause, edit)


def _variables(node: ast.expr, spot: Spot) -> list[str]:
    """What an expression names of variables: names, and what stands before `.numpy()` without its indices."""
    found = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and _is_variable(spot.value(one.id))]
    for call in calls(node):
        owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy" else None
        while isinstance(owner, ast.Subscript):
            owner = owner.value
        listed = lookup(owner, spot) if isinstance(owner, ast.Name) else None
        of_list = isinstance(listed, (list, tuple)) and any(map(_is_variable, listed))
        if owner is not None and dotted(owner) and (of_list or not isinstance(owner, ast.Name)):
            found.append(dotted(owner))
    found += [
        dotted(one) for one in ast.walk(node) if isinstance(one, ast.Attribute) and _is_variable(lookup(one, spot))
    ]
    return list(dict.fromkeys(found))


def _is_variable(value: object) -> bool:
    return any(
        one.__name__ == "ResourceVariable" or (one.__name__ == "Variable" and one.__module__.startswith("keras"))
        for one in type(value).__mro__
    )


def _in_ops(spot: Spot, statement: ast.stmt, value: ast.expr, held: list[str]) -> Edit | None:
    """The expression as ops; None where the function goes on with values of what it gives."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kept = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    function = spot.function
    if function is None or needs_values(spot.source, function, spot.line + 1, spot, [*kept, *held]):
        return None
    text = as_ops(value, spot, also=tuple(held))
    return None if text is None else wrapping.replace_expression(spot, value, text)
