"""`self.validation_data` of a callback, which Keras 2 set in its first versions and Keras 3 does not."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of

RULE = "older-api"
_SAID = re.compile(r"^'(\w+)' object has no attribute 'validation_data'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a callback asked for the data of validation."""
    said, spot = _SAID.search(situation.message), situation.last
    if said is None or spot is None or situation.kind != "AttributeError":
        return None
    kind = said[1]
    cause = "Keras does not give a callback the data of validation: it has only self.model and self.params."
    advice = f"Give it to {kind}: self.validation_data = (x, y) in its __init__."
    for outer in reversed(situation.spots):
        found = _given(outer)
        if found is not None:
            statement, text = found
            blanks = indent_of(outer.source.lines[statement.lineno - 1])
            edit = Edit(
                outer.file, statement.lineno, statement.lineno - 1, (f"{blanks}{kind}.validation_data = {text}",)
            )
            made = any(isinstance(one, ast.ClassDef) and one.name == kind for one in ast.walk(outer.source.tree))
            return Explanation(RULE, spot.file, spot.line, cause, edit if made else None, "" if made else advice)
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _given(spot: Spot) -> tuple[ast.stmt, str] | None:
    """The statement of a frame that fits, and what it gives as validation_data."""
    statement = spot.statement
    given = [
        one.value for call in (fits(statement) if statement is not None else ()) for one in call.keywords
        if one.arg == "validation_data"
    ]  # fmt: skip
    return (statement, spot.source.text(given[0])) if statement is not None and len(given) == 1 else None
