"""`count += 1` in a body, of a name that stands outside: Python takes it for a name of the body's own."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, first_statement
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import indent_of

_SAID = re.compile(r"local variable '(\w+)' (?:where|referenced)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body counts with a name of the module, or of the function around it."""
    spot = situation.last
    found = _SAID.search(situation.message) if situation.kind == "UnboundLocalError" else None
    function = spot.function if spot is not None else None
    if found is None or spot is None or not situation.body or not isinstance(function, ast.FunctionDef):
        return None
    name = found[1]
    if not any(isinstance(one, ast.AugAssign) and getattr(one.target, "id", "") == name for one in own_nodes(function)):
        return None
    around = [one for one in spot.source.around(function) if isinstance(one, ast.FunctionDef)]
    outer = any(
        isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id == name
        for each in around for one in own_nodes(each)
    )  # fmt: skip
    if not outer and name not in spot.module:
        return None
    word, where = ("nonlocal", f"{around[0].name} has one") if outer else ("global", "the file has one")
    first = first_statement(function)
    blanks = indent_of(spot.source.lines[first - 1])
    cause = (
        f"`{name} += ...` makes {name} a name of {function.name}'s own, without a value yet. Where {where}, "
        f"`{word}` says that it is meant."
    )
    return Explanation(
        RULE, spot.file, spot.line, cause, Edit(spot.file, first, first - 1, (f"{blanks}{word} {name}",))
    )  # fmt: skip
