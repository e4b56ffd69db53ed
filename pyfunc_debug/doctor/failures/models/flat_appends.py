"""Rows that `np.append` without an axis puts behind each other: the batch of a generator is one long row."""

from __future__ import annotations

import ast
import math

from pyfunc_debug.doctor.failures.models.batch_makers import Maker, batch_maker
from pyfunc_debug.doctor.failures.models.keras_calls import failed_single_inputs
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, shape_of

RULE = "generator"
_EMPTY = ("array", "empty", "zeros")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the inputs of such a batch have rows of several numbers for the model."""
    for spot, _, model, given in failed_single_inputs(situation):
        maker = batch_maker(given, spot)
        sizes = (shape_of(model.inputs[0]) or ())[1:]
        if maker is None or len(maker.values) != 1:
            continue
        if not sizes or math.prod(size or 2 for size in sizes) < 2:
            continue
        value = maker.values[0]
        inputs = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
        found = _of(maker, inputs) if isinstance(inputs, ast.Name) else None
        if found is not None:
            return found
    return None


def _of(maker: Maker, inputs: ast.Name) -> Explanation | None:
    """The paste of a list that is made an array at its end."""
    text, name = maker.source.text, inputs.id
    pieces: dict[ast.expr, str] = {}
    appended: ast.Call | None = None
    for one in own_nodes(maker.function):
        if not isinstance(one, ast.Assign) or [dotted(target) for target in one.targets] != [name]:
            continue
        call = one.value
        last = dotted(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and last == "append" and len(call.args) == 2 and not call.keywords:
            if dotted(call.args[0]) != name or appended is not None:
                return None
            appended, pieces[call] = call, f"[*{name}, {text(call.args[1])}]"
        elif isinstance(call, ast.List) and not call.elts:
            continue
        elif isinstance(call, ast.Call) and last in _EMPTY:
            pieces[call] = "[]"
        else:
            return None
    if appended is None:
        return None
    pieces[inputs] = f"{alias(maker.spot, 'numpy')}.array({name})"
    cause = (
        f"{text(appended.func)} without an axis puts the numbers of all rows behind each other: {name} of "
        f"{maker.name} is one long row. A list keeps the rows apart."
    )
    return Explanation(
        RULE, maker.spot.file, appended.lineno, cause, Edit(maker.spot.file, *maker.source.kept_lines(pieces))
    )
