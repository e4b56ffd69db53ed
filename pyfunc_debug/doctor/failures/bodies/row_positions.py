"""A table of pandas that is asked for a row by its position: `df["y"][i]` asks for the label i of its index.

They are the same until rows are filtered, split or shuffled.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.tables import is_frame, is_table, valued

_SAID = re.compile(r"^-?\d+$|are in the \[(?:columns|index)\]|not in index")
_MOST = 200_000
_FARTHEST = 12
"""Lines that one paste goes over."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a table has no row of this label, and has one at this position."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind != "KeyError" or not situation.inner.args:
        return None
    if not _SAID.search(str(situation.inner.args[0])):
        return None
    failed = [one for one in ast.walk(statement) if isinstance(one, ast.Subscript) and _new(one, spot) is not None]
    if not failed:
        return None
    first = failed[0]
    every: dict[ast.expr, str] = {one: new for one, new in _alike(spot, first) if new is not None}
    every |= {one: new for one in failed if (new := _new(one, spot)) is not None}
    owner, index = _asked(first)
    table = valued(owner, spot)
    at = short(spot.source.text(_row(index)), 30)
    shown = f"labels of its rows: {short(', '.join(str(one) for one in table.index[:4].tolist()), 30)}, ..."
    by = "columns" if is_frame(table) and owner is first.value else shown
    cause = (
        f"`{short(spot.source.text(first), 40)}` asks for {by}, and {at} counts rows: {len(table)} there are. "
        "`.iloc` takes positions."
    )
    near = {one: new for one, new in every.items() if abs(one.lineno - spot.line) < _FARTHEST}
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, *spot.source.kept_lines(near)), "", "likely")


def _asked(one: ast.Subscript) -> tuple[ast.expr, ast.expr]:
    """The table that is asked, without `.loc`, and what it is asked for."""
    owner = one.value
    by_label = isinstance(owner, ast.Attribute) and owner.attr in ("loc", "at")
    return (owner.value if isinstance(owner, ast.Attribute) and by_label else owner), one.slice


def _row(index: ast.expr) -> ast.expr:
    """The row of `[i]` and of `[i, "y"]`."""
    return index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index


def _new(one: ast.Subscript, spot: Spot) -> str | None:
    """The text by positions of what asks a table for labels that it lacks, each of which is a position; else None."""
    owner, index = _asked(one)
    table: Any = valued(owner, spot) if isinstance(one.ctx, ast.Load) else None
    if not is_table(table) or len(table) > _MOST:
        return None
    rows = _numbers(evaluation.computed(_row(index), spot))
    labels = table.columns if is_frame(table) and owner is one.value else table.index
    known = set(labels.tolist())
    if not rows or all(row in known for row in rows) or not all(0 <= row < len(table) for row in rows):
        return None
    if table.index.name is not None:  # labels that a line chose: set_index
        return None
    return _text(one, spot)


def _text(one: ast.Subscript, spot: Spot) -> str | None:
    owner, index = _asked(one)
    text, row = spot.source.text(owner), spot.source.text(_row(index))
    if not isinstance(index, ast.Tuple):
        return f"{text}.iloc[{row}]"
    if len(index.elts) != 2 or owner is one.value or isinstance(index.elts[1], ast.Slice):
        return None
    return f"{text}[{spot.source.text(index.elts[1])}].iloc[{row}]"


def _numbers(value: Any) -> list[int]:
    """Whole numbers: one, a list, or an array of them."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    listed = value.tolist() if type(value).__module__ == "numpy" and kind in ("i", "u") else value
    listed = listed if type(listed) in (list, tuple) else [listed]
    return listed if listed and all(type(row) is int for row in listed) else []


def _alike(spot: Spot, failed: ast.Subscript) -> Iterator[tuple[ast.Subscript, str | None]]:
    """What else the function asks tables for by the same rows."""
    wanted = ast.unparse(_row(_asked(failed)[1]))
    for one in ast.walk(spot.function) if spot.function is not None else ():
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) and one is not failed:
            owner, index = _asked(one)
            table = valued(owner, spot)
            if is_table(table) and ast.unparse(_row(index)) == wanted:
                yield one, _text(one, spot)
