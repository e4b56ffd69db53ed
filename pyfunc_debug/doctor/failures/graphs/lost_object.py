"""A method that is a tf.function, called on an object that nothing keeps: TensorFlow holds `self` weakly."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "lost-object"
_NONE = re.compile(r"'NoneType' object has no attribute '\w+'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `self` was gone when the method was traced."""
    spot = situation.last
    function = spot.function if spot is not None else None
    if spot is None or function is None or not _NONE.search(situation.message):
        return None
    if next(iter(function.args.args), ast.arg("")).arg != "self" or spot.variables.get("self", spot) is not None:
        return None
    outer = situation.outer(spot)
    statement = outer.statement if outer is not None else None
    name = getattr(function, "name", "")
    found = [
        one.func.value for one in (calls(statement) if statement is not None else ())
        if isinstance(one.func, ast.Attribute) and one.func.attr == name and isinstance(one.func.value, ast.Call)
    ]  # fmt: skip
    if outer is None or statement is None or len(found) != 1:
        return None
    made = found[0]
    new = dotted(made.func).rpartition(".")[2].lower() or "made"
    placed = outer.source.replaced({made: new})
    text = outer.source.text(made)
    cause = (
        f"{name} is a tf.function, and TensorFlow keeps `self` weakly: nothing else kept `{text}`, so it was gone when "
        f"{name} was traced."
    )
    edit = None
    if placed is not None and placed[0] == statement.lineno:
        line = f"{indent_of(outer.source.lines[placed[0] - 1])}{new} = {text}"
        edit = Edit(outer.file, placed[0], placed[1], (line, placed[2]))
    return Explanation(
        RULE, outer.file, statement.lineno, cause, edit, "" if edit else "Keep the object in a variable."
    )
