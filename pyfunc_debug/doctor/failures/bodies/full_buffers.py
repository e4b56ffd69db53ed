"""A buffer that a body writes a row of at each call, and that is full: one of replays begins again at its first row."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import is_ndarray, lookup

_SAID = re.compile(r"index (\d+) is out of bounds for axis 0 with size (\d+)|assignment index out of range")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line writes at a place that its function counts up, one past the last row."""
    spot = situation.last
    function = spot.function if spot is not None else None
    if spot is None or function is None or not situation.body or situation.kind != "IndexError":
        return None
    statement = spot.source.statement(spot.line)
    if not isinstance(statement, ast.Assign) or not _SAID.search(situation.message):
        return None
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
