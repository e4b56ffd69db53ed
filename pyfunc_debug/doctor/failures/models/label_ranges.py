"""Labels that a sparse loss has no unit for: they begin with 1, or the last layer has too few units."""

from __future__ import annotations

import ast
import re
import sys
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, fits
from pyfunc_debug.doctor.failures.ops.few_columns import is_cut, with_columns
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_dataset, is_ndarray, lookup, of_keras

RULE = "label-range"
_SAID = re.compile(
    r"Received a label value of (-?\d+) which is outside the valid range of \[0, (\d+)\)\.\s+Label values: ([-\d ]+)"
)
_LAYERS = ("Dense",)
_SHOWN = 5
_MASKED = 255
_OF_PAIR = 2
"""Units of a model that tells two classes apart, or fewer."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a loss got a label beyond the model's classes."""
    said, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if said is None or spot is None or statement is None:
        return None
    units, seen = int(said[2]), [int(one) for one in said[3].split()]
    fitted = fits(statement)
    if not fitted:
        return _of_own_step(spot, statement, units, seen)
    for call in fitted:
        named = {one.arg: one.value for one in call.keywords}
        data = call.args[0] if call.args else named.get("x")
        labels = call.args[1] if len(call.args) > 1 else named.get("y")
        ends = _ends(lookup(labels, spot)) if labels is not None else None
        least, most = ends if ends is not None else (min(seen), max(seen))
        apart = _apart(spot, call, labels, units) if (least, most) != (1, units) else None
        if apart is not None:
            return apart
        if least < 0 or least > 1:
            return None
        which = "labels are" if ends is not None else "labels of this batch are"
        cause = f"the {which} {least} to {most}, and the model has {units} classes: 0 to {units - 1}."
        binary = _of_two(spot, call) if units == 1 and (least, most) == (0, 1) else None
        if binary is not None:
            return binary
        if least == 1 and most == units:
            return _from_one(spot, call, cause, data, labels)
        if most >= units:
            return _too_few(spot, call, cause, units, most)
    return None


def _apart(spot: Spot, call: ast.Call, labels: ast.expr | None, units: int) -> Explanation | None:
    """Not more different labels than the model has classes, with other numbers: masks of 0 and 255, `[10, 20, 30]`."""
    value: Any = lookup(labels, spot) if labels is not None else None
    if labels is None or not is_ndarray(value) or value.dtype.kind not in "iu" or not value.size:
        return None
    numbers = sys.modules["numpy"].unique(value)
    pair = len(numbers) == 2 and numbers[0] == 0
    if not (len(numbers) == units > 1 or pair) or ((numbers >= 0) & (numbers < units)).all():
        return None
    text, np, source = spot.source.text(labels), alias(spot, "numpy"), spot.source
    shown = short(", ".join(str(int(one)) for one in numbers[:_SHOWN]), 40) + ", ..." * (len(numbers) > _SHOWN)
    cause = (
        f"the labels are {shown}, and the model's {units} classes 0 to {units - 1}: a label is the number of its class."
    )
    if pair and units > _OF_PAIR and numbers[1] != _MASKED:  # the other classes may be in other rows
        advice = f"Number the classes from 0, or give the last layer {int(numbers[1]) + 1} units."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice, "likely")
    validation = next((one.value for one in call.keywords if one.arg == "validation_data"), None)
    others = [validation.elts[1]] if isinstance(validation, ast.Tuple) and len(validation.elts) > 1 else []
    if pair:
        pieces = {one: f"{source.operand(one)} // {int(numbers[1])}" for one in (labels, *others)}
    else:
        pieces = {one: f"{np}.searchsorted({np}.unique({text}), {source.text(one)})" for one in (labels, *others)}
    edit = edit_of(spot.file, source.replaced(pieces))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else "Number the classes from 0.")


def _of_own_step(spot: Spot, statement: ast.stmt, units: int, seen: list[int]) -> Explanation | None:
    """Labels that begin with 1, in a step of the user's own: those of the batch are in the message."""
    losses = [
        one for part in (statement, spot.source.tree) for one in calls(part)
        if dotted(one.func).endswith("sparse_categorical_crossentropy")
        or of_keras(type(lookup(one.func, spot)), "SparseCategoricalCrossentropy")
    ]  # fmt: skip
    here = losses[:1] if losses and losses[0] in calls(statement) else list(dict.fromkeys(losses))
    labels = argument(here[0], 0, "y_true") if len(here) == 1 else None
    if labels is None or not seen or min(seen) < 0 or max(seen) < units:
        return None
    cause = (
        f"the labels of this batch are {min(seen)} to {max(seen)}, and the predictions have {units} classes: 0 to "
        f"{units - 1}."
    )
    if (min(seen), max(seen)) != (1, units):
        given = argument(here[0], 1, "y_pred")
        if is_cut(spot, given):
            return with_columns(spot, cause, given, units, max(seen) + 1, RULE)
        advice = f"Give the model's last layer a unit for each class: {max(seen) + 1} or more."
        return Explanation(RULE, spot.file, labels.lineno, cause, None, advice)
    edit = edit_of(spot.file, spot.source.replaced({labels: f"{spot.source.operand(labels)} - 1"}))
    cause += " They begin with 1, and classes with 0."
    return Explanation(
        RULE, spot.file, labels.lineno, cause, edit, "" if edit else "Give the loss labels less 1.", "likely"
    )


def _of_two(spot: Spot, call: ast.Call) -> Explanation | None:
    """One unit with a sigmoid, and labels 0 and 1: the loss of two classes is another."""
    loss = compiled(spot, call, "loss")
    last = [one for one in spot.source.calls_of(frozenset(_LAYERS)) if argument(one, 0, "units") is not None]
    units = argument(last[-1], 0, "units") if last else None
    activation = argument(last[-1], 1, "activation") if last else None
    if not isinstance(loss, ast.Constant) or not isinstance(units, ast.Constant) or activation is None:
        return None
    if units.value != 1 or "sigmoid" not in ast.unparse(activation) or not isinstance(loss.value, str):
        return None
    cause = (
        f"{loss.value} takes a unit for each class, and the last layer has one, with a sigmoid: that is the "
        "probability of label 1. binary_crossentropy takes it."
    )
    edit = edit_of(spot.file, spot.source.replaced({loss: '"binary_crossentropy"'}))
    return Explanation(RULE, spot.file, loss.lineno, cause, edit, "" if edit else 'Write loss="binary_crossentropy".')


def _ends(labels: Any) -> tuple[int, int] | None:
    """The smallest and the largest label of an array or a list."""
    kind = getattr(getattr(labels, "dtype", None), "kind", "")
    if kind in ("i", "u", "f") and len(labels):
        return int(labels.min()), int(labels.max())
    return None


def _from_one(spot: Spot, call: ast.Call, cause: str, data: ast.expr | None, labels: ast.expr | None) -> Explanation:
    """Labels that begin with 1, less one."""
    cause += " They begin with 1, and classes with 0."
    text, edit = spot.source.text, None
    if labels is not None:
        pieces = {labels: f"{text(labels)} - 1"}
        validation = next((one.value for one in call.keywords if one.arg == "validation_data"), None)
        if isinstance(validation, ast.Tuple) and len(validation.elts) > 1:
            pieces[validation.elts[1]] = f"{text(validation.elts[1])} - 1"
        edit = edit_of(spot.file, spot.source.replaced(pieces))
    elif data is not None and is_dataset(lookup(data, spot)):
        pieces = {data: f"{text(data)}.map(lambda x, y: (x, y - 1))"}
        edit = edit_of(spot.file, spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else "Give the loss labels less 1.")


def _too_few(spot: Spot, call: ast.Call, cause: str, units: int, most: int) -> Explanation:
    """The last layer, with a unit for each class."""
    layers = [
        one for one in spot.source.calls_of(frozenset(_LAYERS))
        if one.args and isinstance(one.args[0], ast.Constant) and one.args[0].value == units
    ]  # fmt: skip
    edit = edit_of(spot.file, spot.source.replaced({layers[-1].args[0]: str(most + 1)})) if layers else None
    line = layers[-1].lineno if layers else call.lineno
    advice = "" if edit else f"Give the model's last layer {most + 1} units."
    return Explanation(RULE, spot.file, line, f"{cause} {most + 1} classes need {most + 1} units.", edit, advice)
