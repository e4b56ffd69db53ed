"""MeanIoU or IoU of a model that gives a score for each class: it takes numbers of classes, if nothing else is said.

The op that refuses them says two counts: one is that of the labels, and the other as often as there are classes.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_keras_class, lookup, method_calls, shape_of

RULE = "structure"
_SHAPES = re.compile(r"Incompatible shapes: \[(\d+)\] vs\. \[(\d+)\]")
_KINDS = ("MeanIoU", "IoU")
_TAKES = "sparse_y_pred=False"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a metric got scores, of `fit` or in a call of its own."""
    shapes = _SHAPES.search(situation.message) if "LogicalAnd" in situation.message else None
    spot, statement = situation.last, situation.statement
    if shapes is None or spot is None or statement is None or situation.body:
        return None
    labels, scores = sorted((int(shapes[1]), int(shapes[2])))
    if not labels or scores % labels or scores == labels:
        return None
    return _told(situation, spot, statement, scores // labels) if int(shapes[1]) == labels else None


def _told(situation: Situation, spot: Spot, statement: ast.stmt, classes: int) -> Explanation | None:
    """The metric with the argument that says how predictions are given."""
    for place, fit in failed_fits(situation):
        model = lookup(getattr(fit.func, "value", fit), place)
        output = getattr(model, "output_shape", None)
        metrics = compiled(place, fit, "metrics")
        if not isinstance(output, tuple) or metrics is None or output[-1] != classes:
            continue
        made = [one for part in _held(metrics, place) for one in _metrics(part)]
        return _pasted(place, made, classes, "the model gives") if len(made) == 1 else None
    for call in [*method_calls(statement, "update_state"), *calls(statement)]:
        func = call.func
        owner = func.value if isinstance(func, ast.Attribute) and func.attr == "update_state" else func
        value = lookup(owner, spot)
        given = argument(call, 1, "y_pred")
        shape = shape_of(lookup(given, spot)) if given is not None else None
        if type(value).__name__ in _KINDS and is_keras_class(type(value)) and shape and shape[-1] == classes:
            made = [one for part in _held(owner, spot) for one in _metrics(part)]
            return _pasted(spot, made, classes, "the predictions have") if len(made) == 1 else None
    return None


def _held(node: ast.AST, spot: Spot) -> list[ast.AST]:
    """An expression, and what the names in it were assigned."""
    used = {dotted(one) for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute))}
    return [node] + [
        one.value for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and any(dotted(each) in used for each in one.targets)
        and isinstance(one.value, (ast.Call, ast.List, ast.Tuple))
    ]  # fmt: skip


def _metrics(node: ast.AST) -> list[ast.Call]:
    return [one for one in calls(node) if dotted(one.func).rpartition(".")[2] in _KINDS]


def _pasted(spot: Spot, made: list[ast.Call], classes: int, have: str) -> Explanation | None:
    call, name = made[0], dotted(made[0].func).rpartition(".")[2]
    written = [one for one in call.keywords if one.arg == "sparse_y_pred"]
    text = spot.source.text
    pieces: dict[ast.expr, str] = {call: f"{text(call.func)}({spot.source.arguments(call)}, {_TAKES})"}
    if written:
        pieces = {written[0].value: "False"}
    cause = (
        f"{name} compares numbers of classes, and {have} {classes} numbers, one for each class. "
        f"{_TAKES} tells it to take the class of the greatest."
    )
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit is not None else f"Give it {_TAKES}.")
