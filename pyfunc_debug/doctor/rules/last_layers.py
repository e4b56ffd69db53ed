"""A last layer whose numbers the loss takes for probabilities, or that gives 1 for every input."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.compiled_models import compiled_models, last_layer
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("last-layer",)
_OF_CLASSES = ("categorical_crossentropy", "sparse_categorical_crossentropy")
_OF_TWO = ("binary_crossentropy",)
_UNBOUNDED = (None, "linear", "relu")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `compile` of a model that Keras trained."""
    for compiled in compiled_models(facts):
        layer, loss = last_layer(compiled), compiled.loss
        if layer is not None and isinstance(loss, ast.Constant) and isinstance(loss.value, str):
            yield from _looked_at(facts, compiled.file, compiled.call, layer, loss.value)


def _looked_at(facts: Facts, file: str, call: ast.Call, layer: ast.Call, loss: str) -> Iterator[Finding]:
    units, given = pastes.argument(layer, 0, "units"), pastes.argument(layer, 1, "activation")
    count = units.value if isinstance(units, ast.Constant) else None
    if given is not None and not isinstance(given, ast.Constant):
        return
    activation = given.value if isinstance(given, ast.Constant) else None
    text = pastes.text_of(facts, file, layer)
    if count == 1 and activation == "softmax":
        message = f"{text} gives 1 for every input: softmax divides by the sum over the units, and there is one"
        yield _activated(facts, file, layer, given, "sigmoid", message)
    elif loss in _OF_CLASSES and activation in _UNBOUNDED and isinstance(count, int) and count > 1:
        message = f"{loss} takes what {text} gives for probabilities, and without softmax these are any numbers"
        yield _activated(facts, file, layer, given, "softmax", message)
    elif loss in _OF_TWO and activation in _UNBOUNDED and isinstance(count, int):
        message = f"{loss} takes what {text} gives for a probability, and without sigmoid it is any number"
        yield _activated(facts, file, layer, given, "sigmoid", message)


def _activated(
    facts: Facts, file: str, layer: ast.Call, given: ast.expr | None, activation: str, message: str
) -> Finding:
    own = pastes.source(facts, file)
    if given is not None:
        edit = pastes.replaced(facts, file, {given: f'"{activation}"'})
    else:
        edit = pastes.replaced(facts, file, {layer: own.with_argument(layer, f'activation="{activation}"')})
    return Finding(
        NAMES[0], "warning", None, (), message, pastes.written(edit), file, layer.lineno, confidence="likely"
    )
