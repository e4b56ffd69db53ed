"""`get_layer` of a name or a place that a model does not have, and layers taken by a name or unpacked into weights.

Keras numbers the names of all layers of a process.
"""

from __future__ import annotations

import ast
import difflib
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup, method_calls, of_keras

RULE = "structure"
_NAME = re.compile(r"No such layer: (\S+)\. Existing layers are: \[(.*)\]")
_PLACE = re.compile(r"Was asked to retrieve layer at index (\d+) but model only has (\d+) layers")
_NO_INDEX = "list indices must be integers or slices, not str"
_FEWER = re.compile(r"^not enough values to unpack \(expected (\d), got 0\)")


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


def by_key(situation: Situation) -> Explanation | None:
    """The explanation, if the list of a model's layers was asked for a name: `model.layers["dense"]`."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.message != _NO_INDEX:
        return None
    found = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Attribute) and one.value.attr == "layers"
        and of_keras(type(lookup(one.value.value, spot)), "Model") and isinstance(one.ctx, ast.Load)
        and isinstance(one.slice.value if isinstance(one.slice, ast.Constant) else lookup(one.slice, spot), str)
    ]  # fmt: skip
    if len(found) != 1 or not isinstance(found[0].value, ast.Attribute):
        return None
    owner = spot.source.text(found[0].value.value)
    cause = f"{owner}.layers is a list, in the order of the layers: get_layer asks for one by its name."
    new = f"{owner}.get_layer({spot.source.text(found[0].slice)})"
    edit = edit_of(spot.file, spot.source.replaced({found[0]: new}))
    return Explanation(RULE, spot.file, found[0].lineno, cause, edit, "" if edit else f"Write {short(new, 60)}.")


def without_weights(situation: Situation) -> Explanation | None:
    """The explanation, if a loop over layers unpacks the weights of one that has none: `w, b = layer.get_weights()`."""
    spot, statement = situation.last, situation.statement
    said = _FEWER.search(situation.message)
    if said is None or spot is None or not isinstance(statement, ast.Assign):
        return None
    call = statement.value
    if not isinstance(call, ast.Call) or not dotted(call.func).endswith(".get_weights") or call.args:
        return None
    assert isinstance(call.func, ast.Attribute)
    layer = lookup(call.func.value, spot)
    if not of_keras(type(layer), "Layer"):
        return None
    owner, kind = spot.source.text(call.func.value), type(layer).__name__
    cause = f"{owner} is the {kind} {getattr(layer, 'name', '')!r}, a layer without weights: its get_weights() is []."
    if vars(layer).get("built") is not True:
        cause = f"{owner} is the {kind} {getattr(layer, 'name', '')!r}, which is not built yet: it has no weights."
        advice = "Keras builds layers as they are first called, or with an Input in front of them."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    around = spot.source.parent(statement)
    if not isinstance(around, ast.For) or dotted(around.target) != owner or statement not in around.body:
        advice = "Ask a layer that has them."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    blanks = indent_of(spot.source.lines[statement.lineno - 1])
    lines = (f"{blanks}if not {owner}.get_weights():", f"{blanks}    continue")
    edit = Edit(spot.file, statement.lineno, statement.lineno - 1, lines)
    return Explanation(RULE, spot.file, spot.line, f"{cause} Below, the loop goes on to the next one.", edit)


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
