"""The user's functions that a step of Keras runs while it is traced.

Methods of the model and its layers, and what `compile` was given. Keras traces a function of its own, whose closure
holds the model's `train_step`.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.interception.bodies import closure
from pyfunc_debug.interception.names import private

_STEPS = ("train_step", "test_step", "predict_step")
_DEEPEST = 12
_MOST_LAYERS = 200


def step_functions(function: Any, function_type: Any) -> list[Any]:
    """The functions of the user's that Keras calls in a step.

    Args:
      function: The Python function that was traced.
      function_type: That of tf.functions.

    Returns:
      Bound methods and functions, Keras' own among them; nothing where Keras traces something else.
    """
    step = _step(function, function_type, 0, set())
    model = getattr(step, "__self__", None)
    if step is None or not hasattr(model, "compute_loss"):
        return []
    found = [step, *_methods(model, "call")]
    if step.__name__ != "predict_step":
        found += _methods(model, "compute_loss", "compute_metrics")
        for one in private.keras_compiled_with(model):
            found += [one] if isinstance(one, types.FunctionType) else _methods(one, "call", "update_state", "result")
        rate = private.keras_learning_rate(getattr(model, "optimizer", None))
        found += _methods(rate, "__call__")
    for layer in _layers(model):
        found += _methods(layer, "call")
    return found


def _step(thing: Any, function_type: Any, depth: int, seen: set[int]) -> Any:
    """The step that a function of Keras' calls, found through closures."""
    if depth > _DEEPEST or id(thing) in seen:
        return None
    seen.add(id(thing))
    if isinstance(thing, types.MethodType):
        return thing if thing.__func__.__name__ in _STEPS else None
    if function_type is not None and isinstance(thing, function_type):
        return _step(thing.python_function, function_type, depth + 1, seen)
    inner = getattr(thing, "__wrapped__", None)
    held = [inner] if inner is not None else []
    held += closure(thing).values() if isinstance(thing, types.FunctionType) else ()
    found = (_step(one, function_type, depth + 1, seen) for one in held if callable(one))
    return next((one for one in found if one is not None), None)


def _methods(thing: Any, *names: str) -> list[Any]:
    methods = (getattr(thing, name, None) for name in names if hasattr(type(thing), name))
    return [one for one in methods if isinstance(one, types.MethodType)]


def _layers(model: Any) -> Iterator[Any]:
    todo, seen = list(getattr(model, "layers", ())), 0
    while todo and seen < _MOST_LAYERS:
        one = todo.pop(0)
        seen += 1
        yield one
        todo += list(getattr(one, "layers", None) or ())


__all__ = ["step_functions"]
