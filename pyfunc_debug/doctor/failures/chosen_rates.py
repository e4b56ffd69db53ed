"""A learning rate that Python chooses by the step, `if step < warmup: return ...`, as tf.where."""

from __future__ import annotations

import ast
import dataclasses

from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.rewrites import as_ops
from pyfunc_debug.doctor.failures.situation import Spot
from pyfunc_debug.doctor.failures.source import dotted, indent_of, parameters, short
from pyfunc_debug.doctor.failures.symbols import Described, alias, calls

RULE = "symbolic-value"
_LONGEST = 8
"""Lines of a schedule that a paste replaces."""


def explain(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """The explanation, if a schedule of Keras' asks its step for a value, and all of its ways can be ops."""
    function = spot.function
    kinds = {one.__name__ for one in type(spot.variables.get("self")).__mro__}
    if not isinstance(function, ast.FunctionDef) or "LearningRateSchedule" not in kinds:
        return None
    steps, body = parameters(function), function.body
    if function.name != "__call__" or len(steps) != 1 or not isinstance(statement, ast.If):
        return None
    if any(dotted(one.func) == "int" for one in calls(function)) or body[0].lineno == function.lineno:
        return None  # whole numbers beside fractions
    known = dataclasses.replace(spot, variables={**spot.variables, steps[0]: Described("float32", ())})
    text = _chosen(body, known, steps[0])
    first, last = body[0].lineno, body[-1].end_lineno or body[-1].lineno
    if text is None or last - first >= _LONGEST:
        return None
    blanks, tf = indent_of(spot.source.lines[first - 1]), alias(spot, "tensorflow")
    lines = (f"{blanks}{steps[0]} = {tf}.cast({steps[0]}, {tf}.float32)", f"{blanks}return {text}")
    cause = (
        f"`if {short(spot.source.text(statement.test), 40)}` asks for the step's value, and ran while the graph was "
        "traced, when it had none: Keras computes the rate in the graph. As an op it is chosen in each step."
    )
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, last, lines), "", "likely")


def _chosen(body: list[ast.stmt], spot: Spot, step: str) -> str | None:
    """What some statements return, as one expression of ops; None where they do more than to choose."""
    one, *rest = body or [ast.Pass()]
    if isinstance(one, ast.Return) and one.value is not None:
        return _op(one.value, spot, step)
    if not isinstance(one, ast.If) or len(one.body) != 1:
        return None
    test = as_ops(one.test, spot, conditions=True, also=(step,), same=True)
    parts = [test, _chosen(one.body, spot, step), _chosen([*one.orelse, *rest], spot, step)]
    if None in parts:
        return None
    return f"{alias(spot, 'tensorflow')}.where({', '.join(map(str, parts))})"


def _op(value: ast.expr, spot: Spot, step: str) -> str | None:
    if isinstance(value, ast.Constant):
        return str(float(value.value)) if type(value.value) in (int, float) else None  # type: ignore[arg-type]
    return as_ops(value, spot, also=(step,), same=True)
