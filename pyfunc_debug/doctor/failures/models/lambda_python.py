"""A Lambda layer's function of NumPy's or OpenCV's as Python on each batch, with dtype and shape of what it gives."""

from __future__ import annotations

import ast
import functools

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.made_values import made_dtype, made_return, made_shape
from pyfunc_debug.doctor.failures.reading.shapes import written
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_keras, is_symbolic


def in_python(situation: Situation) -> Edit | None:
    """`Lambda(blur)` as a Lambda of a numpy_function, or of a py_function where the function asks for `.numpy()`.

    None where the function is not one of assignments and a return, or its shape is not known from made inputs.
    """
    index, by = wrapping.entry(situation)
    spot = situation.spots[index]
    function = spot.function
    if by != "Keras" or not isinstance(function, ast.FunctionDef) or len(parameters(function)) != 1:
        return None
    name = parameters(function)[0]
    given = [
        one.args[0] for one in calls(spot.source.tree)
        if dotted(one.func).endswith("Lambda") and one.args and dotted(one.args[0]) == function.name
    ]  # fmt: skip
    if len(given) != 1 or not is_symbolic(spot.value(name)) or is_keras(spot.value(name)):
        return None
    for arrays, op in ((True, "numpy_function"), (False, "py_function")):
        made = made_return(function, spot, arrays=arrays)
        size = made_shape(functools.partial(made_return, function, spot, arrays=arrays))
        kind = made_dtype(made)
        if made is None or kind is None or not size:
            continue
        tf = alias(spot, "tensorflow")
        text = f"{tf}.ensure_shape({tf}.{op}({function.name}, [{name}], {tf}.{kind}), {written(size)})"
        text = f"{tf}.cast({text}, {name}.dtype)" if kind == "float64" else text
        return wrapping.replace_expression(spot, given[0], f"lambda {name}: {text}")
    return None
