"""`get_layer` of a name or a place that a model does not have: Keras numbers the names of all layers of a process."""

from __future__ import annotations

import ast
import difflib
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import lookup, method_calls

RULE = "structure"
_NAME = re.compile(r"No such layer: (\S+)\. Existing layers are: \[(.*)\]")
_PLACE = re.compile(r"Was asked to retrieve layer at index (\d+) but model only has (\d+) layers")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a model has no layer of the name or at the place that was asked for."""
    spot, statement = situation.last, situation.statement
    named, placed = _NAME.search(situation.message), _PLACE.search(situation.message)
    if spot is None or statement is None or (named is None and placed is None):
        return None
    asked = method_calls(statement, "get_layer")
    if len(asked) != 1:
        return None
    given = [*asked[0].args, *(one.value for one in asked[0].keywords)]
    if named is not None:
        return _of_name(spot, given, named[1], re.findall(r"'([^']*)'", named[2]))
    assert placed is not None
    last = int(placed[2]) - 1
    cause = f"The model has {placed[2]} layers, counted from 0 to {last}; a Sequential does not count its Input."
    node = given[0] if len(given) == 1 and isinstance(given[0], ast.Constant) else None
    if node is None or last < 0:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Ask for an index up to {last}.")
    edit = edit_of(spot.file, spot.source.replaced({node: str(last)}))
    return Explanation(RULE, spot.file, spot.line, f"{cause} The last:", edit, "", "likely")


def _of_name(spot: Spot, given: list[ast.expr], name: str, known: list[str]) -> Explanation | None:
    node = given[0] if len(given) == 1 else None
    base = re.sub(r"_\d+$", "", name)
    same = [one for one in known if re.sub(r"_\d+$", "", one) == base]
    near = same if len(same) == 1 else difflib.get_close_matches(name, known, 1, 0.75) if not same else []
    listed = short(", ".join(known), 60)
    cause = f"The model has no layer {name}; it has {listed}."
    if same and re.search(r"_\d+$|^[a-z0-9]+$", name):
        cause += (
            " Keras numbers such names through the whole process: a model that was made before changes them, as a cell "
            "that ran twice does."
        )
    if len(near) == 1 and isinstance(node, ast.Constant):
        edit = edit_of(spot.file, spot.source.replaced({node: f'"{near[0]}"'}))
        return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    if node is not None and isinstance(lookup(node, spot), str):
        return Explanation(RULE, spot.file, spot.line, cause, None, "Ask for one of these.")
    advice = 'Ask for one of these; or name the layer where it is made: name="features".'
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
