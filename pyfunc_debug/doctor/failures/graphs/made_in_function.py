"""An optimizer or a metric that a tf.function makes, in the line that uses it: another one at each trace."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.code import local_names
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_keras_class, of_keras, of_package

RULE = "variable-in-function"
_KINDS = {"BaseOptimizer": "optimizer", "Metric": "metric"}
_MOST = 12
"""More lines than these are not a paste."""


def explain(spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> Explanation | None:
    """The explanation, if the statement makes one object of Keras' that has variables, and gives it no name.

    Args:
      spot: The frame that made variables at a later trace.
      function: Its function.
      statement: The statement of its line.
    """
    found = [(one, kind) for one in calls(statement) if (kind := kind_of(one.func, spot))]
    if len(found) != 1:
        return None
    (call, kind), source = found[0], spot.source
    if isinstance(statement, ast.Assign) and statement.value is call:
        return None
    made = short(source.text(call), 40)
    cause = (
        f"`{made}` makes another {kind}, with variables of its own, each time that {function.name} is traced: only the "
        "first trace may make variables. "
    )
    cause += (
        "Made once it adds up all calls, if not reset_state() begins each of them."
        if kind == "metric"
        else "Made once it goes on from step to step."
    )
    needs = sorted(set(names(call)) & local_names(function) - {"self"})
    where = f"above {function.name}"
    if isinstance(source.parent(function), ast.ClassDef):
        advice = f"Make it once, in __init__: `self.{kind} = {made}`, and use self.{kind} in {function.name}."
    elif needs:
        advice = f"Make it once, {where}, with what {' and '.join(needs)} will be, and use it in {function.name}."
    else:
        advice = f"Make it once, {where}: `{kind} = {made}`, and use {kind} in {function.name}."
    edit = None
    taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    if not needs and not isinstance(source.parent(function), ast.ClassDef) and kind not in taken:
        edit = _above(spot, function, statement, call, kind)
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else advice)


def kind_of(node: ast.expr, spot: Spot) -> str:
    """What is made by a class of Keras' or one that extends it; "" of any other call."""
    value = of_package(node, spot)
    if not isinstance(value, type) or not any(map(is_keras_class, value.__mro__)):
        return ""
    return next((kind for name, kind in _KINDS.items() if of_keras(value, name)), "")


def _above(
    spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt, call: ast.Call, name: str
) -> Edit | None:
    """The function with the object made above it, under a name, as far as the line that uses it."""
    source = spot.source
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    last = statement.end_lineno or statement.lineno
    if last - first > _MOST or "\n" in source.text(call):
        return None
    above = f"{indent_of(source.lines[first - 1])}{name} = {source.text(call)}"
    kept = list(source.lines[first - 1 : statement.lineno - 1])
    if name == "metric":
        kept.append(f"{indent_of(source.lines[statement.lineno - 1])}{name}.reset_state()")
    return Edit(spot.file, first, last, (above, *kept, *source.spliced({call: name}, statement.lineno, last)))
