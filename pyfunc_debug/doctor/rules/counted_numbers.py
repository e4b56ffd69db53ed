"""`metrics=["accuracy"]` of a model that predicts numbers: it counts classes, and a number is hardly ever equal."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.models.compiled_models import compiled_models, last_layer
from pyfunc_debug.records import Finding

NAMES = ("regression-accuracy",)
_OF_NUMBERS = re.compile(
    r"(?i)^(?:(?:tf\.)?(?:keras\.)?(?:losses\.)?)(?:mse|mae|mape|msle|mean_?squared_?error|mean_?absolute_?error"
    r"|mean_?absolute_?percentage_?error|mean_?squared_?logarithmic_?error|huber(?:_?loss)?|log_?cosh)(?:\(|$)"
)
_ACCURACIES = ("acc", "accuracy")
_UNBOUNDED = (None, "linear", "relu")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `compile`."""
    for compiled in compiled_models(facts):
        layer, loss = last_layer(compiled), compiled.loss
        text = "" if loss is None else str(loss.value) if isinstance(loss, ast.Constant) else ast.unparse(loss)
        metrics = pastes.argument(compiled.call, 99, "metrics")
        listed = metrics.elts if isinstance(metrics, (ast.List, ast.Tuple)) else []
        counted = [one for one in listed if isinstance(one, ast.Constant) and one.value in _ACCURACIES]
        if layer is None or not counted or not _OF_NUMBERS.search(text) or not _gives_numbers(layer):
            continue
        others = any(isinstance(one, ast.Constant) and one.value == "mae" for one in listed) or "mae" in text
        new = '"mape"' if others else '"mae"'
        yield Finding(
            NAMES[0], "note", None, (),
            f"accuracy counts predictions that hit a class. {pastes.text_of(facts, compiled.file, layer)} with {text} "
            "predicts numbers, which are hardly ever equal to the labels: it says nothing of these",
            _renamed(facts, compiled.file, counted[0], new.strip('"')),
            compiled.file, counted[0].lineno, confidence="likely",
        )  # fmt: skip


def _renamed(facts: Facts, file: str, counted: ast.Constant, new: str) -> str:
    """The metric by another name, and where the program asks for it: `history["val_accuracy"]`."""
    old, tree = str(counted.value), facts.tree(file)
    scope = next(iter(pastes.around(tree, counted.lineno, ast.FunctionDef)[::-1]), tree)
    keys = [one.slice for one in pastes.walk(scope, ast.Subscript)]
    keys += [one.value for one in pastes.walk(scope, ast.keyword) if one.arg == "monitor"]
    asked = [one for one in keys if isinstance(one, ast.Constant) and one.value in (old, f"val_{old}")]
    pieces: dict[ast.expr, str] = {one: f'"{str(one.value).replace(old, new)}"' for one in (counted, *asked)}
    return pastes.all_replaced(facts, file, pieces)


def _gives_numbers(layer: ast.Call) -> bool:
    """Whether a Dense layer has one unit and no activation that makes a class of it."""
    units, given = pastes.argument(layer, 0, "units"), pastes.argument(layer, 1, "activation")
    known = given is None or isinstance(given, ast.Constant)
    activation = given.value if isinstance(given, ast.Constant) else None
    return known and activation in _UNBOUNDED and isinstance(units, ast.Constant) and units.value == 1
