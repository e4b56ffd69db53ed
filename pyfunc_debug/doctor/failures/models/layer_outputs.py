"""A Keras tensor asked for its value, `layer.output.numpy()`: only a model that is given data has values."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.pastes.traced_text import RULE
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, held, is_keras, keras_name, lookup, of_keras, root_is
from pyfunc_debug.interception.names.private import keras_layers, keras_outputs

_ASKS = ("array", "asarray", "eval", "get_value", "convert_to_numpy", "float", "int")
_METHODS = ("numpy", "eval")
_OUTPUTS = ("output", "outputs")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the line asks a Keras tensor for a value, with the model that has it where that is known."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or "KerasTensor" not in situation.message:
        return None
    value = wrapping.value_here(spot, statement)
    asked = [one for one in calls(value) if _of(one, spot) is not None] if value is not None else []
    if not asked and value is not None:
        asked = [one for one in calls(value) if _computed(one, spot)]
    if not asked:
        return None
    whole = _of(asked[0], spot)
    tensor, keras = whole or asked[0].args[0], keras_name(spot)
    code = short(spot.source.text(statement).split("\n")[0], 44)
    what = short(spot.source.text(tensor), 36)
    cause = (
        f"`{code}` asks {what} for its value. It is a Keras tensor: it describes what the model will compute, and has "
        "no value before a model is given data."
    )
    model, made = _model(tensor, spot)
    if not model:
        first = "inputs" if "inputs" not in spot.variables else dotted(tensor) or "x"
        advice = f"keras.Model({first}, {what}).predict(data) has it, once the model is built."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    inner = model if _is_whole(model, made, spot) else f"{keras}.Model({model}.inputs, {made})"
    data = _data(spot)
    if not data:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"{inner}.predict(data) has it.")
    new = f"{inner}.predict({data}, verbose=0)"
    piece = asked[0] if whole is not None else tensor
    return Explanation(RULE, spot.file, spot.line, cause, wrapping.replace_expression(spot, piece, new))


def _is_whole(model: str, tensor: str, spot: Spot) -> bool:
    """Whether a tensor is the one output of a model: the model itself predicts it."""
    value = held(ast.parse(model, mode="eval").body, spot)
    outputs = keras_outputs(value) if value is not None and of_keras(type(value), "Model") else None
    own = tensor in (f"{model}.output", f"{model}.outputs[0]", f"{model}.outputs[-1]")
    return own and isinstance(outputs, list) and len(outputs) == 1


def _computed(call: ast.Call, spot: Spot) -> bool:
    """Whether NumPy computes with a layer's output, `np.mean(layer.output)`."""
    given = call.args[0] if call.args and root_is(call.func, spot, "numpy") else None
    return given is not None and _is_tensor(given, spot) and bool(_model(given, spot)[0])


def _of(call: ast.Call, spot: Spot) -> ast.expr | None:
    """The Keras tensor that a call asks for its value."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
        return call.func.value if _is_tensor(call.func.value, spot) else None
    name = dotted(call.func).rpartition(".")[2]
    own = not isinstance(call.func, ast.Attribute) or any(
        root_is(call.func, spot, one) for one in ("numpy", "keras", "tensorflow")
    )
    given = call.args[0] if name in _ASKS and own and len(call.args) == 1 else None
    return given if given is not None and _is_tensor(given, spot) else None


def _is_tensor(node: ast.expr, spot: Spot) -> bool:
    if isinstance(node, ast.Subscript):
        node = node.value
    return is_keras(held(node, spot)) or (isinstance(node, ast.Attribute) and node.attr in _OUTPUTS)


def _model(tensor: ast.expr, spot: Spot) -> tuple[str, str]:
    """The text of the model whose output, or whose layer's output, it is, and of the output."""
    if isinstance(tensor, ast.Name):
        own = assignments(spot.function) if spot.function is not None else {}
        made = own.get(tensor.id) or assignments(spot.source.tree).get(tensor.id)
        if not isinstance(made, (ast.Attribute, ast.Subscript)):
            return "", ""
        model, written = _model(made, spot)
        return model, written if model and _is_whole(model, written, spot) else tensor.id
    node = tensor.value if isinstance(tensor, ast.Subscript) else tensor
    if not isinstance(node, ast.Attribute) or node.attr not in _OUTPUTS:
        return "", ""
    node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_layer":
        return dotted(node.func.value), spot.source.text(tensor)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "layers":
        return dotted(node.value.value), spot.source.text(tensor)
    value = held(node, spot)
    if value is None or of_keras(type(value), "Model"):
        return dotted(node), spot.source.text(tensor)
    models = [
        name for name, one in {**spot.module, **spot.variables}.items()
        if of_keras(type(one), "Model") and any(value is layer for layer in keras_layers(one) or ())
    ]  # fmt: skip
    return (models[0], spot.source.text(tensor)) if len(models) == 1 else ("", "")


def _data(spot: Spot) -> str:
    """What the program fits or asks a model with, by a name that the line knows."""
    for method in ("predict", "fit", "evaluate"):
        for one in calls(spot.source.tree):
            if isinstance(one.func, ast.Attribute) and one.func.attr == method and one.args:
                name = dotted(one.args[0])
                if name and lookup(one.args[0], spot) is not None:
                    return name
    return ""
