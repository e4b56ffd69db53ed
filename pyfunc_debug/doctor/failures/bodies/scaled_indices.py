"""A place on a grid that is one past the last: `int(x * 13)` of an x of 1, `x // 32` at the right edge.

A box that touches or crosses the edge of its picture has such a centre, and pixels where a share is meant do, too.
"""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.bodies.class_indices import beyond, out_of_bounds
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_ndarray

_CASTS = {"int", "int32", "int64", "int16", "uint8", "floor", "round", "rint", "trunc", "ceil", "cast"}
_OF_NUMPY = {"astype", "item", "numpy", "round"}
_FARTHEST = 1.25
"""Of the grid: what is farther out is not at its edge."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one index of the failing line is a whole number made of a product or a quotient."""
    spot, statement = situation.last, situation.statement
    said = out_of_bounds(situation)
    if spot is None or statement is None or said is None or not situation.data:
        return None
    found = list(beyond(statement, spot, said))
    if len(found) != 1:
        return None
    asked, part, axis, index, size = found[0]
    made = origins.origin(part, spot)
    line, whole = (made.line, made.made) if made is not None else (part.lineno, part)
    scaled = _scaled(whole, spot, line)
    if scaled is None or _largest(origins.valued(whole, spot)) != index:
        return None
    text, owner = spot.source.text, short(spot.source.text(asked.value), 30)
    where = f" on axis {axis}" if isinstance(asked.slice, ast.Tuple) else ""
    which = "that" if line == spot.line else f"line {spot.line}"
    cause = f"{short(text(part), 30)} is {index}, and {which} asks {owner} for it, which has {size} places{where}."
    known = origins.listed(origins.parts(scaled, spot))
    cause += f" Here {known}." if known else ""
    share = _share(scaled, spot, size)
    if share is None and index != size:  # far outside: the largest that fits is said, and the call
        return None
    if share is not None and share[1] > _FARTHEST:
        cause += f" Times {size}, numbers of 0 to 1 fit: {share[1]:.6g} may be in pixels."
        advice = f"Divide {share[0]} by the width or height that it is a part of, where the data are read."
        return Explanation(RULE, spot.file, line, cause, None, advice)
    last = _last(scaled, spot, size) or (f"{text(asked.value)}.shape[{axis}] - 1" if made is None else str(size - 1))
    plain = isinstance(whole, ast.Call) and dotted(whole.func) == "int"
    least = "min" if plain else f"{alias(spot, 'numpy')}.minimum"
    edit = edit_of(spot.file, spot.source.replaced({whole: f"{least}({text(whole)}, {last})"}))
    if edit is None:
        return Explanation(RULE, spot.file, line, cause, None, f"Cut it to {size - 1}, or correct the data.")
    cause += f" It lies at the edge or over it: the last place, {size - 1}, stands for that; else correct the data."
    return Explanation(RULE, spot.file, line, cause, edit, "", "likely")


def _scaled(node: ast.expr, spot: Spot, line: int) -> ast.BinOp | None:
    """The product or quotient of a whole number that is made of it; by a name that was assigned it as well."""
    rounds = False
    while isinstance(node, ast.Call):
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in _OF_NUMPY:
            rounds, node = True, func.value
        elif dotted(func).rpartition(".")[2] in _CASTS and node.args:
            rounds, node = True, node.args[0]
        else:
            return None
    made = origins.origin(node, spot) if rounds else None
    node = made.made if made is not None and made.line <= line else node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        return node
    return node if rounds and isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)) else None


def _largest(value: Any) -> int | float | None:
    """A number, and of an array of numbers the largest."""
    if is_ndarray(value) and value.size and value.dtype.kind in "iuf":
        value = value.max()
    return origins.number(value)


def _sides(node: ast.BinOp, spot: Spot) -> list[tuple[ast.expr, Any]]:
    return [(one, _largest(origins.valued(one, spot))) for one in (node.left, node.right)]


def _share(node: ast.BinOp, spot: Spot, size: int) -> tuple[str, float] | None:
    """What is multiplied by the number of places: its text and its value."""
    if not isinstance(node.op, ast.Mult):
        return None
    (left, first), (right, second) = _sides(node, spot)
    for one, value, other in ((left, first, second), (right, second, first)):
        if other == size and isinstance(value, float):
            return spot.source.text(one), value
    return None


def _last(node: ast.BinOp, spot: Spot, size: int) -> str:
    """The last place, by the name of the number of places."""
    found = [one for one, value in _sides(node, spot) if value == size and isinstance(node.op, ast.Mult)]
    return f"{spot.source.operand(found[0])} - 1" if len(found) == 1 else ""
