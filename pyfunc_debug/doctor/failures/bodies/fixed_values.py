"""A part of a tuple, a text or bytes that is assigned: these are never changed, others are made of them."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import indent_of

_SAID = re.compile(r"'(tuple|str|bytes)' object does not support item assignment")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator assigns a part of such a value."""
    spot, statement = situation.last, situation.statement
    said = _SAID.match(situation.message)
    if spot is None or said is None or not situation.data or not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return None
    target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
    if not isinstance(target, ast.Subscript) or isinstance(target.slice, (ast.Slice, ast.Tuple)):
        return None
    text, owner = spot.source.text, spot.source.text(target.value)
    place = origins.valued(target.slice, spot)
    if origins.number(place) is None or origins.number(place) < 0:  # type: ignore[operator]
        return None
    at = text(target.slice)
    behind = str(int(place) + 1) if isinstance(target.slice, ast.Constant) else f"{at} + 1"
    before = f"{owner}[:{at}]" if at != "0" else ""
    new = text(statement.value)
    if isinstance(statement, ast.AugAssign):
        new = spot.source.augmented(statement, f"{owner}[{at}]")
    if said[1] == "tuple":
        made = f"({f'*{before}, ' if before else ''}{new}, *{owner}[{behind}:])"
    else:
        made = " + ".join(filter(None, (before, new, f"{owner}[{behind}:]")))
    kind = {"tuple": "a tuple", "str": "a text", "bytes": "bytes"}[said[1]]
    cause = f"{owner} is {kind}, which nothing changes. This makes another one, with the new part in its place."
    first, last = spot.source.span(statement)
    edit = Edit(spot.file, first, last, (f"{indent_of(spot.source.lines[first - 1])}{owner} = {made}",))
    return Explanation(RULE, spot.file, spot.line, cause, edit)
