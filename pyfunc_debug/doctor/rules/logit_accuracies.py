"""An accuracy of logits: Keras takes 0.5 for the bound between two classes, and the bound of logits is 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.models.compiled_models import Compiled, compiled_models, last_layer
from pyfunc_debug.records import Finding

NAMES = ("logit-accuracy",)
_LOGITS = re.compile(r"\bBinary(?:Focal)?Crossentropy\([^()]*from_logits\s*=\s*True")
_NAMES = ("accuracy", "acc", "binary_accuracy")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `compile` of a model with one column of logits."""
    for compiled in compiled_models(facts):
        loss = compiled.loss
        if loss is None or not _LOGITS.search(ast.unparse(loss)) or not _is_linear(compiled):
            continue
        given = next((one.value for one in compiled.call.keywords if one.arg == "metrics"), None)
        metrics = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
        for metric in metrics:
            if _is_accuracy(metric):
                yield _finding(facts, compiled, metric)
                break


def _is_linear(compiled: Compiled) -> bool:
    """Whether the last layer is a Dense of one column without an activation."""
    layer = last_layer(compiled)
    if layer is None:
        return False
    units, activation = pastes.argument(layer, 0, "units"), pastes.argument(layer, 1, "activation")
    plain = activation is None or ast.unparse(activation) in ("None", "'linear'")
    return plain and isinstance(units, ast.Constant) and units.value == 1


def _is_accuracy(metric: ast.expr) -> bool:
    if isinstance(metric, ast.Constant):
        return metric.value in _NAMES
    named = isinstance(metric, ast.Call) and pastes.last_name(metric.func) == "BinaryAccuracy"
    return named and isinstance(metric, ast.Call) and pastes.argument(metric, 2, "threshold") is None


def _finding(facts: Facts, compiled: Compiled, metric: ast.expr) -> Finding:
    file = compiled.file
    own, tf, keras = pastes.source(facts, file), *(pastes.module(facts, file, one) for one in ("tensorflow", "keras"))
    made = f'{keras or f"{tf}.keras"}.metrics.BinaryAccuracy(name="accuracy", threshold=0.0)'
    if isinstance(metric, ast.Call):
        made = own.with_argument(metric, "threshold=0.0")
    return Finding(
        NAMES[0], "warning", None, (),
        f"{own.text(metric)} takes what is above 0.5 for class 1, and the model gives logits (from_logits=True), of "
        "which 0 is the bound: rows between 0 and 0.5 count for class 0",
        pastes.written(pastes.replaced(facts, file, {metric: made})) or made, file, metric.lineno,
    )  # fmt: skip
