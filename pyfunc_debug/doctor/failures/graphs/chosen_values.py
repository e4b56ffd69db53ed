"""`if energy > limit: x = x / energy` on symbolic tensors, where AutoGraph converts nothing, as tf.cond."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.ops.rewrites import as_ops, rest_as_ops, whole_as_ops
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import alias, symbolic_parts

_FARTHEST = 20
"""Lines from the `if` to the last that one paste changes."""


def chosen(spot: Spot, statement: ast.stmt) -> Edit | None:
    """An `if` that assigns one name, as an op that chooses; and what would fail after it, as ops.

    What of the condition is Python, as `training`, stays an `if`.

    Args:
      spot: The frame that failed, whose function Python runs as it is.
      statement: Its statement.
    """
    function = spot.function
    if not isinstance(statement, ast.If) or not isinstance(function, ast.FunctionDef) or spot.generated:
        return None
    taken, other = assigned(statement.body), assigned(statement.orelse)
    if taken is None or (statement.orelse and (other is None or other[0] != taken[0])):
        return None
    name, value = taken
    if not statement.orelse and name not in spot.variables:
        return None
    python, asked = _parts(statement.test, spot)
    if asked is None:
        return None
    source, tf = spot.source, alias(spot, "tensorflow")
    blanks = indent_of(source.lines[statement.lineno - 1])
    condition = as_ops(asked, spot, conditions=True, same=True)
    kept = source.text(other[1]) if other is not None else name
    if condition is None or (python and statement.orelse):
        return None
    lines = [f"{blanks}if {' and '.join(source.text(one) for one in python)}:"] if python else []
    inside = f"{blanks}    " if python else blanks
    lines.append(f"{inside}{name} = {tf}.cond({condition}, lambda: {source.text(value)}, lambda: {kept})")
    first = last = statement.lineno
    last = statement.end_lineno or first
    pieces = rest_as_ops(function, spot, last, (name,)) if whole_as_ops(function, spot) else {}
    if pieces:
        farthest = max(one.end_lineno or one.lineno for one in pieces)
        if farthest - first < _FARTHEST:
            lines += source.spliced(pieces, last + 1, farthest)
            last = farthest
    return Edit(spot.file, first, last, tuple(lines))


def assigned(block: list[ast.stmt]) -> tuple[str, ast.expr] | None:
    """The name that a block of one line gives a value, and the value."""
    one = block[0] if len(block) == 1 else None
    if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
        return one.targets[0].id, one.value
    return None


def _parts(test: ast.expr, spot: Spot) -> tuple[list[ast.expr], ast.expr | None]:
    """What of a condition is Python, and what is asked of tensors; None for this where they cannot be told apart."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return [], test
    tensors = [one for one in test.values if symbolic_parts(one, spot)]
    python = [one for one in test.values if not symbolic_parts(one, spot)]
    if not tensors or any(name not in spot.variables for one in python for name in names(one)):
        return [], None
    asked = tensors[0] if len(tensors) == 1 else ast.BoolOp(ast.And(), tensors)
    return python, asked
