"""A name that Keras does not know as a metric: `metrics=["f1"]`."""

from __future__ import annotations

import ast
import difflib
import re

from pyfunc_debug.doctor.failures.models.keras_calls import given
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import keras_name, of_keras

RULE = "unknown-metric"
_SAID = re.compile(r"^Could not interpret (metric|loss) identifier: (\w[\w. -]*)$")
_CLASSES = {
    "f1": "F1Score(average='macro')", "f1score": "F1Score(average='macro')", "rmse": "RootMeanSquaredError()",
    "rootmeansquarederror": "RootMeanSquaredError()", "auc": "AUC()", "rocauc": "AUC()", "aucroc": "AUC()",
    "prauc": "AUC(curve='PR')", "r2": "R2Score()", "r2score": "R2Score()", "sensitivity": "Recall()",
    "precision": "Precision()", "recall": "Recall()", "tp": "TruePositives()", "fp": "FalsePositives()",
    "tn": "TrueNegatives()", "fn": "FalseNegatives()",
}  # fmt: skip
_NAMES = {
    "metric": ("accuracy", "mse", "mae", "mape", "msle", "binary_accuracy", "categorical_accuracy", "cosine_similarity",
               "sparse_categorical_accuracy", "top_k_categorical_accuracy", "binary_crossentropy",
               "categorical_crossentropy", "sparse_categorical_crossentropy"),
    "loss": ("mse", "mae", "mape", "msle", "binary_crossentropy", "categorical_crossentropy", "huber", "poisson",
             "sparse_categorical_crossentropy", "kl_divergence", "hinge", "log_cosh", "cosine_similarity",
             "mean_squared_error", "mean_absolute_error"),
}  # fmt: skip
_LOSSES = {"l1": "mae", "l2": "mse", "bce": "binary_crossentropy", "cross_entropy": "categorical_crossentropy",
           "crossentropy": "categorical_crossentropy", "rmse": "mse"}  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `compile` has a name that stands for none of Keras' metrics or losses."""
    found = _SAID.search(situation.message)
    if found is None or situation.body:
        return None
    kind, name = found[1], found[2]
    for spot in reversed(situation.spots):
        nodes = [one for one in given(spot) if isinstance(one, ast.Constant) and one.value == name]
        if len(nodes) == 1:
            return _told(spot, nodes[0], kind, name)
    return None


def _told(spot: Spot, node: ast.expr, kind: str, name: str) -> Explanation | None:
    plain = re.sub(r"\W|_", "", name.lower())
    cause = f"Keras has no {kind} of the name {name!r}."
    made = _CLASSES.get(plain) if kind == "metric" else None
    if made is not None:
        if made.startswith("F1Score") and _units(spot) == 1:
            made = "F1Score(threshold=0.5)"
        cause += f" It has a class, {made.partition('(')[0]}."
        new = f"{keras_name(spot)}.metrics.{made}".replace("'", '"')
        return Explanation(RULE, spot.file, node.lineno, cause, edit_of(spot.file, spot.source.replaced({node: new})))
    near = difflib.get_close_matches(name.lower(), _NAMES[kind], 1, 0.75)
    other = near[0] if near else _LOSSES.get(name.lower()) if kind == "loss" else None
    if other is None:
        return None
    cause += f" The nearest is {other!r}." if near else ""
    edit = edit_of(spot.file, spot.source.replaced({node: f'"{other}"'}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "", "likely")


def _units(spot: Spot) -> int | None:
    """The size of what a Keras model of the program gives last, where all of them give the same."""
    values = {**spot.module, **spot.variables}.values()
    shapes = [getattr(one, "output_shape", None) for one in values if of_keras(type(one), "Model")]
    sizes = {one[-1] if isinstance(one, tuple) and one else None for one in shapes}
    return sizes.pop() if len(sizes) == 1 else None
