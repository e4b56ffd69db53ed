"""A `call` under `tf.function` that Keras traced to build its layers, before their weights had values.

Keras builds a model or layer without running it: a weight gives its initializer's values then
(keras/src/backend/common/variables.py). `tf.function` keeps that graph, and fit runs it: no weight is in it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.bodies.replacement import definition
from pyfunc_debug.doctor.failures.graphs.python_objects import without_decorator
from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import begins, read
from pyfunc_debug.doctor.failures.reading.symbols import lookup, of_keras
from pyfunc_debug.interception.graphs.retraces import entries
from pyfunc_debug.interception.names.private import (
    function_cache,
    keras_initial,
    keras_layers,
    keras_trained,
    of_object,
)

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"
_DEEPEST = 5


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a graph of the model's `call`, or of one of its layers', has none of its weights."""
    if _SAID not in situation.message:
        return None
    for spot, fit in failed_fits(situation):
        model: Any = lookup(fit.func.value, spot) if isinstance(fit.func, ast.Attribute) else None
        for one in _layers(model):
            found = _explanation(situation, one, one is model)
            if found is not None:
                return found
    return None


def _layers(model: Any, depth: int = 0) -> Iterator[Any]:
    """A model, and the layers inside it."""
    if depth > _DEEPEST or not of_keras(type(model), "Layer"):
        return
    yield model
    for one in keras_layers(model) or ():
        yield from _layers(one, depth + 1)


def _explanation(situation: Situation, layer: Any, whole: bool) -> Explanation | None:
    call = inspect.getattr_static(type(layer), "call", None)
    if type(call).__name__ != "Function" or not type(call).__module__.startswith("tensorflow."):
        return None
    graphs = [one for _, _, one in entries(function_cache(of_object(call, layer)))]
    code = getattr(getattr(call, "python_function", None), "__code__", None)
    if not graphs or not keras_trained(layer) or code is None or any(one.graph.variables for one in graphs):
        return None
    if not any(keras_initial(one.graph) for one in graphs):
        return None  # it has no weight to read
    file, first = begins(code)
    function = definition(file, first)
    if not isinstance(function, ast.FunctionDef) or file not in dict(situation.sources()):
        return None
    name, line = type(layer).__name__, function.decorator_list[0].lineno if function.decorator_list else function.lineno
    cause = (
        f"Keras builds {name} by tracing its call, before the weights have values, and tf.function keeps that graph: "
        "it makes new initial values, and reads no weight. None has a gradient. Without tf.function here fit puts call "
        "into a graph of its own."
    )
    edit = without_decorator(file, read(file).lines, function)
    advice = "" if edit else f"Leave tf.function of {name}.call out."
    return Explanation(RULE, file, line, cause, edit, advice, "measured" if whole else "likely")
