"""A `tf.custom_gradient` that does not return its function of gradients, but the result alone, or what that gives."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.bodies.replacement import definition
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import begins, dotted, read
from pyfunc_debug.interception.names.private import CUSTOM_GRADIENTS

RULE = "structure"
_KINDS = ("TypeError", "ValueError", "OperatorNotAllowedInGraphError", "InvalidArgumentError", "AttributeError")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if TensorFlow failed on what a function under `tf.custom_gradient` returned."""
    called = _called(situation) if not situation.body and situation.kind in _KINDS else None
    if called is None:
        return None
    file, first = begins(called)
    if file not in dict(situation.sources()):
        return None
    source = read(file)
    made = definition(file, first)
    if not isinstance(made, ast.FunctionDef):
        return None
    grads = [one.name for one in made.body if isinstance(one, ast.FunctionDef)]
    values = [one.value for one in own_nodes(made) if isinstance(one, ast.Return)] if len(grads) == 1 else []
    value = values[0] if len(values) == 1 else None
    if value is None:
        return None
    last = value.elts[-1] if isinstance(value, ast.Tuple) and value.elts else None
    if last is not None and dotted(last) == grads[0]:
        return None
    asked = isinstance(last, ast.Call) and dotted(last.func) == grads[0]
    name = made.name
    if asked and last is not None:
        cause = f"{name} calls {grads[0]}: TensorFlow does that, in the backward pass, and takes the function itself."
        edit = edit_of(file, source.replaced({last: grads[0]}))
    else:
        text = source.text(value)
        cause = (
            f"{name} is under tf.custom_gradient, which takes the result and {grads[0]}: {grads[0]} is not returned."
        )
        bare = isinstance(value, ast.Tuple) and not text.startswith("(")
        edit = edit_of(file, source.replaced({value: f"{f'({text})' if bare else text}, {grads[0]}"}, bare=True))
    return Explanation(RULE, file, value.lineno, cause, edit) if edit is not None else None


def _called(situation: Situation) -> Any:
    """The code of the function under custom_gradient that TensorFlow had called, or was calling, when it failed."""
    every = frames(situation.inner.__traceback__)
    found = [one for one in every if one.f_code.co_name in CUSTOM_GRADIENTS]
    function: Any = found[-1].f_locals.get("f") if found else None
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return getattr(function, "__code__", None)
