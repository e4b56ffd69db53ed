"""A Lambda, or a body in one, that hands `images[0]` to OpenCV: the first image of the batch, and no other."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.array_calls import takes_arrays
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.failed_layers import arguments, failed_layer
from pyfunc_debug.doctor.failures.reading.made_values import made_return, made_shape
from pyfunc_debug.doctor.failures.reading.nodes import argument, py_call
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import (
    Described,
    alias,
    calls,
    described,
    dtype_of,
    is_symbolic,
    is_tensor,
    of_keras,
    of_weights,
    shape_of,
)  # fmt: skip

RULE = "symbolic-value"
_LAMBDA = "this Lambda layer"
_UNKNOWN = ("unknown TensorShape", "output_shape", "is not compatible with expected shape", "unknown shape")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a layer's function takes one image of the batch that Keras gives it."""
    if situation.body or not situation.spots:
        return None
    for spot in reversed(situation.spots):
        function = spot.function
        names = parameters(function) if function is not None else []
        batch = spot.variables.get(names[0]) if len(names) == 1 else None
        shape = shape_of(batch) if is_tensor(batch) or is_symbolic(batch) else None
        if spot.by != "Keras" or function is None or shape is None or len(shape) not in (3, 4) or of_weights(batch):
            continue
        node = py_call(spot.source, spot.line)
        if node is not None:
            return _in_body(spot, function, node, batch) if any(one in _said(situation) for one in _UNKNOWN) else None
        used = spot.statement is not None and any(takes_arrays(one, spot) for one in calls(function))
        return _in_lambda(spot, function, batch) if used and _takes_first(function) else None
    return _asked(situation) if _LAMBDA in _said(situation) else None


def _asked(situation: Situation) -> Explanation | None:
    """The same where Keras asked the Lambda for its shape: the frames of its function are gone."""
    failed = failed_layer(situation)
    if failed is None or not of_keras(type(failed.layer), "Lambda") or len(failed.shapes) != 1:
        return None
    made, shape = failed.made(failed.layer), failed.shapes[0]
    given = arguments(made.call, type(failed.layer)).get("function") if made is not None else None
    node = given.body if isinstance(given, ast.Lambda) else None
    if made is None or not isinstance(given, ast.Lambda) or not isinstance(node, ast.Call) or len(shape) not in (3, 4):
        return None
    tout = argument(node, 2, "Tout")
    if dotted(node.func).rpartition(".")[2] != "numpy_function" or tout is None or len(parameters(given)) != 1:
        return None
    return _in_body(made.spot, given, node, Described(dotted(tout).rpartition(".")[2], shape))


def _said(situation: Situation) -> str:
    return f"{situation.message}\n{situation.error}"


def _takes_first(function: Function) -> bool:
    """Whether a function reads nothing but `x[0]` of its one argument."""
    name = parameters(function)[0]
    parts = function.body if isinstance(function.body, list) else [function.body]
    inside = [one for part in parts for one in ast.walk(part)]
    reads = [one for one in inside if isinstance(one, ast.Name) and one.id == name]
    first = [
        one for one in inside if isinstance(one, ast.Subscript) and dotted(one.value) == name
        and isinstance(one.slice, ast.Constant) and one.slice.value == 0 and type(one.slice.value) is int
    ]  # fmt: skip
    return bool(first) and len(first) == len(reads)


def _shape(function: Function, spot: Spot, batch: object) -> tuple[int | None, ...] | None:
    """What it gives for a batch of one image."""
    sizes = shape_of(batch) or ()
    known = {parameters(function)[0]: Described(dtype_of(batch), (1, *sizes[1:]))}
    there = Spot(spot.file, function.lineno, known, spot.module, "")
    made = made_shape(lambda inputs: made_return(function, there, inputs, arrays=True))
    unclear = made is not None and made[:1] == (1,) and len(made) != len(sizes)  # a batch of one, or an image's axis
    return None if unclear else made


def _mapped(spot: Spot, body: str, batch: str, dtype: str, shape: tuple[int | None, ...], rank: int) -> str:
    """`body`, for each image of a batch, which it gets as a batch of one; it may give back one, too."""
    tf = alias(spot, "tensorflow")
    whole = len(shape) == rank and shape[0] == 1
    shape = shape[1:] if whole else shape
    one = f"{tf}.numpy_function(lambda x: {body}(x[None]){'[0]' if whole else ''}, [one], {dtype})"
    return f"{tf}.map_fn(lambda one: {tf}.ensure_shape({one}, {list(shape)}), {batch})"


def _in_lambda(spot: Spot, function: Function, batch: object) -> Explanation | None:
    """`Lambda(lambda images: cv2.cvtColor(images[0], ...))`, also of a function by its name."""
    source, name = spot.source, parameters(function)[0]
    made = [
        (one, given) for one in calls(source.tree) if dotted(one.func).rpartition(".")[2] == "Lambda"
        if (given := argument(one, 0, "function")) is not None
        and (given is function or (isinstance(given, ast.Name) and given.id == getattr(function, "name", None)))
    ]  # fmt: skip
    shape, tf = _shape(function, spot, batch), alias(spot, "tensorflow")
    if len(made) != 1 or shape is None or any(getattr(one, "attr", "") == "numpy" for one in ast.walk(function)):
        return None
    given = made[0][1]
    body = f"({source.text(given)})" if isinstance(given, ast.Lambda) else source.text(given)
    rank = len(shape_of(batch) or ())
    new = f"lambda images: {_mapped(spot, body, 'images', f'{tf}.{dtype_of(batch)}', shape, rank)}"
    edit = edit_of(spot.file, source.replaced({given: new}))
    cause = (
        f"{name} is the batch, {described(batch)}: {name}[0] is its first image, and the others are lost; and here it "
        "is a tensor, not an array. map_fn gives each image to a numpy_function, which has no gradient."
    )
    return None if edit is None else Explanation(RULE, spot.file, given.lineno, cause, edit)


def _in_body(spot: Spot, function: Function, node: ast.Call, batch: object) -> Explanation | None:
    """`Lambda(lambda images: tf.numpy_function(edges, [images], tf.float32))`, where edges reads `images[0]`."""
    source, given, inp = spot.source, argument(node, 0, "func"), argument(node, 1, "inp")
    tout, name = argument(node, 2, "Tout"), parameters(function)[0]
    bodies = [
        one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(given)
    ]  # fmt: skip
    body = given if isinstance(given, ast.Lambda) else bodies[0] if len(bodies) == 1 else None
    listed = inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else []
    one_input = len(listed) == 1 and dotted(listed[0]) == name
    if not isinstance(body, (ast.Lambda, ast.FunctionDef)) or given is None or tout is None or not one_input:
        return None
    if dotted(node.func).rpartition(".")[2] != "numpy_function" or len(parameters(body)) != 1 or not _takes_first(body):
        return None
    shape = _shape(body, spot, batch)
    if shape is None or source.text(tout).rpartition(".")[2] != dtype_of(batch):
        return None
    called = f"({source.text(given)})" if isinstance(given, ast.Lambda) else source.text(given)
    new = _mapped(spot, called, name, source.text(tout), shape, len(shape_of(batch) or ()))
    edit = edit_of(spot.file, source.replaced({node: new}))
    own = parameters(body)[0]
    cause = (
        f"{own} is the batch, {described(batch)}: {own}[0] is its first image, and the others are lost. map_fn gives "
        "each image to it, and ensure_shape says what its source gives: check it."
    )
    return None if edit is None else Explanation(RULE, spot.file, node.lineno, cause, edit, "", "likely")
