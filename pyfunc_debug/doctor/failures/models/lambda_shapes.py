"""The output_shape of a Lambda: a list, which Keras 3 does not take, or another shape than its function gives."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.bodies.results import is_made
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.callables import called
from pyfunc_debug.doctor.failures.reading.evaluation import apart, evaluated, given_names
from pyfunc_debug.doctor.failures.reading.failed_layers import FailedLayer, Made, arguments, failed_layer, one_back
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, lines_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, of_keras, shape_of, sizes_of
from pyfunc_debug.interception.names.private import declared_sizes, keras_given, keras_nodes

RULE = "structure"
_LIST = re.compile(r'can only concatenate tuple \(not "(?:TrackedList|list)"\) to tuple')
_REFUSED = re.compile(r"is incompatible with the layer: expected")
_BY_MODEL = re.compile(r"^Exception encountered when calling (?:Functional|Sequential)\.call\(\)")
_Sizes = tuple[int | None, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the output_shape of a Lambda is a list, or a layer behind it was made for what it says."""
    if situation.last is None or situation.body:
        return None
    if _LIST.search(situation.message):
        return _listed(situation)
    by_model = _BY_MODEL.search(situation.text) and _REFUSED.search(situation.message)
    return _contradicted(situation) if by_model else None


def _listed(situation: Situation) -> Explanation | None:
    """`Lambda(f, output_shape=[6])`: with what f gives, where that can be computed."""
    failed, layer, shape = failed_layer(situation), None, None
    if failed is not None and of_keras(type(failed.layer), "Lambda"):
        layer, shape = failed.layer, failed.shapes[0] if len(failed.shapes) == 1 else None
    for frame, _ in lines_of((situation.error, situation.inner)):
        own = frame.f_locals.get("self")
        if frame.f_code.co_name == "compute_output_shape" and of_keras(type(own), "Lambda"):
            layer, shape = own, frame.f_locals.get("input_shape")
    sizes = declared_sizes(layer) if layer is not None else None
    if layer is None or sizes is None or situation.last is None:
        return None
    made = FailedLayer(situation, situation.last, layer, (), None).made(layer)
    node = arguments(made.call, type(layer)).get("output_shape") if made is not None else None
    if made is not None and len(made.call.args) > 2:
        return None
    if made is None or not isinstance(node, ast.List):
        return None
    text = f"({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"
    cause = "The output_shape of this Lambda is a list, and Keras 3 takes a tuple, of the sizes behind the batch"
    gives = _computed(made, shape) if isinstance(shape, tuple) else None
    if gives is None or gives[1:] == sizes:
        edit = made.edit(made.with_arguments(output_shape=text))
        return Explanation(RULE, made.spot.file, made.call.lineno, f"{cause}.", edit)
    cause += f". It says {sizes_of(sizes)}, and the function gives {sizes_of(gives[1:])}: without it Keras asks that."
    return Explanation(RULE, made.spot.file, made.call.lineno, cause, made.edit(_without(made)))


def _contradicted(situation: Situation) -> Explanation | None:
    """A layer that was built for the output_shape of the Lambda in front of it, and got what its function gives."""
    failed = failed_layer(situation)
    nodes = keras_nodes(failed.layer) if failed is not None else []
    before = list(getattr(nodes[0], "input_tensors", ())) if len(nodes) == 1 else []
    if failed is None or len(before) != 1 or len(failed.shapes) != 1:
        return None
    layer, said, got = one_back(before[0])[0], shape_of(before[0]), failed.shapes[0]
    if layer is None or not of_keras(type(layer), "Lambda") or declared_sizes(layer) is None or said is None:
        return None
    inputs = [shape_of(one) for one in keras_given(layer)]
    if any(one is None or None in one[1:] for one in inputs):  # output_shape may be right for inputs of another size
        return None
    if len(said) == len(got) and all(None in (one, two) or one == two for one, two in zip(said[1:], got[1:])):
        return None
    made = failed.made(layer)
    if made is None or len(made.call.args) > 2 or "output_shape" not in arguments(made.call, type(layer)):
        return None
    cause = f"The output_shape of this Lambda says {sizes_of(said)}, and its function gave {sizes_of(got)}."
    line = stated_by(made.source, made.call)
    if line is not None:  # nobody but the body knows
        cause += f" That is what line {line} says: one of the two is not what the Python function returns."
        return Explanation(RULE, made.spot.file, made.call.lineno, cause, None, "Correct the one that is wrong.")
    cause += f" {failed.kind} behind it was built for what it says: without it Keras asks the function."
    return Explanation(RULE, made.spot.file, made.call.lineno, cause, made.edit(_without(made)))


def stated_by(source: Source, call: ast.Call) -> int | None:
    """The line that gives the result of a Python function its shape, in the function of a Lambda; None without."""
    given = argument(call, 0, "function")
    named = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(given)]
    function = given if isinstance(given, ast.Lambda) else named[0] if len(named) == 1 else None
    if function is None or not any(is_made(one) for one in calls(function)):
        return None
    lines = [one.lineno for one in calls(function) if called(one) in ("ensure_shape", "set_shape", "reshape")]
    return lines[0] if lines else None


def _computed(made: Made, shape: _Sizes) -> tuple[int, ...] | None:
    """The shape that a lambda gives which only computes, for an input of a shape; None where that is not known."""
    function = arguments(made.call, type(made.layer)).get("function")
    if not isinstance(function, ast.Lambda) or len(parameters(function)) != 1 or None in shape[1:]:
        return None
    name, body = parameters(function)[0], function.body
    given = given_names(body, made.spot, {name: None})
    if given is None:
        return None

    def found() -> tuple[int, ...]:
        import tensorflow as tf

        return tuple(evaluated(body, {**given, name: tf.ones((shape[0] or 2, *shape[1:]))}).shape)

    return apart(found)


def _without(made: Made) -> str:
    """The call without its output_shape."""
    every = [made.source.text(one) for one in made.call.args[:1]]
    every += [
        f"{one.arg}={made.source.text(one.value)}" if one.arg else f"**{made.source.text(one.value)}"
        for one in made.call.keywords if one.arg != "output_shape"
    ]  # fmt: skip
    return f"{made.source.text(made.call.func)}({', '.join(every)})"
