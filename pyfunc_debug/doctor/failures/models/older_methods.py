"""Methods and attributes that models, layers and optimizers of Keras 2 had, and what does the same in Keras 3."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import of_keras
from pyfunc_debug.interception.names.private import keras_layers, keras_nodes

RULE = "older-api"
_SHAPES = {"output_shape": "output.shape", "input_shape": "input.shape"}
_AT = {
    "get_input_at": "input", "get_output_at": "output", "get_input_shape_at": "input.shape",
    "get_output_shape_at": "output.shape",
}  # fmt: skip
_MAKERS = ("_make_train_function", "_make_test_function", "_make_predict_function")
_OF_GRAPHS = ("total_loss", "state_updates", "updates", "targets", "sample_weights", "metrics_tensors")
_OF_VARIABLE = re.compile(r"'Variable' object has no attribute '(\w+)'")
_VALUES = {"read_value": "value", "initialized_value": "value", "get_shape": "shape"}
_TAPE = "Compute the loss of a batch under a tf.GradientTape, and ask tape.gradient(loss, model.trainable_variables)."


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line asks Keras' own object for what Keras 3 does not have any more."""
    error, spot = situation.inner, situation.last
    asked, name = getattr(error, "obj", None), str(getattr(error, "name", None) or "")
    statement = situation.statement
    of_variable = _OF_VARIABLE.search(situation.message)
    if of_variable is not None and spot is not None and statement is not None:  # Keras may have raised it again
        return _of_variable(spot, statement, of_variable[1])
    if not isinstance(error, AttributeError) or spot is None or statement is None or asked is None or situation.body:
        return None
    found = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == name]
    if len(found) != 1:
        return None
    if of_keras(type(asked), "Optimizer") or of_keras(type(asked), "BaseOptimizer"):
        return _of_optimizer(spot, found[0])
    if of_keras(type(asked), "Trainer"):
        told = _of_model(spot, statement, found[0], asked)
        if told is not None:
            return told
    return _of_layer(spot, found[0], asked) if of_keras(type(asked), "Layer") else None


def _told(spot: Spot, node: ast.expr, cause: str, new: str) -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "" if edit else f"Write {new}.")


def _call(source: Source, of: ast.Attribute) -> ast.Call | None:
    """The call of a method."""
    parent = source.parent(of)
    return parent if isinstance(parent, ast.Call) and parent.func is of else None


def _of_variable(spot: Spot, statement: ast.stmt, name: str) -> Explanation | None:
    """`self.state.read_value()` of a weight."""
    found = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == name]
    call = _call(spot.source, found[0]) if len(found) == 1 and name in _VALUES else None
    if call is None or call.args or call.keywords:
        return None
    new = f"{spot.source.text(found[0].value)}.{_VALUES[name]}"
    cause = f"A variable of Keras 3 has no {name}(), as a tf.Variable has: it has .{_VALUES[name]}."
    return _told(spot, call, cause, new)


def _of_layer(spot: Spot, of: ast.Attribute, layer: Any) -> Explanation | None:
    owner, call = spot.source.text(of.value), _call(spot.source, of)
    nodes = len(keras_nodes(layer))
    if of.attr in _SHAPES:
        cause = f"A layer of Keras 3 has no {of.attr}: its output and its input know their shapes."
        if nodes == 1:
            return _told(spot, of, cause, f"{owner}.{_SHAPES[of.attr]}")
        advice = "A layer that was never called has none yet." if not nodes else (
            "It was called several times: what it gave each time has its own shape."
        )  # fmt: skip
        return Explanation(RULE, spot.file, of.lineno, f"A layer of Keras 3 has no {of.attr}.", None, advice)
    if of.attr in _AT and call is not None and len(call.args) == 1 and nodes:
        cause = f"A layer of Keras 3 has no {of.attr}."
        first = isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
        if nodes == 1 and first:
            return _told(spot, call, f"{cause} It was called once: {_AT[of.attr]} is of that call.", _at(owner, of))
        return Explanation(
            RULE, spot.file, of.lineno, cause, None, "Keep what each call of the layer was given and gave, by a name."
        )
    return None


def _at(owner: str, of: ast.Attribute) -> str:
    return f"{owner}.{_AT[of.attr]}"


def _of_model(spot: Spot, statement: ast.stmt, of: ast.Attribute, model: Any) -> Explanation | None:
    source, name = spot.source, of.attr
    owner, call = source.text(of.value), _call(source, of)
    if name in ("predict_classes", "predict_proba") and call is not None:
        asked = f"{owner}.predict({source.arguments(call)})"
        if name == "predict_proba":
            return _told(spot, call, "Keras 3 has no predict_proba: predict gives the same.", asked)
        cause = "Keras 3 has no predict_classes: predict gives what the last layer does, of which a class is chosen."
        units = _units(model)
        if units is None:
            return Explanation(
                RULE, spot.file, of.lineno, cause, None,
                f"{asked}.argmax(axis=-1) of several units, ({asked} > 0.5).astype(int) of one.",
            )  # fmt: skip
        return _told(
            spot, call, cause,
            f'({asked} > 0.5).astype("int32")' if units == 1 else f"{asked}.argmax(axis=-1)",
        )  # fmt: skip
    if name in _MAKERS:
        return _told(spot, of, f"Keras 3 calls it {name[1:]}.", f"{owner}.{name[1:]}")
    if name == "reset_states" and call is not None and isinstance(statement, ast.Expr) and statement.value is call:
        blanks = indent_of(source.lines[statement.lineno - 1])
        lines = (
            f"{blanks}for layer in {owner}.layers:",
            f'{blanks}    if hasattr(layer, "reset_state"):',
            f"{blanks}        layer.reset_state()",
        )
        cause = "A model of Keras 3 has no reset_states: its stateful layers have reset_state."
        return Explanation(
            RULE, spot.file, of.lineno, cause, Edit(spot.file, statement.lineno, statement.end_lineno or 0, lines)
        )
    if name in _OF_GRAPHS:
        cause = f"A model of Keras 3 has no {name}: its loss is computed for each batch, and no graph of it is kept."
        return Explanation(RULE, spot.file, of.lineno, cause, None, _TAPE)
    return None


def _units(model: Any) -> int | None:
    """How many numbers the last layer of a Sequential model gives; None where that is not known."""
    layers = keras_layers(model)
    units = vars(layers[-1]).get("units") if isinstance(layers, list) and layers else None
    return units if type(units) is int and of_keras(type(model), "Sequential") else None


def _of_optimizer(spot: Spot, of: ast.Attribute) -> Explanation | None:
    owner, call = spot.source.text(of.value), _call(spot.source, of)
    if of.attr == "get_weights" and call is not None and not call.args:
        cause = "An optimizer of Keras 3 has no get_weights: its variables are in `variables`."
        return _told(spot, call, cause, f"[one.numpy() for one in {owner}.variables]")
    if of.attr == "weights":
        return _told(spot, of, "Keras 3 calls it variables.", f"{owner}.variables")
    if of.attr == "_decayed_lr" and call is not None:
        cause = "Keras 3 has no _decayed_lr: learning_rate is that of the next step, also of a schedule."
        return _told(spot, call, cause, f"{owner}.learning_rate")
    if of.attr in ("get_gradients", "get_updates", "compute_gradients"):
        cause = f"An optimizer of Keras 3 has no {of.attr}: a GradientTape asks for the gradients."
        return Explanation(RULE, spot.file, of.lineno, cause, None, _TAPE)
    return None
