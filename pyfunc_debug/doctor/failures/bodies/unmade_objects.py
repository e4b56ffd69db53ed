"""A method that is called on its class: `Augment.apply(x)`, where an object was meant."""

from __future__ import annotations

import ast
import inspect
import re
from contextlib import suppress

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, only_keeps

_SAID = re.compile(r"(\w+)\.(\w+)\(\) missing 1 required positional argument: ")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line of a body or a generator asks the user's class for what its objects do."""
    spot, statement = situation.last, situation.statement
    said = _SAID.search(situation.message)
    if spot is None or statement is None or said is None or not situation.data:
        return None
    for call in calls(statement):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != said[2]:
            continue
        kind = lookup(call.func.value, spot)
        if not isinstance(kind, type) or not only_keeps(kind) or kind.__name__ != said[1]:
            continue
        text = spot.source.text(call.func.value)
        cause = f"{text} is a class, and {said[2]} is of its objects: the first value is taken for the object."
        names = [name for name, value in {**spot.module, **spot.variables}.items() if type(value) is kind]
        needed: list[str] = ["..."]
        with suppress(TypeError, ValueError):
            given = inspect.signature(kind).parameters.values()
            needed = [one.name for one in given if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
        if len(names) == 1:
            edit = in_place(spot, {call.func.value: names[0]})
            return Explanation(RULE, spot.file, spot.line, f"{cause} {names[0]} is one.", edit, "", "likely")
        if not needed:
            edit = in_place(spot, {call.func.value: f"{text}()"})
            return Explanation(RULE, spot.file, spot.line, f"{cause} {text}() makes one.", edit, "", "likely")
        advice = f"Make one above the function, as one = {text}({', '.join(needed)}), and call one.{said[2]}(...)."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None
