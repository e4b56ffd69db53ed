"""`np.asarray(x, y)` of two arrays: the second argument of NumPy's makers of arrays is a dtype."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray, lookup

RULE = "structure"
_SAID = re.compile(
    r"Field elements must be 2- or 3-tuples|data type not understood|Cannot interpret .* as a data type"
    r"|Cannot construct a dtype from an array|Expected an ndarray or dtype"
)
_MAKERS = ("array", "asarray", "asanyarray")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line gives such a function a list or an array for a dtype."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not _SAID.search(situation.message):
        return None
    for call in calls(statement):
        if dotted(call.func).rpartition(".")[2] not in _MAKERS or len(call.args) != 2 or call.keywords:
            continue
        first, second = call.args
        listed = isinstance(second, (ast.List, ast.Tuple, ast.ListComp))
        if not listed and type(lookup(second, spot)) not in (list, tuple) and not is_ndarray(lookup(second, spot)):
            continue
        text, func = spot.source.text, spot.source.text(call.func)
        cause = f"The second argument of {func} is a dtype, and {short(text(second), 40)} stands there."
        parts = first.elts if isinstance(first, (ast.List, ast.Tuple)) and isinstance(statement, ast.Return) else []
        named = parts and all(
            type(lookup(one, spot)) in (list, tuple) or is_ndarray(lookup(one, spot)) for one in parts
        )
        made = ", ".join(f"{func}({text(one)})" for one in parts)
        inputs = f"({made}{',' if len(parts) == 1 else ''})" if named else f"{func}({text(first)})"
        whole = f"{inputs}, {func}({text(second)})"
        alone = isinstance(statement, (ast.Return, ast.Assign)) and statement.value is call
        edit = edit_of(spot.file, spot.source.replaced({call: whole if alone else f"({whole})"}))
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {whole}.", "likely")
    return None
