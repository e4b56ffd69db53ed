"""A sparse matrix of SciPy's where TensorFlow wants an array: it takes neither its length nor its numbers."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import lookup

RULE = "structure"
_SAID = re.compile(
    r"sparse (?:array|matrix) length is ambiguous"
    r"|[Uu]nsupported (?:object )?type.*(?:csr|csc|coo|lil|dok)_?(?:matrix|array)"
)
_LARGE = 1e9
"""Bytes of an array that is not pasted."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line reads such a matrix."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    found: dict[ast.expr, Any] = {}
    for one in ast.walk(statement):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load):
            value = lookup(one, spot)
            if is_matrix(value):
                found[one] = value
    return _told(spot, found) if found else None


def is_matrix(value: object) -> bool:
    """Whether it is one of SciPy's sparse matrices or arrays."""
    kind = type(value)
    return kind.__module__.startswith("scipy.sparse.") and hasattr(kind, "toarray")


def _told(spot: Spot, found: dict[ast.expr, Any]) -> Explanation:
    first, value = next(iter(found.items()))
    rows, columns = (int(one) for one in value.shape)
    nbytes = rows * columns * value.dtype.itemsize
    shown = f"{nbytes / 1e6:,.1f} MB" if nbytes >= 1e5 else f"{nbytes / 1e3:,.1f} kB"
    cause = (
        f"{short(spot.source.text(first), 30)} is a {type(value).__name__} of SciPy's, [{rows}, {columns}], which "
        f"TensorFlow does not take. As an array, with its zeros, it has {shown}."
    )
    if nbytes > _LARGE:
        advice = "Give Keras' fit the matrix itself, which makes an array of each batch only."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    pieces = {one: f"{spot.source.atom(one)}.toarray()" for one in found}
    return Explanation(RULE, spot.file, first.lineno, cause, edit_of(spot.file, spot.source.replaced(pieces)))
