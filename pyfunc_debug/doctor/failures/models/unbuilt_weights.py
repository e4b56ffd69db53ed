"""`set_weights` of a model or layer that has no weights yet: Keras makes them when it knows what the input is."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup

RULE = "structure"
_SAID = re.compile(
    r"You called `set_weights\(weights\)` on layer '\S+' with a weight list of length (\d+), but the layer was "
    r"expecting 0 weights"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what gets the weights has none."""
    spot, said = situation.last, _SAID.search(situation.message)
    statement = situation.statement
    if spot is None or said is None or statement is None:
        return None
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == "set_weights" and one.args]
    name = dotted(found[0].func).rpartition(".")[0] if len(found) == 1 else ""
    if not name:
        return None
    cause = (
        f"{name} has no weights yet, and is given {said[1]} arrays: Keras makes the weights of a layer when it is "
        "first called, as their sizes are those of the input."
    )
    shape = _shape(spot, found[0].args[0])
    if shape is None:
        advice = f"Call {name} once, with an input of the right shape, above that line."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    text = f"{indent_of(spot.source.lines[statement.lineno - 1])}{name}({alias(spot, 'tensorflow')}.zeros({shape}))"
    edit = Edit(spot.file, statement.lineno, statement.lineno - 1, (text,))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "")


def _shape(spot: Spot, given: ast.expr) -> tuple[int, ...] | None:
    """The shape of an input: that with which the model was called that the weights are of."""
    if not isinstance(given, ast.Call) or dotted(given.func).rpartition(".")[2] != "get_weights":
        return None
    holder = dotted(given.func).rpartition(".")[0]
    source: Any = lookup(given.func.value, spot) if isinstance(given.func, ast.Attribute) and holder else None
    try:
        known = vars(source).get("_build_shapes_dict")
    except TypeError:
        return None
    shape = next(iter(known.values())) if isinstance(known, dict) and len(known) == 1 else None
    if not isinstance(shape, (tuple, list)) or len(shape) < 2 or any(type(one) is not int for one in shape[1:]):
        return None
    return (1, *(int(one) for one in shape[1:]))
