"""Weights that a model or layer does not take: it has none yet, others, or not as many as it is given."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.uncalled_layers import layer_at
from pyfunc_debug.doctor.failures.paired.layers import is_layer
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    held,
    is_keras_class,
    keras_name,
    lookup,
    method_calls,
    of_keras,
    shape_of_data,
    sizes_of,
)

RULE = "structure"
_COUNTS = re.compile(
    r"You called `set_weights\(weights\)` on layer '\S+' with a weight list of length (\d+), but the layer was "
    r"expecting (\d+) weights"
)
_UNBUILT = re.compile(
    r"You are (?:saving|loading weights into) a model that has not yet been built"
    r"|You must build the layer before accessing `\w+`|You tried to call `count_params` on"
)
_SIZES = re.compile(r"weight shape \(([\d, ]*)\) is not compatible with provided weight shape \(([\d, ]*)\)")
_OF_FILE = re.compile(
    r"objects could not be loaded.*variable\.shape=\(([\d, ]*)\), Received: value\.shape=\(([\d, ]*)\)\. "
    r"Target variable: <Variable path=([\w/]+)",
    re.DOTALL,
)

_NOT_IN_FILE = re.compile(
    r"objects could not be loaded.*Layer '(\w+)' expected \d+ variables, but received 0 variables", re.DOTALL
)
_SKIP = "skip_mismatch=True in load_weights leaves out those that differ: they keep what they begin with."


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if it failed on weights that were given, saved or loaded."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return None
    counts, message = _COUNTS.search(situation.message), situation.message
    if counts is not None and (counts[2] == "0" or not situation.body):
        return _counted(spot, statement, int(counts[1]), int(counts[2]))
    if situation.body:
        return None
    if _UNBUILT.search(message):
        return _unbuilt(spot, statement)
    sizes, of_file = _SIZES.search(message), _OF_FILE.search(message)
    given = method_calls(statement, "set_weights", "load_weights")
    missing = _NOT_IN_FILE.search(message)
    if len(given) != 1 or (sizes is None and of_file is None and missing is None):
        return None
    text = spot.source.text(given[0].func.value)  # type: ignore[attr-defined]
    if of_file is not None:
        path = of_file[3].partition("/")[2] or of_file[3]
        cause = (
            f"The file is of a model with other sizes: there {path} is {_sizes(of_file[2])}, and {text} has "
            f"{_sizes(of_file[1])}. The layers must be as they were when it was saved."
        )
        return Explanation(RULE, spot.file, spot.line, cause, None, _SKIP)
    if missing is not None:
        cause = f"The file has no weights for {missing[1]} of {text}: it is of a model with other layers."
        return Explanation(RULE, spot.file, spot.line, cause, None, _SKIP)
    if sizes is None:
        return None
    cause = (
        f"{text} has a weight of {_sizes(sizes[1])}, and is given {_sizes(sizes[2])} in its place. Weights are taken "
        "in the order of get_weights(), each in its own shape."
    )
    return Explanation(
        RULE, spot.file, spot.line, cause, None, "Make the layers of both with the same sizes, in the same order."
    )


def _sizes(text: str) -> str:
    """`[3, 4]` for the inside of a tuple."""
    return sizes_of(int(one) for one in text.split(",") if one.strip())


def _counted(spot: Spot, statement: ast.stmt, given: int, wanted: int) -> Explanation | None:
    """What is said of `set_weights` with more or fewer arrays than there are weights."""
    called = method_calls(statement, "set_weights")
    call = called[0] if len(called) == 1 and len(called[0].args) == 1 else None
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    owner, argument = call.func.value, call.args[0]
    name = spot.source.text(owner)
    layer = layer_at(owner, spot)
    if not wanted and dotted(owner):
        return _not_built(spot, statement, name, argument, given)
    if not wanted:
        unbuilt = is_layer(layer) and not vars(layer).get("built", True)
        return _without(spot, name, layer) if unbuilt else None
    weights = list(layer.weights) if is_layer(layer) and is_keras_class(type(layer)) else []
    shapes = [tuple(one.shape) for one in weights]
    array = None if isinstance(argument, (ast.List, ast.Tuple)) else _shape(argument, spot)
    if wanted == 1 and shapes and array == shapes[0]:
        cause = f"set_weights takes a list of arrays, and {short(spot.source.text(argument), 30)} is one array."
        edit = edit_of(spot.file, spot.source.replaced({argument: f"[{spot.source.text(argument)}]"}))
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    listed = ", ".join(f"{one.name} {sizes_of(shape)}" for one, shape in zip(weights, shapes)) if weights else ""
    cause = f"{name} has {wanted} weight{'s' * (wanted != 1)}"
    cause += f" ({listed})" if listed and len(listed) < 90 else ""
    cause += f", and set_weights is given {given}. It takes all of them, in this order."
    first = argument.elts[0] if isinstance(argument, (ast.List, ast.Tuple)) and len(argument.elts) == 1 else None
    if first is not None and shapes and _shape(first, spot) == shapes[0] and shapes.count(shapes[0]) == 1:
        edit = edit_of(spot.file, spot.source.replaced({call: f"{name}.weights[0].assign({spot.source.text(first)})"}))
        return Explanation(RULE, spot.file, spot.line, f"{cause} The first alone:", edit)
    advice = "Give one array for each weight; get_weights() of a model of the same layers has them."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _not_built(spot: Spot, statement: ast.stmt, name: str, argument: ast.expr, count: int) -> Explanation:
    """What is said where there are none, with the call that makes them if another model's are given."""
    cause = (
        f"{name} has no weights yet, and is given {count} arrays: Keras makes the weights of a layer when it is "
        "first called, as their sizes are those of the input."
    )
    shape = _input_shape(spot, argument)
    if shape is None:
        advice = f"Call {name} once, with an input of the right shape, above that line."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    text = f"{indent_of(spot.source.lines[statement.lineno - 1])}{name}({alias(spot, 'tensorflow')}.zeros({shape}))"
    return Explanation(
        RULE, spot.file, spot.line, cause, Edit(spot.file, statement.lineno, statement.lineno - 1, (text,))
    )


def _input_shape(spot: Spot, given: ast.expr) -> tuple[int, ...] | None:
    """The shape of an input: that with which the model was called that the weights are of."""
    if not isinstance(given, ast.Call) or dotted(given.func).rpartition(".")[2] != "get_weights":
        return None
    holder = dotted(given.func).rpartition(".")[0]
    source: Any = lookup(given.func.value, spot) if isinstance(given.func, ast.Attribute) and holder else None
    try:
        known = vars(source).get("_build_shapes_dict")
    except TypeError:
        return None
    shape = next(iter(known.values())) if isinstance(known, dict) and len(known) == 1 else None
    if not isinstance(shape, (tuple, list)) or len(shape) < 2 or any(type(one) is not int for one in shape[1:]):
        return None
    return (1, *(int(one) for one in shape[1:]))


def _shape(node: ast.expr, spot: Spot) -> tuple[int | None, ...] | None:
    """The shape of an array: by its name, or as `np.ones((3, 4))` is written."""
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("ones", "zeros") and node.args:
        try:
            size = ast.literal_eval(node.args[0])
        except ValueError:
            return None
        return tuple(size) if isinstance(size, (list, tuple)) else (size,)
    return shape_of_data(held(node, spot)) if isinstance(node, (ast.Name, ast.Attribute)) else None


def _unbuilt(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """What is said where weights were asked of what has none yet."""
    for call in calls(statement):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("save_weights", "load_weights"):
            return _without(spot, spot.source.text(call.func.value), layer_at(call.func.value, spot))
    for one in ast.walk(statement):
        layer = layer_at(one.value, spot) if isinstance(one, ast.Attribute) else None
        if isinstance(one, ast.Attribute) and is_layer(layer) and not vars(layer).get("built", True):
            return _without(spot, spot.source.text(one.value), layer)
    return None


def _without(spot: Spot, name: str, layer: Any) -> Explanation:
    cause = (
        f"{name} has no weights yet: Keras makes them when it knows the shape of the input, at the first call if not "
        "before."
    )
    keras = keras_name(spot)
    advice = f"Call it before this line, once, on data or on {keras}.Input(shape), without the batch."
    if of_keras(type(layer), "Sequential") and is_keras_class(type(layer)):
        advice = f"Make {keras}.Input(shape), without the batch, the first layer of {name}."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
