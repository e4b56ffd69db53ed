"""An array that does not fit into memory: how large it would be, and which name makes it so."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import calls

_SAID = re.compile(r"Unable to allocate ([\d.]+) (\w+) for an array with shape \(([\d, ]+)\) and data type (\w+)")
_MAKES = ("zeros", "ones", "empty", "full", "eye", "identity", "to_categorical", "zeros_like")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if NumPy could not make an array in a body, a generator, or above them."""
    spot, said, statement = situation.last, _SAID.search(situation.message), situation.statement
    if spot is None or said is None or statement is None:
        return None
    shape = [int(one) for one in said[3].replace(" ", "").split(",") if one]
    size, largest = f"{float(said[1]):,.0f} {said[2]}", max(shape, default=0)
    names = [
        spot.source.text(one) for one in ast.walk(statement)
        if isinstance(one, (ast.Name, ast.Attribute, ast.Call)) and origins.number(origins.valued(one, spot)) == largest
    ]  # fmt: skip
    which = f": the axis of {largest:,} is {short(names[0], 30)}" if names else ""
    sizes = ", ".join(f"{one:,}" for one in shape)
    made = next((spot.source.text(one.func) for one in calls(statement) if _makes(one)), "")
    what = f"{made} would take" if made else f"line {spot.line} would take"
    cause = f"{what} {size} for an array of [{sizes}] ({said[4]}){which}."
    advice = "Make it for one batch at a time, in the generator or the map, and not for all rows."
    if len(shape) > 1 and shape[-1] == largest:
        advice = (
            "For rows of one 1 among zeros give the numbers themselves: a sparse loss and an Embedding take them. "
            "Else make it for one batch at a time."
        )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _makes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _MAKES
