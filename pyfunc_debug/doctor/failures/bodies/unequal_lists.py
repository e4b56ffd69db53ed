"""Lists that are read by one place, and that have not equally many: `paths[i], labels[i]`."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import is_ndarray, lookup

_SAID = re.compile(r"(?:list|tuple) index out of range|index (\d+) is out of bounds for axis 0 with size (\d+)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line reads two of the user's lists or arrays at a place that only one has."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data or situation.kind != "IndexError":
        return None
    if not _SAID.search(situation.message):
        return None
    function = spot.function
    inside = function if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else statement
    asked: dict[str, list[tuple[ast.expr, Any]]] = {}
    for one in ast.walk(inside):
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) and not isinstance(one.slice, ast.Constant):
            held = lookup(one.value, spot)
            if type(held) in (list, tuple) or (is_ndarray(held) and held.ndim):
                asked.setdefault(ast.unparse(one.slice), []).append((one, held))
    here = {id(one) for one in ast.walk(statement)}
    for found in asked.values():
        place = _largest(found[0][0].slice, spot)  # type: ignore[attr-defined]
        short_ones = [one for one in found if place is not None and place >= len(one[1]) and id(one[0]) in here]
        long_ones = [one for one in found if place is not None and place < len(one[1])]
        if place is None or len({ast.unparse(one[0]) for one in short_ones}) != 1 or not long_ones:
            continue
        return _unequal(spot, short_ones[0], long_ones[0], place)
    return None


def _largest(node: ast.expr, spot: Spot) -> int | None:
    """The place that is asked for, the largest of several."""
    value = origins.valued(node, spot)
    if is_ndarray(value) and value.dtype.kind in "iu" and value.size:
        return int(value.max())
    if type(value) is list and value and all(type(one) is int for one in value):
        return int(max(value))
    number = origins.number(value)
    return number if type(number) is int and number >= 0 else None


def _unequal(spot: Spot, less: tuple[Any, Any], more: tuple[Any, Any], place: int) -> Explanation:
    text = spot.source.text
    one, other = text(less[0].value), text(more[0].value)
    cause = f"{short(one, 30)} has {len(less[1]):,} and {short(other, 30)} {len(more[1]):,}: "
    cause += f"there is no {short(one, 30)}[{place}] for {short(other, 30)}[{place}]"
    shown = origins.shown(more[1][place]) if type(more[1]) in (list, tuple) else ""
    cause += f", {shown}." if shown and not shown.startswith("a ") else "."
    advice = f"They are paired by their place: find which of {short(other, 30)} have no partner, and leave these out."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
