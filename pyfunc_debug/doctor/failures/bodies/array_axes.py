"""Code for a batch that gets one element: an axis too many, and a loop in a loop over an array of one axis."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    calls,
    dtype_of,
    is_ndarray,
    is_tensor,
    lookup,
    shape_of,
    sizes_of,
)

_AXIS = re.compile(r"axis (-?\d+) is out of bounds for array of dimension (\d+)")
_LOOP = re.compile(r"'numpy\.\w+' object is not iterable|[Ii]terat\w+ over a (?:0-d array|scalar tensor)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if NumPy refused an axis, or Python a loop over a number, in the line of a body."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data:
        return None
    if (said := _AXIS.search(situation.message)) is not None:
        return _axis(spot, statement, int(said[1]), int(said[2]))
    return _loop(spot) if _LOOP.search(situation.message) else None


def _axis(spot: Spot, statement: ast.stmt, wrong: int, rank: int) -> Explanation | None:
    """`x.mean(axis=1)` of an array of one axis."""
    for call in calls(statement):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        own = owner is not None and (is_ndarray(lookup(owner, spot)) or is_tensor(lookup(owner, spot)))
        array = owner if own else (*call.args, None)[0]
        if isinstance(array, (ast.List, ast.Tuple)) and dotted(call.func).endswith("concatenate") and array.elts:
            array = array.elts[0]
        axis = argument(call, 0 if own else 1, "axis")
        shape = shape_of(lookup(array, spot)) if array is not None else None
        axes = _numbers(axis) if axis is not None else []
        if axis is None or array is None or shape is None or len(shape) != rank or wrong not in axes:
            continue
        name, count = short(spot.source.text(array), 30), f"{rank} {'axis' if rank == 1 else 'axes'}"
        cause = (
            f"{name} has {count}, {sizes_of(shape)}, and the axes of an array are counted from 0: it has no {wrong}."
        )
        down = [one - 1 if one >= 0 else one for one in axes]
        fits = max(down) < rank and min(one % rank if rank else -1 for one in down) >= 0 and min(axes) > 0
        if rank and wrong == rank and fits:
            cause += " The line is written for an array of one axis more."
            new = str(down[0]) if isinstance(axis, (ast.Constant, ast.UnaryOp)) else str(tuple(down))
            edit = edit_of(spot.file, spot.source.replaced({axis: new}))
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
        return Explanation(RULE, spot.file, spot.line, cause, None, "Name an axis that it has, or leave axis= out.")
    return None


def _numbers(node: ast.expr) -> list[int]:
    """The axes that are written out."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return []
    found = list(value) if isinstance(value, (tuple, list)) else [value]
    return found if all(type(one) is int for one in found) else []


def _loop(spot: Spot) -> Explanation | None:
    """`for row in x: for value in row:` of an array of one axis: its elements are numbers."""
    within = spot.function if spot.function is not None else spot.source.tree
    loops = [one for one in ast.walk(within) if isinstance(one, (ast.For, ast.comprehension))]
    for inner in loops:
        if not isinstance(inner.iter, ast.Name) or shape_of(lookup(inner.iter, spot)) != ():
            continue
        for outer in loops:
            shape = shape_of(lookup(outer.iter, spot)) if isinstance(outer.iter, (ast.Name, ast.Attribute)) else None
            if dotted(outer.target) != inner.iter.id or shape is None or len(shape) != 1:
                continue
            text = spot.source.text(outer.iter)
            cause = (
                f"{text} has one axis, {sizes_of(shape)}: a loop over it gives numbers, and {inner.iter.id} is one. "
                f"Two loops are written for rows of numbers: {text}[None] has {text} as its one row."
            )
            edit = edit_of(spot.file, spot.source.replaced({outer.iter: f"{text}[None]"}))
            return Explanation(RULE, spot.file, outer.iter.lineno, cause, edit, "", "likely")
        if any(dotted(each.target) == inner.iter.id for each in loops):
            continue
        name = inner.iter.id
        if dtype_of(lookup(inner.iter, spot)) == "string":
            if type(lookup(inner.iter, spot)).__name__ != "EagerTensor":
                return None
            cause = f"{name} is a tensor of one text. Its characters are those of the text: .numpy() gives its bytes."
            edit = edit_of(spot.file, spot.source.replaced({inner.iter: f"{name}.numpy().decode()"}))
            return Explanation(RULE, spot.file, inner.iter.lineno, cause, edit, "", "likely")
        cause = f"{name} is one number, and a loop takes an array with an axis: [...] has it alone."
        edit = edit_of(spot.file, spot.source.replaced({inner.iter: f"[{name}]"}))
        return Explanation(RULE, spot.file, inner.iter.lineno, cause, edit, "", "likely")
    return None
