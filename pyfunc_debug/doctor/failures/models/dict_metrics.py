"""A metric function that returns a dict: Keras takes one number from a function."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import given, is_metric
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import return_values
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import keras_name

RULE = "structure"
_LISTS = ("metrics", "weighted_metrics")
_TAKES = ("cast", "convert_to_tensor")
"""Keras' functions that get what a metric or a loss gives."""
_REFUSED = re.compile(r"Expected any non-tensor type, but got a tensor instead|Expected \w+, but got .*SymbolicTensor")
"""What TensorFlow says of a dict of tensors that Keras makes a tensor of."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras got a dict from a function that `compile` was given."""
    if situation.body or not _REFUSED.search(situation.message):
        return None
    cast = [
        frame.f_locals.get("x") for frame in frames(situation.inner.__traceback__) if frame.f_code.co_name in _TAKES
    ]  # fmt: skip
    cast = [one for one in cast if one is not None]
    values = cast[-1] if cast else None
    if not isinstance(values, dict) or not values or not all(isinstance(one, str) for one in values):
        return None
    for spot in reversed(situation.spots):
        found = [
            (one, function) for one in given(spot) if (function := _function(one, spot)) is not None
            and any(_keys(each) == list(values) for each in return_values(function))
        ]  # fmt: skip
        if len(found) == 1:
            return _explanation(spot, *found[0], list(values))
    return None


def _function(node: ast.expr, spot: Spot) -> ast.FunctionDef | None:
    name = dotted(node)
    own = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    return own[0] if len(own) == 1 and len(parameters(own[0])) == 2 else None


def _keys(value: ast.expr) -> list[object]:
    """The keys of `{"mae": mae, "mse": mse}`, or of `dict(mae=mae)`."""
    if isinstance(value, ast.Dict):
        return [getattr(one, "value", None) for one in value.keys]
    return [one.arg for one in value.keywords] if isinstance(value, ast.Call) and dotted(value.func) == "dict" else []


def _explanation(spot: Spot, node: ast.expr, function: ast.FunctionDef, keys: list[str]) -> Explanation:
    cause = f"{function.name} returns a dict: from a function Keras takes one number, or one for each row."
    if not is_metric(node, spot):
        advice = f"Return one of {', '.join(keys)}, or their sum."
        return Explanation(RULE, spot.file, node.lineno, cause, None, advice)
    keras = keras_name(spot)
    listed = ", ".join(parameters(function))
    each = [
        f'{keras}.metrics.MeanMetricWrapper(lambda {listed}: {function.name}({listed})["{key}"], "{key}")'
        for key in keys
    ]
    new = ", ".join(each)
    if not isinstance(spot.source.parent(node), (ast.List, ast.Tuple)):
        new = f"[{new}]"
    cause += " Below, each of them is a metric."
    return Explanation(RULE, spot.file, node.lineno, cause, wrapping.replace_expression(spot, node, new))


__all__ = ["explain"]
