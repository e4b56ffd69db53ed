"""A last layer whose numbers the loss takes for something else, or that cannot give what it is compared with."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.models.compiled_models import compiled_models, last_layer
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("last-layer",)
_OF_CLASSES = ("categorical_crossentropy", "sparse_categorical_crossentropy")
_OF_TWO = ("binary_crossentropy",)
_PIXEL = 255
_UNBOUNDED = (None, "linear", "relu")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `compile` of a model that Keras trained."""
    told: set[str] = set()
    for compiled in compiled_models(facts):
        layer, loss = last_layer(compiled), compiled.loss
        if layer is not None and isinstance(loss, ast.Constant) and isinstance(loss.value, str):
            for found in _looked_at(facts, compiled.file, compiled.call, layer, loss.value):
                told.add(compiled.file)
                yield found
    for _, _, noticed in facts.notices.get(Notice.COMPILED_LOSS, []):
        seen = _of_objects(facts, noticed) if noticed["file"] not in told else None
        if seen is not None:
            told.add(noticed["file"])
            yield seen
    for _, _, noticed in facts.notices.get(Notice.TARGET_RANGE, []):
        beyond = _of_targets(facts, noticed) if noticed["file"] not in told else None
        if beyond is not None:
            told.add(noticed["file"])
            yield beyond


def _of_targets(facts: Facts, noticed: Mapping[str, Any]) -> Finding | None:
    """Targets that the last layer cannot give, as `fit` was given them."""
    file, activation, (least, most) = noticed["file"], noticed["activation"], noticed["ends"]
    models = [one for one in compiled_models(facts) if one.file == file]
    layer = last_layer(models[0]) if len(models) == 1 else None
    given = pastes.argument(layer, 1, "activation") if layer is not None else None
    known = isinstance(given, ast.Constant) and given.value == activation
    line = layer.lineno if layer is not None and known else noticed["line"]
    if noticed["several"]:
        message = (
            f"softmax shares 1 among the classes of a row, and {noticed['several']:,} of {noticed['rows']:,} rows of "
            "labels have several ones: each class needs a sigmoid of its own"
        )
        return _changed(facts, file, line, layer if known else None, given, "sigmoid", message)
    shown = f"{least:g} to {most:g}"
    gives = {"tanh": "-1 to 1", "relu": "no number below 0", "softplus": "no number below 0", "relu6": "0 to 6"}
    message = (
        f"the targets are {shown}, and the last layer ({noticed['layer']}, {activation}) gives "
        f"{gives.get(activation, '0 to 1')}: it never reaches them"
    )
    if noticed["itself"] and least >= 0 and _PIXEL / 2 < most <= _PIXEL and activation == "sigmoid":
        own = pastes.source(facts, file)
        fit = pastes.call_at(facts, file, noticed["line"], "fit")
        both = [*fit.args[:2], *(one.value for one in fit.keywords if one.arg in ("x", "y"))] if fit is not None else []
        fix = pastes.all_replaced(facts, file, {one: f"{own.operand(one)} / 255.0" for one in both}) if both else ""
        fix = fix or "scale them: x / 255.0, wherever the model is given x"
        return Finding(NAMES[0], "warning", None, (), message, fix, file, noticed["line"])
    return _changed(facts, file, line, layer if known else None, given, "linear", message)


def _changed(
    facts: Facts, file: str, line: int, layer: ast.Call | None, given: ast.expr | None, activation: str, message: str
) -> Finding:
    """A finding with another activation of the last layer to paste, where that is known."""
    if layer is not None:
        return dataclasses.replace(_activated(facts, file, layer, given, activation, message), confidence="measured")
    return Finding(
        NAMES[0], "warning", None, (), message, f'activation="{activation}" in the last layer', file, line
    )  # fmt: skip


def _of_objects(facts: Facts, noticed: Mapping[str, Any]) -> Finding | None:
    """What the loss and the last layer say themselves, however the program wrote them."""
    file, loss, activation, units = noticed["file"], noticed["loss"], noticed["activation"], noticed["units"]
    layer = f"the last layer ({noticed['layer']}, {units} units)" if units != 1 else f"the last {noticed['layer']}"
    makes = [
        one for one in pastes.walk(facts.tree(file), ast.Call)
        if pastes.last_name(one.func) == "".join(part.title() for part in loss.split("_"))
    ]  # fmt: skip
    line = makes[0].lineno if len(makes) == 1 else noticed["line"]
    if loss != "binary_crossentropy" and units == 1 and not (loss.startswith("sparse") or noticed["logits"]):
        message = (
            f"{loss} compares the columns of a row, and {layer} gives one: it is divided by itself, so that the loss "
            "is 0 whatever the model says. Two classes in one column are for binary_crossentropy"
        )
        fix = _as_binary(facts, file, makes, loss)
    elif not noticed["logits"] and activation in ("linear", "relu") and (loss == "binary_crossentropy" or units != 1):
        what = "sigmoid" if loss == "binary_crossentropy" else "softmax"
        message = f"{loss} takes what {layer} gives for probabilities, and without {what} these are any numbers"
        own = pastes.source(facts, file)
        plain = len(makes) == 1 and activation == "linear" and not makes[0].args
        fix = (
            pastes.all_replaced(facts, file, {makes[0]: own.with_argument(makes[0], "from_logits=True")})
            if plain
            else ""
        )
        fix = fix or f'activation="{what}" in the last layer, or from_logits=True in the loss'
    else:
        return None
    return Finding(NAMES[0], "warning", None, (), message, fix, file, line)


def _as_binary(facts: Facts, file: str, makes: list[ast.Call], loss: str) -> str:
    """The loss for two classes in its place."""
    texts = [
        one for one in pastes.walk(facts.tree(file), ast.Constant)
        if isinstance(one.value, str) and one.value.lower().replace("_", "") == loss.replace("_", "")
    ]  # fmt: skip
    if len(texts) == 1 and not makes:
        return pastes.all_replaced(facts, file, {texts[0]: '"binary_crossentropy"'})
    if len(makes) == 1 and not texts:
        name = pastes.text_of(facts, file, makes[0].func).rpartition(".")
        return (
            pastes.all_replaced(facts, file, {makes[0].func: f"{name[0]}{name[1]}BinaryCrossentropy"})
            if name[1]
            else ""
        )
    return "binary_crossentropy in the place of the loss"


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
