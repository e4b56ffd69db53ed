"""A metric of TensorFlow 1 in `compile`: `tf.compat.v1.metrics.auc` makes variables each time that it is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.models.keras_calls import given
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, keras_name, lookup
from pyfunc_debug.interception.names.private import METRICS_OF_V1

RULE = "older-api"
_MAKES_VARIABLES = ("tf.function only supports singleton tf.Variables", "tf.metrics", "is not supported when eager")
_CLASSES = {
    "auc": "AUC", "precision": "Precision", "recall": "Recall", "accuracy": "Accuracy",
    "mean_absolute_error": "MeanAbsoluteError", "mean_squared_error": "MeanSquaredError",
    "root_mean_squared_error": "RootMeanSquaredError", "true_positives": "TruePositives",
    "false_positives": "FalsePositives", "true_negatives": "TrueNegatives", "false_negatives": "FalseNegatives",
}  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `compile` got such a metric, or a function of the user's that calls one."""
    if situation.body or not any(one in situation.message for one in _MAKES_VARIABLES):
        return None
    for spot in reversed(situation.spots):
        pieces = {one: name for one in given(spot) if (name := _name(one, spot))}
        if not pieces:
            continue
        keras = keras_name(spot)
        new: dict[ast.expr, str] = {one: f"{keras}.metrics.{_CLASSES[name]}()" for one, name in pieces.items()}
        names = " and ".join(f"tf.compat.v1.metrics.{name}" for name in dict.fromkeys(pieces.values()))
        cause = (
            f"{names} of TensorFlow 1 makes its variables each time that it is called, and gives two tensors, for a "
            "Session. Keras' class keeps its state between batches."
        )
        edit = Edit(spot.file, *spot.source.kept_lines(new))
        return Explanation(RULE, spot.file, edit.first, cause, edit)
    return None


def _name(node: ast.expr, spot: Spot) -> str:
    """Which of them a metric is, or the only one that a function of the file calls; "" where it is none."""
    found = set(_named(node, spot))
    functions = [
        one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(node)
    ]
    for one in functions if len(functions) == 1 else []:
        found |= {name for call in calls(one) for name in _named(call.func, spot)}
    return found.pop() if len(found) == 1 else ""


def _named(node: ast.expr, spot: Spot) -> Iterator[str]:
    value = lookup(node, spot)
    if getattr(value, "__module__", "") == METRICS_OF_V1 and getattr(value, "__name__", "") in _CLASSES:
        yield value.__name__
