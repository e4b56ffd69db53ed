"""One-hot labels, or a column of scores a class, for a function that counts classes: `confusion_matrix(y, pred)`."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, is_tensor, lookup, shape_of

RULE = "structure"
_OF_SCORES = (("y_true", "y_pred"),)
_FUNCTIONS = {
    "confusion_matrix": (("labels", "predictions"), ("y_true", "y_pred")),
    "cohen_kappa_score": (("y1", "y2"), ("y_true", "y_pred")),
    "classification_report": _OF_SCORES, "accuracy_score": _OF_SCORES, "f1_score": _OF_SCORES,
    "precision_score": _OF_SCORES, "recall_score": _OF_SCORES, "balanced_accuracy_score": _OF_SCORES,
    "matthews_corrcoef": _OF_SCORES,
}  # fmt: skip
"""Functions of two arrays of classes, TensorFlow's and scikit-learn's, and how their parameters are called."""
_SAID = re.compile(
    r"ScatterNd|[Ss]hapes? .*(?:incompatible|must be equal|must match)|[Mm]ust have rank|multilabel-indicator"
    r"|continuous|multiclass-multioutput|Dimensions \[0,\d\)|indices\[|squeezed"
    r"|`(?:predictions|labels)` (?:contains negative|out of bound)"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an array of such a call has a column for each class."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    for call in calls(statement):
        name = dotted(call.func).rpartition(".")[2]
        for first, second in _FUNCTIONS.get(name, ()):
            given = [argument(call, 0, first), argument(call, 1, second)]
            pieces = {one: new for one in given if one is not None and (new := _as_numbers(one, spot))}
            if pieces:
                return _told(spot, name, pieces)
    return None


def _as_numbers(node: ast.expr, spot: Spot) -> str:
    """An array with a column a class as numbers of classes; "" of another."""
    value: Any = lookup(node, spot)
    shape = shape_of(value) if is_ndarray(value) or is_tensor(value) else None
    if shape is None or len(shape) != 2 or shape[1] is None:
        return ""
    text = spot.source.atom(node)
    whole = "int" in str(getattr(value, "dtype", ""))
    if shape[1] > 1:
        if is_ndarray(value):
            return f"{text}.argmax(axis=-1)"
        return f"{alias(spot, 'tensorflow')}.argmax({spot.source.text(node)}, axis=-1)"
    if whole or not is_ndarray(value) or not value.size or value.dtype.kind != "f":
        return ""
    if (value == value.round()).all():
        return f"{text}.astype(int).ravel()"
    return f"({text} > 0.5).astype(int).ravel()" if value.min() >= 0 and value.max() <= 1 else ""


def _told(spot: Spot, name: str, pieces: dict[ast.expr, str]) -> Explanation:
    parts = []
    for one in pieces:
        shape = list(shape_of(lookup(one, spot)) or ())
        what = "a column for each class" if shape[-1] != 1 else "a column of floats"
        parts.append(f"{short(spot.source.text(one), 30)} is {shape}, {what}")
    cause = f"{name} counts numbers of classes, and {'; '.join(parts)}."
    first = next(iter(pieces))
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    guessed = any(" > 0.5)" in one for one in pieces.values())
    return Explanation(RULE, spot.file, first.lineno, cause, edit, "", "likely" if guessed else "measured")
