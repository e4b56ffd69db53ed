"""One-hot labels by `to_categorical`: of texts, of labels that begin with 1, of each batch by its own classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.flows import flow_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    is_dataset,
    lookup,
    shape_of,
)

RULE = "label-range"
_TEXTS = re.compile(r"invalid literal for int\(\) with base 10: (?:np\.str_\()?'")
_BEYOND = re.compile(r"index (\d+) is out of bounds for axis 1 with size (\d+)")
_SHAPES = re.compile(r"must have the same shape\. Received: target\.shape=\(\w+, (\d+)\), output\.shape=\(\w+, (\d+)\)")
_BATCH = re.compile(r"logits_size=\[\d+,(\d+)\] labels_size=\[\d+,(\d+)\]")
_MAKES = frozenset({"to_categorical"})
_PLACED = 4
"""The arguments of a flow before class_mode."""
_NEAR = 6
"""Lines between calls that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if to_categorical failed, or its columns are not as many as the model's classes."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return None
    made = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in _MAKES and one.args]
    if len(made) == 1 and _TEXTS.search(situation.message):
        return _of_texts(spot, made[0])
    if len(made) == 1 and (said := _BEYOND.search(situation.message)):
        return _beyond(spot, made[0], int(said[2]))
    if said := _BATCH.search(situation.message):
        return _by_batch(situation, int(said[2]), int(said[1]))
    if said := _SHAPES.search(situation.message):
        sizes = int(said[1]), int(said[2])
        return _columns(situation, *sizes) or _by_batch(situation, *sizes) or _given(situation, *sizes)
    return None


def _of_texts(spot: Spot, call: ast.Call) -> Explanation | None:
    text, np = spot.source.text(call.args[0]), alias(spot, "numpy")
    value = _whole(call.args[0], spot)
    if getattr(getattr(value, "dtype", None), "kind", "") not in ("U", "O") and type(value) is not list:
        return None
    new = f"{np}.unique({text}, return_inverse=True)[1]"
    cause = f"to_categorical takes numbers of classes, and {text} are texts ({str(next(iter(value)))!r})."
    if spot.function is not None or isinstance(call.args[0], ast.Subscript):  # a part of them has not all classes
        advice = f"Make numbers of all labels once, before: {np}.unique(..., return_inverse=True)[1]."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    edit = edit_of(spot.file, spot.source.replaced({call.args[0]: new}))
    cause += " np.unique gives each name a number, in the order of the alphabet."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Give it {new}.")


def _whole(node: ast.expr, spot: Spot) -> Any:
    """All labels of those that are given: `self.labels` of `self.labels[rows]`."""
    inside = node.value if isinstance(node, ast.Subscript) else node
    value = lookup(inside, spot)
    return evaluation.computed(inside, spot) if value is None else value


def _ends(value: Any) -> tuple[int, int] | None:
    """The smallest and the largest of whole numbers."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind in ("i", "u") and len(value):
        return int(value.min()), int(value.max())
    numbers = type(value) in (list, tuple) and value and all(type(one) is int for one in value)
    return (min(value), max(value)) if numbers else None


def _less(spot: Spot, node: ast.expr) -> str:
    """Labels less 1."""
    text = spot.source.text(node)
    listed = isinstance(node, (ast.List, ast.Tuple)) or type(lookup(node, spot)) in (list, tuple)
    return f"{alias(spot, 'numpy')}.array({text}) - 1" if listed else f"{text} - 1"


def _beyond(spot: Spot, call: ast.Call, size: int) -> Explanation | None:
    labels, count = call.args[0], argument(call, 1, "num_classes")
    ends = _ends(_whole(labels, spot))
    if ends is None or count is None or ends[0] < 0 or ends[1] < size:
        return None
    cause = f"{spot.source.text(labels)} is {ends[0]} to {ends[1]}, and {size} classes are 0 to {size - 1}."
    if ends == (1, size):
        edit = edit_of(spot.file, spot.source.replaced({labels: _less(spot, labels)}))
        cause += " They are counted from 1."
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Give it labels less 1.")
    cause += f" {ends[1] + 1} classes need {ends[1] + 1} columns, and the last layer as many units."
    edit = edit_of(spot.file, spot.source.replaced({count: str(ends[1] + 1)}))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Give it {ends[1] + 1} classes.")


def _columns(situation: Situation, columns: int, units: int) -> Explanation | None:
    """One-hot labels of an array of other columns than the last layer's units."""
    for spot, fit in failed_fits(situation):
        given = argument(fit, 1, "y")
        labels: Any = lookup(given, spot) if given is not None else None
        if getattr(labels, "ndim", 0) != 2 or type(labels).__module__ != "numpy" or labels.shape[1] != columns:
            continue
        if not ((labels == 0) | (labels == 1)).all() or not (labels.sum(axis=1) == 1).all():
            continue
        cause = f"the labels have {columns} columns, and the model's last layer {units} unit{'s' * (units > 1)}."
        made = list(_made(spot, given))
        if columns == units + 1 and not labels[:, 0].any() and len(made) == 1:
            call = made[0]
            edit = edit_of(spot.file, spot.source.replaced({call.args[0]: _less(spot, call.args[0])}))
            cause += " No label is in the first column: they are counted from 1, and classes from 0."
            return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else "Give it labels less 1.")
        return _units(spot, fit, f"{cause} A class has a unit of its own.", columns, units)
    return None


def _units(spot: Spot, fit: ast.Call, cause: str, columns: int, units: int) -> Explanation | None:
    """The last Dense layer with as many units as there are classes."""
    dense = [
        one for one in spot.source.calls_of(frozenset({"Dense"}))
        if (size := argument(one, 0, "units")) is not None and evaluation.computed(size, spot) == units
    ]  # fmt: skip
    if not dense:
        return None
    size, activation = argument(dense[-1], 0, "units"), argument(dense[-1], 1, "activation")
    pieces = {size: str(columns)} if size is not None else {}
    if units == 1 and isinstance(activation, ast.Constant) and activation.value == "sigmoid":
        pieces[activation] = '"softmax"'
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, dense[-1].lineno, cause, edit, "" if edit else "Give it as many units.")


def _given(situation: Situation, columns: int, units: int) -> Explanation | None:
    """The same of a dataset, and of an image generator that reads classes from folders or a table."""
    for spot, fit in failed_fits(situation):
        data = argument(fit, 0, "x")
        value: Any = lookup(data, spot) if data is not None else None
        if data is None or value is None:
            continue
        text, layer = spot.source.text(data), f"the model's last layer has {units} unit{'s' * (units > 1)}"
        if is_dataset(value):
            spec = value.element_spec
            shape = shape_of(spec[1]) if isinstance(spec, tuple) and len(spec) > 1 else None
            if shape is None or shape[-1] != columns or units == 1:
                return None
            cause = f"the labels of {text} have {columns} columns, and {layer}. Each column takes a unit of its own."
            return _units(spot, fit, cause, columns, units)
        flow = flow_of(data, spot)
        if flow is None:
            continue
        held = flow.held
        if held.get("class_mode") != "categorical" or not isinstance(held.get("class_indices"), dict):
            return None
        cause = f'{text} gives one-hot labels of {columns} columns (class_mode="categorical"), and {layer}.'
        loss = compiled(spot, fit, "loss")
        if (columns, units) == (2, 1) and loss is not None and "binary" in spot.source.text(loss).lower():
            return _binary(spot, data, cause)
        classes = short(", ".join(map(str, held["class_indices"])), 40)
        return _units(spot, fit, f"{cause} Each class takes one: {classes}.", columns, units)
    return None


def _binary(spot: Spot, data: ast.expr, cause: str) -> Explanation | None:
    """Two classes for one unit: labels 0 and 1."""
    flows = [
        one for one in spot.source.calls_of(frozenset({"flow_from_directory", "flow_from_dataframe"}))
        if len(one.args) <= _PLACED and (
            (mode := next((word.value for word in one.keywords if word.arg == "class_mode"), None)) is None
            or (isinstance(mode, ast.Constant) and mode.value == "categorical")
        )
    ]  # fmt: skip
    made = [one for one in flows if one in spot.source.given_to(dotted(data))]
    if len(made) != 1:
        return None
    near = [one for one in flows if abs(one.lineno - made[0].lineno) <= _NEAR]
    written = []
    for one in near:
        named = next((word.value for word in one.keywords if word.arg == "class_mode"), None)
        pieces = {named: '"binary"'} if named is not None else {}
        lines = spot.source.ended(one, "" if pieces else 'class_mode="binary"', "", pieces)
        written.append(Edit(spot.file, one.lineno, one.end_lineno or one.lineno, lines))
    edit = together(written, spot.source.lines)
    cause += ' One unit is the probability of the second class: labels 0 and 1 are class_mode="binary".'
    return Explanation(RULE, spot.file, made[0].lineno, cause, edit)


def _made(spot: Spot, labels: ast.expr | None) -> Iterator[ast.Call]:
    """The calls of to_categorical that a name is assigned, and that count the classes themselves."""
    for one in ast.walk(spot.source.tree):
        if isinstance(one, ast.Assign) and labels is not None and dotted(one.targets[0]) == dotted(labels):
            call = one.value
            if isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in _MAKES and call.args:
                yield call


def _by_batch(situation: Situation, columns: int, units: int) -> Explanation | None:
    """to_categorical in what makes batches, without the number of classes."""
    found: list[tuple[str, Source, ast.Call]] = []
    for file, source in situation.sources():
        for call in source.calls_of(_MAKES):
            inside = any(isinstance(one, (ast.FunctionDef, ast.Lambda)) for one in source.around(call))
            if inside and call.args and argument(call, 1, "num_classes") is None:
                found.append((file, source, call))
    if len(found) != 1 or columns >= units:
        return None
    file, source, call = found[0]
    cause = (
        f"without num_classes, to_categorical makes as many columns as the labels of its batch need: {columns} here, "
        f"and the model has {units} classes."
    )
    edit = edit_of(file, source.replaced({call: source.with_argument(call, f"num_classes={units}")}))
    return Explanation(RULE, file, call.lineno, cause, edit, "" if edit else f"Give it num_classes={units}.", "likely")
