"""Layers and models that no tensor went through: they have no `input` and `output`, and stand where a tensor should."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.paired.layers import is_layer
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, held, is_keras, is_keras_class, keras_name, of_keras
from pyfunc_debug.interception.names.private import keras_outputs

RULE = "missing-attribute"
_NEVER = re.compile(r"The layer (\w+) has never been called and thus has no defined (input|output)")
_ENDS = {"input": "inputs[0]", "output": "outputs[0]"}
_GIVEN = re.compile(
    r"Only input tensors may be passed as positional arguments"
    r"|All `(?:inputs|outputs)` values must be KerasTensors"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the input or output was asked of a model or layer that was never called."""
    spot, statement = situation.last, situation.statement
    found = _NEVER.search(situation.message)
    if spot is None or statement is None or situation.body or found is None:
        return None
    asked = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr in _ENDS]
    for one in asked:
        owner = held(one.value, spot)
        model = owner if owner is not None else _model_of(one.value, spot)
        if one.attr != found[2] or not is_layer(model) or (owner is not None and vars(owner).get("name") != found[1]):
            continue
        whole = owner is not None
        name = dotted(one.value) if whole else dotted(_holder(one.value))
        return _explanation(spot, statement, one, name, model, whole)
    return None


def _explanation(
    spot: Spot, statement: ast.stmt, asked: ast.Attribute, name: str, model: Any, whole: bool
) -> Explanation | None:
    """What is said of a model or layer, by its kind.

    Args:
      spot: The frame.
      statement: Its statement.
      asked: The attribute that it has not.
      name: How the model or layer is written.
      model: The model or layer itself.
      whole: Whether the attribute is its own, and not that of a layer in it.
    """
    text, keras = spot.source.text(asked), keras_name(spot)
    sequential, own = of_keras(type(model), "Sequential"), not is_keras_class(type(model))
    if sequential and not own and whole and keras_outputs(model):
        same = [
            one for one in ast.walk(statement)
            if isinstance(one, ast.Attribute) and one.attr in _ENDS and held(one.value, spot) is model
        ]  # fmt: skip
        pieces: dict[ast.expr, str] = {one: f"{spot.source.text(one.value)}.{_ENDS[one.attr]}" for one in same}
        cause = (
            f"{name} is a Sequential. In Keras 3 it has `{asked.attr}` only when it was called with a Keras tensor: "
            f"{name}.{_ENDS[asked.attr]} is its own."
        )
        return Explanation(RULE, spot.file, spot.line, cause, edit_of(spot.file, spot.source.replaced(pieces)))
    if sequential and not own:
        cause = (
            f"{text} is not there: {name} does not know the shape of its input before it is called, and has no graph "
            "of layers until then."
        )
        then = f", and read {name}.{_ENDS[asked.attr]}" if whole else ""
        advice = f"Make {keras}.Input(shape), without the batch, its first layer{then}."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    if own and of_keras(type(model), "Model"):
        cause = (
            f"{name} is a model of a class, {type(model).__name__}: its call is Python, and Keras keeps no graph of "
            f"what goes through its layers. So there is no {text}."
        )
        part = f"{name}({{}})" if whole else f"{spot.source.text(asked.value)}({{}})"
        advice = f"Call it on an input: x = {keras}.Input(shape), and {keras}.Model(x, {part.format('x')})."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    if whole and is_keras_class(type(model)) and not of_keras(type(model), "Model"):
        cause = (
            f"{name} is a {type(model).__name__} layer that was made and not called with a Keras tensor: "
            f"only a call, {name}(x), gives it an {asked.attr}."
        )
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Use what {name}(x) gives, in its place.")
    return None


def _holder(node: ast.expr) -> ast.expr | None:
    """The model of `model.layers[0]` and `model.get_layer("a")`, and of a layer that is its attribute."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "layers":
        return node.value.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_layer":
        return node.func.value
    return None


def _model_of(node: ast.expr, spot: Spot) -> Any:
    holder = _holder(node)
    return held(holder, spot) if holder is not None else None


def layer_at(node: ast.expr, spot: Spot) -> Any:
    """The layer or model that an expression stands for; of Keras' own models also `model.layers[0]` and `get_layer`."""
    model = _model_of(node, spot)
    if not is_layer(model) or not is_keras_class(type(model)):
        return held(node, spot)
    key = (
        node.slice
        if isinstance(node, ast.Subscript)
        else node.args[0]
        if isinstance(node, ast.Call) and node.args
        else None
    )
    if not isinstance(key, ast.Constant):
        return None
    named = [one for one in model.layers if one.name == key.value]
    if type(key.value) is int and 0 <= key.value < len(model.layers):
        named = [model.layers[key.value]]
    return named[0] if len(named) == 1 else None


def given(situation: Situation) -> Explanation | None:
    """The explanation, if a layer stands where a tensor should: `x = Dense(4)`, `Dense(2)(x)`."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _GIVEN.search(situation.message):
        return None
    layers = {
        one.id: value for call in calls(statement) for arg in (*call.args, *(word.value for word in call.keywords))
        for one in (arg.elts if isinstance(arg, (ast.List, ast.Tuple)) else [arg])
        if isinstance(one, ast.Name) and is_layer(value := spot.value(one.id)) and not of_keras(type(value), "Model")
    }  # fmt: skip
    if len(layers) != 1:
        return None
    ((name, layer),) = layers.items()
    kind = type(layer).__name__
    made = _made(spot, statement, name)
    edit, line = None, spot.line
    if made is not None:
        edit, line = _called(spot, made, statement), made.lineno
    cause = (
        f"{name} is a {kind} layer, and `{short(spot.source.text(statement).split(chr(10))[0], 40)}` takes the tensor "
        f"that it gives: {name} was made and not called."
    )
    if edit is not None:
        return Explanation(RULE, spot.file, line, cause, edit, "", "likely")
    return Explanation(RULE, spot.file, spot.line, cause, None, f"Call it with the tensor before it: {name}(...).")


def _made(spot: Spot, statement: ast.stmt, name: str) -> ast.Assign | None:
    """The one statement that makes the layer, in the block of the one that uses it."""
    block = spot.source.block(statement) or []
    found = [
        one for one in block
        if isinstance(one, ast.Assign) and [dotted(part) for part in one.targets] == [name]
        and one.lineno < statement.lineno
    ]  # fmt: skip
    return found[-1] if found and isinstance(found[-1].value, ast.Call) else None


def _called(spot: Spot, made: ast.Assign, statement: ast.stmt) -> Edit | None:
    """The line that makes the layer, with a call of the tensor that the statement above it made.

    A layer may have taken the name of the tensor that it should be called with. None where it is not sure which is
    meant: where the statement that failed takes that tensor, too.
    """
    block = spot.source.block(made) or []
    above = [one for one in block[: block.index(made)] if isinstance(one, ast.Assign)]
    own = dotted(made.targets[0])
    tensor = dotted(above[-1].targets[0]) if above else ""
    value = above[-1].value if above else None
    through = isinstance(value, ast.Call) and isinstance(value.func, ast.Call)
    if not (is_keras(spot.value(tensor)) or (tensor == own and through)):
        return None
    if tensor != own and tensor in names(statement):
        return None
    text = f"{spot.source.text(made.value)}({tensor})"
    return edit_of(spot.file, spot.source.replaced({made.value: text}))
