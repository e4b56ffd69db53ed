"""`x = middle(x)` between two layers: a function of NumPy's values that was called while the Keras model was built."""

from __future__ import annotations

import ast
import sys
from types import FunctionType
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_inputs import takes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.pastes.traced_text import RULE
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    described,
    is_keras,
    keras_name,
    lookup,
    root_is,
    shape_of,
)

_KINDS = ("AttributeError", "IndexError", "NotImplementedError", "TypeError", "ValueError")
_FLOATS = ("float16", "float32", "float64")
_MOST = 3


def explain(situation: Situation) -> Explanation | None:
    """The explanation, with the function in a Lambda layer, if it met a Keras tensor and the model goes on with it."""
    if situation.body or situation.kind not in _KINDS:
        return None
    for spot in situation.spots:
        statement = spot.statement
        call = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(statement, ast.Assign) or not isinstance(call, ast.Call):
            continue
        given = [_tensor(one, spot) for one in call.args]
        tensors = [name for name in given if name]
        target = statement.targets[0]
        if not tensors or len({*tensors}) != len(tensors) or len(tensors) > _MOST or not isinstance(target, ast.Name):
            continue
        if not _goes_on(target.id, statement, spot) or not _needs_values(call, spot):
            continue
        asked = {one: tensor for one, tensor in zip(call.args, given) if tensor}
        if name := _of_keras(spot, call):
            edit = edit_of(spot.file, spot.source.replaced({call.func: name, **asked}))
            return _explanation(spot, statement, tensors, f"{name} is part of the model.", edit)
        if call.keywords:
            continue
        arguments = [tensor or spot.source.text(one) for tensor, one in zip(given, call.args)]
        said = f"In a numpy_function, in a layer, {dotted(call.func)} gets the values of each batch."
        made = _edit(spot, statement, call, arguments, {name: spot.value(name) for name in tensors})
        return _explanation(spot, statement, tensors, said, made)
    return None


def _tensor(node: ast.expr, spot: Spot) -> str:
    """The name of a Keras tensor that is given as it is, or asked for its value: `x`, `x.numpy()`, `np.array(x)`."""
    if isinstance(node, ast.Call):
        of_method = isinstance(node.func, ast.Attribute) and node.func.attr == "numpy" and not node.args
        node = node.func.value if of_method and isinstance(node.func, ast.Attribute) else node
    if isinstance(node, ast.Call) and root_is(node.func, spot, "numpy") and len(node.args) == 1:
        node = node.args[0]
    return node.id if isinstance(node, ast.Name) and is_keras(spot.value(node.id)) else ""


def _needs_values(call: ast.Call, spot: Spot) -> bool:
    """Whether NumPy is called, or a function of the program's that computes with it alone."""
    if root_is(call.func, spot, "numpy"):
        return any(isinstance(one, ast.Call) for one in call.args)  # `x.numpy()`: of a tensor as it is others know
    function, name = lookup(call.func, spot), dotted(call.func)
    found = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    if len(found) != 1 or not isinstance(function, FunctionType) or function.__code__.co_filename != spot.file:
        return False
    roots = [one.func for one in calls(found[0])]
    with_layers = any(root_is(one, spot, module) for one in roots for module in ("tensorflow", "keras"))
    return not with_layers and any(root_is(one, spot, "numpy") for one in roots)


def _of_keras(spot: Spot, call: ast.Call) -> str:
    """The same function of keras.ops; "" where Keras has none that takes these arguments."""
    name, ops = dotted(call.func).partition(".")[2], getattr(sys.modules.get("keras"), "ops", None)
    known = root_is(call.func, spot, "numpy") and takes(getattr(ops, name, None), call)
    return f"{keras_name(spot)}.ops.{name}" if known else ""


def _goes_on(name: str, statement: ast.stmt, spot: Spot) -> bool:
    """Whether what was computed is given to a call in the lines below: to a layer, or to the model."""
    block = spot.source.block(statement) or []
    below = block[block.index(statement) + 1 :] if statement in block else []
    return any(
        isinstance(part, ast.Name) and part.id == name
        for line in below for one in calls(line) for each in (*one.args, *(word.value for word in one.keywords))
        for part in ast.walk(each)
    )  # fmt: skip


def _explanation(spot: Spot, statement: ast.Assign, tensors: list[str], said: str, edit: Edit | None) -> Explanation:
    value: Any = spot.value(tensors[0])
    code = short(spot.source.text(statement).split("\n")[0], 44)
    cause = (
        f"`{code}` ran once, while the Keras model was built: {tensors[0]} ({described(value)}) describes what the "
        f"model will compute and has no value. {said}"
    )
    advice = (
        "" if edit is not None else "Put it in a Lambda layer, in a tf.numpy_function with the shape of its result."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely")


def _edit(
    spot: Spot, statement: ast.Assign, call: ast.Call, arguments: list[str], values: dict[str, Any]
) -> Edit | None:
    """The shape that the function gives for zeros, and the function in a numpy_function in a Lambda layer."""
    sizes = [shape_of(one) for one in values.values()]
    if any(one is None or None in one[1:] for one in sizes):
        return None
    tf, np, keras, name = alias(spot, "tensorflow"), alias(spot, "numpy"), keras_name(spot), dotted(call.func)
    target = spot.source.text(statement.targets[0])
    shape = spot.source.unused_name(f"{target}_shape")
    names = list(values)
    zeros = {one: f"{np}.zeros([1, *{one}.shape[1:]], {one}.dtype)" for one in names}
    tried = ", ".join(zeros.get(one, one) for one in arguments)
    kind = next(iter(values.values())).dtype
    kind = kind if kind in _FLOATS else "float32"
    inner = f"lambda {', '.join(names)}: {np}.{kind}({name}({', '.join(arguments)}))"
    given, tensor = (names[0], f"[{names[0]}]") if len(names) == 1 else ("both", "both")
    shaped = f"{tf}.ensure_shape({tf}.numpy_function({inner}, {tensor}, {tf}.{kind}), [None, *{shape}])"
    fed = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
    first, last = spot.source.span(statement)
    blanks = indent_of(spot.source.lines[first - 1])
    return Edit(
        spot.file, first, last,
        (
            f"{blanks}{shape} = {np}.shape({name}({tried}))[1:]  # what it gives for one row of zeros",
            f"{blanks}{target} = {keras}.layers.Lambda(lambda {given}: {shaped}, output_shape={shape})({fed})",
        ),
    )  # fmt: skip
