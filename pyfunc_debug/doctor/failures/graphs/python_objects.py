"""Methods that change Python state, such as an environment's step, called by a tf.function: they ran at trace."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import symbolic_parts

RULE = "symbolic-value"
TRACKS = ("tensorflow", "keras", "tf_keras")
"""Whose classes keep their state in variables, which a graph can change."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a method that keeps something in `self` was given a symbolic tensor by a tf.function."""
    spot = situation.last
    function = spot.function if spot is not None else None
    if spot is None or situation.body or not isinstance(function, ast.FunctionDef):
        return None
    index, by = wrapping.entry(situation)
    outer, traced = situation.spots[index], situation.spots[index].function
    statement = spot.statement
    owner = spot.value("self")
    if by != "tf.function" or outer is spot or statement is None or owner is None:
        return None
    kept = changes_of_self(function)
    value = wrapping.value_here(spot, statement)
    parts = symbolic_parts(value, spot) if value is not None else {}
    library = any(one.__module__.partition(".")[0] in TRACKS for one in type(owner).__mro__)
    if not kept or not parts or library or not isinstance(traced, ast.FunctionDef):
        return None
    edit = without_decorator(outer.file, outer.source.lines, traced)
    if edit is None:
        return None
    cause = (
        f"`{short(spot.source.text(statement), 40)}` got {next(iter(parts))} without a value: {traced.name} is a "
        f"tf.function, and {function.name}, which changes {kept[0]}, is Python: it runs at trace only. "
        f"Let {traced.name} be Python, and put tf.function on what computes."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def changes_of_self(function: ast.AST) -> list[str]:
    """What a method assigns of `self`."""
    found: list[str] = []
    for one in own_nodes(function):
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AugAssign) else []
        found += [dotted(part) for part in targets if dotted(part).startswith("self.")]
    return found


def without_decorator(file: str, lines: list[str], function: ast.FunctionDef) -> Edit | None:
    """A function's `def` line without the `@tf.function` above it, where that is its only decorator."""
    decorators = function.decorator_list
    if len(decorators) != 1:
        return None
    called = decorators[0].func if isinstance(decorators[0], ast.Call) else decorators[0]
    if dotted(called).rpartition(".")[2] != "function":
        return None
    return Edit(file, decorators[0].lineno, function.lineno, (lines[function.lineno - 1],))
