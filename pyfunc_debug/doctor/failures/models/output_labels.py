"""Labels that are not as many as a model's outputs, and losses named for layers where outputs have names of their own.

Keras compares them in its loss only: "y_true and y_pred have different structures", or a path that it cannot find.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.batch_makers import Maker, batch_maker, is_array
from pyfunc_debug.doctor.failures.models.keras_calls import compiled, failed_fits
from pyfunc_debug.doctor.failures.models.keras_structures import Given, given_to, outputs_of, through_keras, validation
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import begins, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup, of_keras, shape_of

RULE = "structure"
_STRUCTURES = "y_true and y_pred have different structures"
_WEIGHTS = "`loss_weights` must match the number of losses, got 1 losses"
_PATH = re.compile(r"The path: \((?:(?P<place>\d+)|'(?P<name>[^']+)'),\) in the `loss` argument, can't be found")
_MOST = 6
"""For more outputs than these nothing is pasted."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras found no labels, or no loss, for an output."""
    path = _PATH.search(situation.message)
    if path is None and _STRUCTURES not in situation.message and _WEIGHTS not in situation.message:
        return None
    for spot, call in failed_fits(situation) if through_keras(situation.inner) else ():
        given = given_to(spot, call)
        if given is None:
            found = _of_call(spot, call) if path is not None and path["place"] else None
        elif _WEIGHTS in situation.message:
            found = _weighed(given)
        elif path is not None and path["name"]:
            found = _other_names(given, path["name"])
        else:
            found = _as_many(given)
        if found is not None:
            return found
    return None


def _as_many(given: Given) -> Explanation | None:
    """One array of labels for several outputs, or a list with another number of them."""
    data = lookup(given.x, given.spot)
    if not is_dataset(data) and given.y is None and (maker := batch_maker(given.x, given.spot)) is not None:
        return _in_batches(given, maker)
    if is_dataset(data):
        spec = data.element_spec
        labels = spec[1] if isinstance(spec, tuple) and len(spec) in (2, 3) else None
        where = f"each element of {given.text(given.x)} has"
    else:
        labels = lookup(given.y, given.spot) if given.y is not None else None
        if isinstance(given.y, (ast.List, ast.Tuple)):
            labels = given.y.elts
        where = f"{given.method} got"
    if given.outputs > 1 and shape_of(labels):
        pieces = _for_each(given, data, labels)
        cause = f"{outputs_of(given)}, and {where} one array of labels: Keras wants one for each output."
        if pieces is not None:
            cause += f" If {'both' if given.outputs == 2 else 'all'} learn the same:"
        return given.told(cause, pieces, f"Give a list with {given.outputs} arrays, in the order of the outputs.")
    if isinstance(labels, (list, tuple)) and len(labels) != given.outputs:
        cause = f"{outputs_of(given)}, and {where} {len(labels)} arrays of labels."
        return given.told(cause, None, "Keras wants one for each output, in their order.")
    return None


def _in_batches(given: Given, maker: Maker) -> Explanation | None:
    """A generator or PyDataset of the user's whose batches have one array of labels for several outputs."""
    pairs = [one for one in maker.values if isinstance(one, (ast.Tuple, ast.List)) and len(one.elts) in (2, 3)]
    labels = [one.elts[1] for one in pairs]
    plain = all(
        isinstance(maker.made(one), (ast.Subscript, ast.Attribute)) or is_array(maker.made(one)) for one in labels
    )
    if given.outputs < 2 or not pairs or len(pairs) != len(maker.values) or not plain:
        return None
    cause = (
        f"{outputs_of(given)}, and each batch that {maker.name} {maker.verb} has one array of labels, "
        f"{short(maker.source.text(labels[0]), 40)}: Keras wants one for each output."
    )
    count, texts = given.outputs, {maker.source.text(one) for one in labels}
    advice = f"Let it {maker.verb[:-1]} a tuple of {count} arrays for the labels, in the order of the outputs."
    shapes = {shape[1:] for one in given.model.outputs if (shape := shape_of(one)) is not None}
    edit = None
    if len(shapes) == len(texts) == 1 and count <= _MOST and len({one.lineno for one in labels}) == 1:
        text = texts.pop()
        edit = edit_of(
            maker.spot.file, maker.source.replaced({one: f"({', '.join([text] * count)})" for one in labels})
        )
    if edit is not None:
        cause += f" If {'both' if count == 2 else 'all'} learn the same:"
    return Explanation(RULE, maker.spot.file, labels[0].lineno, cause, edit, "" if edit else advice)


def _weighed(given: Given) -> Explanation | None:
    """`compile(loss="mse", loss_weights=[1.0, 0.3])`."""
    loss, weights = (compiled(given.spot, given.call, name) for name in ("loss", "loss_weights"))
    numbers = lookup(weights, given.spot) if weights is not None else None
    if isinstance(weights, (ast.List, ast.Tuple)):
        numbers = weights.elts
    if loss is None or isinstance(loss, (ast.List, ast.Tuple, ast.Dict)) or not isinstance(numbers, (list, tuple)):
        return None
    text, count = given.text(loss), len(numbers)
    cause = f"loss_weights has {count} numbers, and loss is one: Keras takes weights for a list of losses."
    if count != given.outputs:
        return given.told(
            cause, None, f"{outputs_of(given)}: give a list of {given.outputs} losses and of their weights."
        )
    return given.told(cause, {loss: f"[{', '.join([text] * count)}]"} if count <= _MOST else None)


def _for_each(given: Given, data: Any, labels: Any) -> dict[ast.expr, str] | None:
    """The same labels once more for each output, where all of them can be compared with these."""
    shape = shape_of(labels) or ()
    outputs = [shape_of(one) for one in given.model.outputs]
    alike = all(one is not None and len(one) == len(shape) and one[1:] == shape[1:] for one in outputs)
    if not alike or given.outputs > _MOST:
        return None
    if not is_dataset(data):
        return {given.y: f"[{', '.join([given.text(given.y)] * given.outputs)}]"} if given.y is not None else None
    spec = data.element_spec
    names = ["x", "y", "weights"][: len(spec)]
    new = ", ".join(["x", f"({', '.join(['y'] * given.outputs)})", *names[2:]])
    whole = f".map(lambda {', '.join(names)}: ({new}))"
    return {one: f"{given.text(one)}{whole}" for one in (given.x, *validation(given, spec))}


def _of_call(spot: Spot, call: ast.Call) -> Explanation | None:
    """A subclassed model whose `call` returns several tensors, for one array of labels."""
    model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    y = argument(call, 1, "y")
    code = getattr(vars(type(model)).get("call"), "__code__", None)
    if model is None or not of_keras(type(model), "Model") or code is None or y is None:
        return None
    if shape_of(lookup(y, spot)) is None:
        return None
    own = Spot(*begins(code), {}, spot.module, "")
    for function in ast.walk(own.source.tree):
        if not isinstance(function, ast.FunctionDef) or function.name != "call" or not parameters(function):
            continue
        holder = own.source.parent(function)
        returned = [one.value for one in ast.walk(function) if isinstance(one, ast.Return)]
        several = [one for one in returned if isinstance(one, (ast.Tuple, ast.List))]
        if isinstance(holder, ast.ClassDef) and holder.name == type(model).__name__ and several == returned != []:
            text, count = own.source.text, len(several[0].elts)
            cause = (
                f"{holder.name}.call returns {count} tensors ({short(', '.join(map(text, several[0].elts)), 40)}), and "
                f"{spot.source.text(y)} is one array of labels: Keras wants labels for each of them."
            )
            if len(several) == 1 and count > 1:
                first = text(several[0].elts[0])
                advice = f"Return from call only what is compared with labels, say {first}; or give a list with labels "
                advice += f"for each of the {count}."
                return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    return None


def _other_names(given: Given, name: str) -> Explanation | None:
    """`Model(x, {"first": a})` with losses named for the layers."""
    outputs = getattr(given.model, "output", None)
    keys = list(outputs) if isinstance(outputs, dict) else []
    if not keys or name in keys:
        return None
    named = ", ".join(map(repr, keys))
    cause = f"The model's outputs have the names of the dict that it was made with, {named}: {name!r} is none of them."
    return given.told(cause, None, "Use these names in loss=, metrics= and the labels.")
