"""Rows that a body counts through by its calls, and the count is past the last: a full buffer, or another pass."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import assignments, own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted
from pyfunc_debug.doctor.failures.reading.symbols import is_ndarray, lookup

_SAID = re.compile(r"index (\d+) is out of bounds for axis 0 with size (\d+)|index out of range")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line writes at a place that its function counts up, one past the last row."""
    spot = situation.last
    function = spot.function if spot is not None else None
    if spot is None or function is None or not situation.data or situation.kind != "IndexError":
        return None
    statement = spot.statement
    if statement is None or not _SAID.search(situation.message):
        return None
    read = _next_pass(spot, function, statement)
    if read is not None or not isinstance(statement, ast.Assign):
        return read
    counted = {
        dotted(one.target) for one in own_nodes(function)
        if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and isinstance(one.target, ast.Attribute)
    }  # fmt: skip
    pieces: dict[ast.expr, str] = {}
    told = ""
    for one in own_nodes(function):
        if not isinstance(one, ast.Subscript) or not isinstance(one.ctx, ast.Store) or dotted(one.slice) not in counted:
            continue
        place, rows = lookup(one.slice, spot), lookup(one.value, spot)
        if not (is_ndarray(rows) or type(rows) is list) or type(place) is not int or not 0 < len(rows) == place:
            continue
        name, index = spot.source.text(one.value), spot.source.text(one.slice)
        pieces[one.slice] = f"{index} % len({name})"
        if one in ast.walk(statement):
            told = f"{name} has {place} rows, and {index} counted past the last: it is full. "
    near = {one.lineno for one in pieces}
    if not told or max(near) - min(near) >= len(pieces):
        return None
    edit = Edit(spot.file, *spot.source.kept_lines(pieces))
    return Explanation(RULE, spot.file, spot.line, f"{told}Here it begins again at row 0.", edit, "", "likely")


def _next_pass(spot: Spot, function: Function, statement: ast.stmt) -> Explanation | None:
    """`rows[i]` that is read, where the calls count i: nothing sets it back as the next pass begins."""
    counted = {
        spot.source.text(one.target) for one in own_nodes(function)
        if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and _is_kept(one.target, function)
    }  # fmt: skip
    for one in ast.walk(statement):
        if not isinstance(one, ast.Subscript) or not isinstance(one.ctx, ast.Load):
            continue
        place, rows = lookup(one.slice, spot), lookup(one.value, spot)
        if not (is_ndarray(rows) or type(rows) is list) or type(place) is not int or not 0 < len(rows) == place:
            continue
        made = assignments(function).get(one.slice.id) if isinstance(one.slice, ast.Name) else one.slice
        origin = spot.source.text(made) if made is not None else spot.source.text(one.slice)
        if origin not in counted and spot.source.text(one.slice) not in counted:
            continue
        name, index = spot.source.text(one.value), spot.source.text(one.slice)
        edit = edit_of(spot.file, spot.source.replaced({one.slice: f"{index} % len({name})"}))
        if edit is None:
            return None
        cause = (
            f"{name} has {place} rows, and {origin} counts the calls of all passes: it is {place}, and nothing sets it "
            "back for the next pass. Here it begins again at row 0. With parallel calls, give the body the index."
        )
        return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    return None


def _is_kept(target: ast.expr, function: Function) -> bool:
    """Whether a target outlives a call: an attribute, an item of an object, or a name that is not the function's."""
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        return True
    outer = [one for one in own_nodes(function) if isinstance(one, (ast.Global, ast.Nonlocal))]
    return isinstance(target, ast.Name) and any(target.id in one.names for one in outer)
