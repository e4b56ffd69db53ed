"""Labels that are texts, given to a loss: a loss takes numbers, and StringLookup gives each text its own."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import dtype_of, is_dataset, keras_name, lookup

RULE = "label-range"
_SAID = re.compile(r"Cast string to |must have the same (?:rank|shape)|dtype(?:=|: )?'?string|of type string")

_IN_LOSS = re.compile(r"Cast string to \w+ is not supported.*\{node compile_loss/", re.DOTALL)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `fit` was given texts for labels."""
    if situation.body or not _SAID.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        for call in fits(statement) if statement is not None else ():
            found = _of_dataset(spot, call)
            if found is None and _IN_LOSS.search(situation.message):
                cause = "the labels are texts, and a loss takes numbers."
                advice = "Give each class its number: a StringLookup that is adapted to the labels does."
                found = Explanation(RULE, spot.file, call.lineno, cause, None, advice)
            if found is not None:
                return found
    return None


def _one_hot(spot: Spot, call: ast.Call) -> bool:
    """Whether the compiled loss takes a column for each class."""
    loss = compiled(spot, call, "loss")
    if isinstance(loss, ast.Constant):
        return loss.value == "categorical_crossentropy"
    return (
        dotted(loss.func if isinstance(loss, ast.Call) else loss).endswith(".CategoricalCrossentropy")
        if loss
        else False
    )


def _lookup(spot: Spot, call: ast.Call) -> str:
    mode = ', output_mode="one_hot"' if _one_hot(spot, call) else ""
    return f"{keras_name(spot)}.layers.StringLookup(num_oov_indices=0{mode})"


def _of_dataset(spot: Spot, call: ast.Call) -> Explanation | None:
    """A dataset of (inputs, texts), by its name."""
    data = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "x"), None)
    value = lookup(data, spot) if isinstance(data, ast.Name) else None
    spec = getattr(value, "element_spec", None) if is_dataset(value) else None
    if not isinstance(data, ast.Name) or type(spec) is not tuple or len(spec) != 2 or dtype_of(spec[1]) != "string":
        return None
    other = next((one.value for one in call.keywords if one.arg == "validation_data"), None)
    given = [one for one in (data, other) if isinstance(one, ast.Name) and is_dataset(lookup(one, spot))]
    edit = edit_of(spot.file, spot.source.replaced({one: f"{one.id}.map(numbered)" for one in given}))
    if edit is None:
        return None
    blanks = indent_of(spot.source.lines[edit.first - 1])
    lines = (
        f"{blanks}classes = {_lookup(spot, call)}",
        f"{blanks}classes.adapt({data.id}.map(lambda x, y: y))",
        f"{blanks}numbered = lambda x, y: (x, classes(y))",
    )
    edit = Edit(edit.file, edit.first, edit.last, (*lines, *edit.lines))
    cause = f"the labels of {data.id} are texts, and a loss takes numbers. StringLookup gives each class its number."
    return Explanation(RULE, spot.file, spot.line, cause, edit)
