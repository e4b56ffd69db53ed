"""A whole number that came as a float, as `tf.round` and a float Tout give it, taken for an index."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, described, is_ndarray, lookup, root_is

_SAID = re.compile(
    r"only integers, slices|slice indices must be integers"
    r"|arrays used as indices must be of integer|indices must be integers or slices, not"
    r"|string indices must be integers"
    r"|has no attribute '__index__'|object cannot be interpreted as an integer"
    r"|expected a sequence of integers or a single integer, got"
)
_COUNTS = ("size", "shape", "num", "n", "count", "repeats", "axis")
"""Parameters of NumPy's functions that are whole numbers."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an index in the failing line is a float that is whole."""
    spot = situation.last
    statement = situation.statement if _SAID.search(situation.message) else None
    if spot is None or statement is None or situation.kind not in ("IndexError", "TypeError", "AttributeError"):
        return None
    pieces: dict[ast.expr, str] = {}
    told = ""
    for one in ast.walk(statement):
        if not isinstance(one, ast.Subscript) or not _takes_places(_kept(one.value, spot)):
            continue
        for part in _bounds(one.slice):
            value = _value(part, spot)
            text = _as_index(part, value, spot) if value is not None else None
            if text is None and type(value) is float and part is not one.slice:
                text = f"int({spot.source.text(part)})"  # a bound of a slice, as a box in pixels has
            if text is not None:
                pieces[part] = text
                what = described(value) if hasattr(value, "dtype") else "float"
                told = told or f"an index is a whole number, and `{spot.source.text(part)}` is {what}."
    if not pieces:
        return _as_count(spot, statement)
    edit = in_place(spot, pieces)
    return Explanation(RULE, spot.file, spot.line, told, edit) if edit is not None else None


def _bounds(index: ast.expr) -> list[ast.expr]:
    """The parts of an index, and in the place of a slice its bounds."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return [
        one for part in parts for one in (
            (part.lower, part.upper, part.step) if isinstance(part, ast.Slice) else (part,)
        ) if one is not None
    ]  # fmt: skip


def _as_count(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`np.random.choice(rows, size=128 / 2)`: a size that is a float, as `/` gives one."""
    found: list[tuple[ast.Call, ast.expr, float]] = []
    for call in calls(statement):
        if not root_is(call.func, spot, "numpy") and dotted(call.func) != "range":
            continue
        given = [*call.args, *(word.value for word in call.keywords if word.arg in _COUNTS)]
        given += [part for one in given if isinstance(one, (ast.Tuple, ast.List)) for part in one.elts]
        values = [(one, computed(one, spot)) for one in given if not isinstance(one, (ast.Tuple, ast.List))]
        found += [
            (call, one, value) for one, value in values
            if isinstance(value, float) and value.is_integer() and not isinstance(one, ast.Constant)
        ]  # fmt: skip
    if len(found) != 1:
        return None
    call, node, value = found[0]
    text = spot.source.text(node)
    edit = in_place(spot, {node: f"int({text})"})
    cause = f"{dotted(call.func)} takes a whole number there, and `{text}` is the float {value}: `/` gives floats."
    return Explanation(RULE, spot.file, spot.line, cause, edit) if edit is not None else None


def _kept(node: ast.expr, spot: Spot) -> Any:
    """What is indexed: of an object, also what its class keeps."""
    value = lookup(node, spot)
    return computed(node, spot) if value is None and dotted(node) else value


def _takes_places(value: Any) -> bool:
    """Whether it is an array, a list, a tuple or text."""
    return type(value) in (list, tuple, str, bytes) or is_ndarray(value)


def _value(node: ast.expr, spot: Spot) -> Any:
    """What an index is; None where it is not known, as a slice is not."""
    if isinstance(node, (ast.Slice, ast.Constant)):
        return None
    asked = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
    owner = (
        lookup(node.func.value, spot) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    )
    if asked and type(owner).__name__ == "EagerTensor":
        return owner
    return lookup(node, spot) if dotted(node) else computed(node, spot)


def _as_index(node: ast.expr, value: Any, spot: Spot) -> str | None:
    """An index of whole floats as whole numbers; None for any other."""
    import numpy

    eager = type(value).__name__ == "EagerTensor"
    if not (eager or type(value) is float or type(value).__module__ == "numpy"):
        return None
    array = numpy.asarray(value)
    if array.dtype.kind != "f" or not numpy.isfinite(array).all() or (array != numpy.trunc(array)).any():
        return None
    text = spot.source.text(node)
    if not array.ndim:
        return f"int({text})"
    return f"{alias(spot, 'numpy')}.asarray({text}).astype(int)"
