"""`.decode()` of what is text already: a generator keeps its own strings, and only those of a body come as bytes."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

_SAID = "'str' object has no attribute 'decode'"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body or a generator decodes a text."""
    spot, statement = situation.last, situation.statement
    if situation.message != _SAID or spot is None or statement is None or not situation.data:
        return None
    every = [
        one for one in calls(statement)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "decode"
    ]  # fmt: skip
    known = [one for one in every if isinstance(lookup(_owner(one), spot), str)]
    found = known or (every if len(every) == 1 else [])
    if not found:
        return None
    text = spot.source.text(_owner(found[0]))
    value = lookup(_owner(found[0]), spot)
    shown = f", {short(repr(value), 30)}" if isinstance(value, str) else ""
    cause = (
        f"{short(text, 30)} is text already{shown}: TensorFlow gives its bodies bytes, and what the program keeps "
        "itself is as it was made."
    )
    if isinstance(statement, ast.Assign) and ast.unparse(statement) == f"{text} = {ast.unparse(found[0])}":
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Leave line {spot.line} out.")
    edit = in_place(spot, {one: spot.source.text(_owner(one)) for one in found})
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Take {text} as it is.")


def _owner(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value
