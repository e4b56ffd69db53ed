"""Functions that Keras traces: a loss given to `compile` as a py_function, a function on Keras inputs as a layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor.failures.gradients.left_behind import is_outside
from pyfunc_debug.doctor.failures.models.keras_chains import in_dtype, makes_layers
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument, py_call
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, lines_of
from pyfunc_debug.doctor.failures.reading.source import dotted, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    is_keras,
    is_keras_class,
    is_symbolic,
    keras_name,
    lookup,
    of_weights,
    root_is,
)

_FUNCTIONS = ("loss", "metrics", "weighted_metrics")
"""Arguments of `compile` that are functions."""


def compiled_function(situation: Situation) -> Edit | None:
    """`compile(loss=f)` as `compile(loss=lambda ...: tf.reshape(tf.py_function(f, ...), [-1]))`.

    The body then has values; what it computes with TensorFlow's ops keeps its gradient. Its result is one number a
    sample or one in all: as a vector Keras takes either.
    """
    index, by = wrapping.entry(situation)
    if by != "Keras":
        return None
    spot = situation.spots[index]
    function = spot.function
    if not isinstance(function, ast.FunctionDef):
        return None
    inputs = parameters(function)
    if len(inputs) != 2 or not all(is_symbolic(spot.value(name)) for name in inputs):
        return None
    found = [one for one in given(spot) if dotted(one).rpartition(".")[2] == function.name]
    if len(found) != 1 or (is_loss(situation) and _in_python(function, spot)):
        return None
    tf, listed, text = alias(spot, "tensorflow"), ", ".join(inputs), spot.source.text(found[0])
    whole = f"{tf}.reshape({tf}.py_function({text}, [{listed}], {tf}.float32), [-1])"
    new = f"lambda {listed}: {whole}"
    if not is_loss(situation):  # Keras wraps a metric so, with the name of its function
        new = f'{keras_name(spot)}.metrics.MeanMetricWrapper({new}, "{function.name}")'
    return wrapping.replace_expression(spot, found[0], new)


def loses_gradient(situation: Situation) -> bool:
    """Whether the function that Keras traced computes with NumPy or values only."""
    spot = situation.spots[wrapping.entry(situation)[0]]
    return isinstance(spot.function, ast.FunctionDef) and _in_python(spot.function, spot)


def _in_python(function: ast.FunctionDef, spot: Spot) -> bool:
    """Whether a loss computes with NumPy or values only: then nothing of it has a gradient."""
    predicted = parameters(function)[-1:]
    for call in calls(function):
        inside = [one for one in calls(call) if not _has_gradient(one, spot)]
        if _has_gradient(call, spot) and not inside and set(predicted) & set(names(call)):
            return not _reaches_the_result(function, spot)
    own = {one.name: one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)}
    called = [own[name] for name in {dotted(one.func) for one in calls(function)} if name in own]
    return any(_gives_values(one, spot) for one in (part for each in (function, *called) for part in calls(each)))


def _has_gradient(call: ast.Call, spot: Spot) -> bool:
    return any(root_is(call.func, spot, name) for name in ("tensorflow", "keras"))


def _gives_values(call: ast.Call, spot: Spot) -> bool:
    """Whether a call makes a Python or NumPy value, which ends the gradient's way."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    return name in ("numpy", "float", "int") or is_outside(call.func, spot)


def _reaches_the_result(function: ast.FunctionDef, spot: Spot) -> bool:
    """Whether what a loss returns is made of the prediction by a way on which nothing becomes a value."""
    carrying = set(parameters(function)[-1:])

    def carries(node: ast.AST) -> bool:
        if isinstance(node, ast.Call) and _gives_values(node, spot):
            return False
        if isinstance(node, ast.Name):
            return node.id in carrying
        return any(carries(one) for one in ast.iter_child_nodes(node))

    for one in own_nodes(function):
        if isinstance(one, (ast.Assign, ast.AugAssign)) and one.value is not None:
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            written = {name for target in targets for name in names(target)}
            if carries(one.value):
                carrying |= written
            elif isinstance(one, ast.Assign):
                carrying -= written
    returned = [one.value for one in own_nodes(function) if isinstance(one, ast.Return) and one.value is not None]
    return any(carries(one) for one in returned)


def is_loss(situation: Situation) -> bool:
    """Whether the function that Keras traced was given to `compile` as a loss: then it needs a gradient."""
    index, by = wrapping.entry(situation)
    function = situation.spots[index].function if by == "Keras" else None
    name = getattr(function, "name", "")
    for call in calls(situation.spots[index].source.tree):
        if name and dotted(call.func).endswith("compile"):
            given = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "loss")]
            if any(dotted(part) == name for one in given for part in ast.walk(one) if isinstance(part, ast.Name)):
                return True
    return False


def cuts_a_loss(situation: Situation, statement: ast.stmt, edit: Edit | None, parts: Mapping[str, object]) -> bool:
    """Whether a paste gives a loss Python's numbers of what the model computes, where no slopes are measured.

    That is done for one result of a call that takes the values of a batch: OpenCV takes one image, and `r, p = f(x)`
    are two results. What a loss returns of a body has no shape, which Keras asks for.
    """
    text = "\n".join(edit.lines) if edit is not None else ""
    if ("py_function(" not in text and "numpy_function(" not in text) or not is_loss(situation):
        return False
    shaped = "ensure_shape(" in text or "reshape(" in text
    if ("cv2." in text or (isinstance(statement, ast.Return) and not shaped)) and loses_gradient(situation):
        return True
    several = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Tuple, ast.List))
    return several and any(of_weights(one) for one in parts.values())


def whole_call(situation: Situation, keras: str) -> Edit | None:
    """`f(x)`, of a function of the user's that failed inside, as `Lambda(f)(x)`: Keras then traces all of it."""
    for outer, inner in zip(situation.spots, situation.spots[1:]):
        statement = outer.statement
        if statement is None or inner.by == "Keras":
            continue
        functions = {
            one.name: one for one in ast.walk(inner.source.tree)
            if isinstance(one, ast.FunctionDef) and one.lineno <= inner.line <= (one.end_lineno or 0)
        }  # fmt: skip
        for one in calls(statement):
            inputs = [arg.id for arg in one.args if isinstance(arg, ast.Name) and is_keras(outer.value(arg.id))]
            function = functions.get(dotted(one.func))
            if function is None or one.keywords or len(one.args) != 1 or len(inputs) != 1:
                continue
            if makes_layers(function, inner) or _called_often(function.name, outer):
                return None
            name, text = inputs[0], function.name
            python = any(py_call(inner.source, line) for line in range(function.lineno, (function.end_lineno or 0) + 1))
            if python:
                text = f"lambda {name}: {alias(outer, 'tensorflow')}.ensure_shape({text}({name}), {name}.shape)"
            dtype = in_dtype([dtype_of(outer.value(name))])
            return wrapping.replace_expression(outer, one, f"{keras}.layers.Lambda({text}{dtype})({name})")
    return None


def _called_often(name: str, spot: Spot) -> bool:
    """Whether other calls of it get such tensors, too, as far as is known."""
    return sum(dotted(one.func) == name and not _of_values(one, spot) for one in calls(spot.source.tree)) > 1


def _of_values(call: ast.Call, spot: Spot) -> bool:
    """Whether a call, beside the failing line or in no function, gets what has values: `f(tf.constant([1.0]))`."""
    where = spot.source.function(call.lineno)
    if where is not None and where is not spot.source.function(spot.line):
        return False
    known = spot.module.get if where is None else spot.value
    values = [known(name) for part in [*call.args, *call.keywords] for name in names(part)]
    return not any(value is None or is_keras(value) for value in values)


def given(spot: Spot) -> list[ast.expr]:
    """What `compile` is given as losses and metrics, in the file of the failing function."""
    found: list[ast.expr] = []
    for call in ast.walk(spot.source.tree):
        if not isinstance(call, ast.Call) or not dotted(call.func).endswith("compile"):
            continue
        listed = [*call.args[1:3], *(one.value for one in call.keywords if one.arg in _FUNCTIONS)]
        for one in listed:
            found += _each(one)
    return found


def is_metric(node: ast.expr, spot: Spot) -> bool:
    """Whether `compile` was given it among the metrics."""
    for call in calls(spot.source.tree):
        if dotted(call.func).endswith("compile"):
            named = [
                *call.args[2:3],
                *(one.value for one in call.keywords if one.arg in ("metrics", "weighted_metrics")),
            ]
            if any(part is node for one in named for part in ast.walk(one)):
                return True
    return False


def _each(node: ast.expr) -> list[ast.expr]:
    """What lists and dicts of an argument hold, and in those the same."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
        return [part for one in (node.values if isinstance(node, ast.Dict) else node.elts) for part in _each(one)]
    return [node]


def fits(statement: ast.stmt) -> list[ast.Call]:
    """The calls of `fit`, `evaluate` and `predict` in a statement."""
    wanted = ("fit", "evaluate", "predict")
    return [one for one in calls(statement) if isinstance(one.func, ast.Attribute) and one.func.attr in wanted]


def failed_fits(situation: Situation) -> Iterator[tuple[Spot, ast.Call]]:
    """The user's failing frame with each call of `fits` in its statement."""
    spot, statement = situation.last, situation.statement
    if spot is not None and statement is not None:
        yield from ((spot, one) for one in fits(statement))


def keras_given(situation: Situation) -> dict[str, Any]:
    """What Keras' method was given that failed: the model by "self", the first argument by "x", others by name."""
    for frame, _ in lines_of((situation.error, situation.inner)):
        given, words = frame.f_locals.get("args"), frame.f_locals.get("kwargs")
        if frame.f_code.co_name == "error_handler" and isinstance(given, tuple) and given and isinstance(words, dict):
            return {**dict(zip(("self", "x"), given)), **words}
    return {}


def failed_single_inputs(situation: Situation) -> Iterator[tuple[Spot, ast.Call, Any, ast.expr]]:
    """Those calls of `failed_fits` that give a model of one input its data: with the model and the data."""
    for spot, call in failed_fits(situation):
        model: Any = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        node = argument(call, 0, "x")
        if node is not None and is_keras_class(type(model)) and len(getattr(model, "inputs", None) or ()) == 1:
            yield spot, call, model, node


def compiled(spot: Spot, fit: ast.Call, name: str) -> ast.expr | None:
    """What the one `compile` of the model that is fitted was given for an argument: "loss", "metrics"."""
    owner = dotted(fit.func).rpartition(".")[0]
    every = spot.source.calls_of(frozenset({"compile"}))
    own = [one for one in every if dotted(one.func).rpartition(".")[0] == owner] or every
    place = {"optimizer": 0, "loss": 1}.get(name, len(own[-1].args) if own else 0)
    return argument(own[0], place, name) if len(own) == 1 else None
