"""Numbers of classes for a metric that takes a column for each: F1Score, Precision, Recall, AUC and their kin."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    is_dataset,
    is_ndarray,
    keras_name,
    lookup,
    shape_of,
)

RULE = "structure"
_SCORE = re.compile(r"FBetaScore expects 2D inputs with shape")
_SHAPES = re.compile(r"Incompatible shapes: \[\d+,(\d+)\] vs\. \[\d+,(\d+)\]")
_TAKE_COLUMNS = (
    "F1Score", "FBetaScore", "Precision", "Recall", "TruePositives", "FalsePositives", "TrueNegatives",
    "FalseNegatives",
)  # fmt: skip
_FARTHEST = 25
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a metric got the numbers of classes, of `fit`'s labels or a dataset's."""
    said = situation.message
    shapes = _SHAPES.search(said) if "LogicalAnd" in said else None
    if situation.body or not (_SCORE.search(said) or shapes):
        return None
    for spot, fit in failed_fits(situation):
        metrics, model = compiled(spot, fit, "metrics"), lookup(getattr(fit.func, "value", fit), spot)
        used = [
            name for one in (calls(metrics) if metrics is not None else ())
            if (name := dotted(one.func).rpartition(".")[2]) in _TAKE_COLUMNS
        ]  # fmt: skip
        output = getattr(model, "output_shape", None)
        classes = output[-1] if isinstance(output, tuple) and len(output) == 2 else None
        if not used or not isinstance(classes, int):
            continue
        if shapes is not None and int(shapes[1]) != classes * int(shapes[2]):
            continue
        return _told(spot, fit, " and ".join(dict.fromkeys(used)), classes)
    return None


def _told(spot: Spot, fit: ast.Call, names: str, classes: int) -> Explanation | None:
    """The labels as columns, and the loss that takes such."""
    data, text, tf = argument(fit, 0, "x"), spot.source.text, alias(spot, "tensorflow")
    labels = argument(fit, 1, "y")
    held: Any = lookup(data, spot) if data is not None else None
    if labels is not None and is_ndarray(given := computed(labels, spot)) and given.ndim == 1:
        node, shape = labels, f"[{len(given)}]"
        new = f"{text(labels)}.reshape(-1, 1)"
        if classes > 1:
            new = f"{keras_name(spot)}.utils.to_categorical({text(labels)}, {classes})"
    elif data is not None and is_dataset(held) and _has_numbers(held.element_spec):
        node, shape = data, "one number a row"
        column = f"{tf}.one_hot(y, {classes})" if classes > 1 else f"{tf}.expand_dims(y, -1)"
        new = f"{text(data)}.map(lambda x, y: (x, {column}))"
    else:
        return None
    takes = "take" if " and " in names else "takes"
    wanted = f"each of the model's {classes} outputs" if classes > 1 else "the model's one output"
    cause = f"{names} {takes} a column for {wanted}, and the labels are {shape}."
    edits = [Edit(spot.file, *spot.source.kept_lines({node: new}))]
    loss = compiled(spot, fit, "loss")
    if classes > 1:
        cause += " One-hot labels have them, and go with categorical_crossentropy."
        written = text(loss) if loss is not None else ""
        other = written.replace("sparse_categorical", "categorical").replace("SparseCategorical", "Categorical")
        if loss is None or other == written:
            return None
        edits.insert(0, Edit(spot.file, *spot.source.kept_lines({loss: other})))
        if edits[0].last >= edits[1].first or edits[1].last - edits[0].first > _FARTHEST:
            return Explanation(RULE, spot.file, fit.lineno, cause, None, f"Give {new}, and compile with {other}.")
    return Explanation(RULE, spot.file, fit.lineno, cause, together(edits, spot.source.lines))


def _has_numbers(spec: Any) -> bool:
    """Whether a dataset gives pairs whose labels are one number a row."""
    return isinstance(spec, tuple) and len(spec) == 2 and len(shape_of(spec[1]) or ()) == 1
