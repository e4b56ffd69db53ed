"""A whole body in TensorFlow's ops: what each of its lines becomes."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.ops.rewrites import as_ops, learned, whole_as_ops, writes_parts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source


def body_in_ops(function: Function, spot: Spot) -> dict[ast.expr, str] | None:
    """Expressions of a body, and what they are in TensorFlow's ops; None where some of it has no such op.

    Args:
      function: The body.
      spot: A frame of it, which knows dtypes and shapes of its inputs.
    """
    if writes_parts(function) or not whole_as_ops(function, spot):
        return None
    pieces: dict[ast.expr, str] = {}
    made: list[str] = []
    if isinstance(function, ast.Lambda):
        values: list[tuple[ast.expr | None, ast.AST]] = [(function.body, function.body)]
    else:
        values = [
            (one.value, one) for one in own_nodes(function)
            if isinstance(one, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr))
        ]  # fmt: skip
    for value, statement in values:
        new = as_ops(value, spot, also=tuple(made)) if value is not None else None
        if value is not None and new is not None:
            pieces[value] = new
        elif value is not None and as_ops(value, spot, also=tuple(made), same=True) is None:
            return None  # on made inputs it gives something else
        if isinstance(statement, ast.Assign):
            spot = learned(statement, spot)
        made += [
            part.id for part in ast.walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        ]
    return pieces


def as_edit(file: str, source: Source, pieces: dict[ast.expr, str], most: int | None = None) -> Edit | None:
    """The lines of a body with its pieces in ops; None where nothing changes, or more lines than `most` do."""
    changed = {one: text for one, text in pieces.items() if text != source.text(one)}
    if not changed or (most is not None and len({one.lineno for one in changed}) > most):
        return None
    return Edit(file, *source.kept_lines(changed))
