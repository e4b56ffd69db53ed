"""Draws that cannot be made: rows of a table by `np.random.choice`, or more without repeats than there are."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray, lookup, sizes_of

_AXES = ("a must be 1-dimensional", "'a' must be 1-dimensional")
_MORE = (
    "Sample larger than population", "Cannot take a larger sample than population",
    "Cannot take a larger sample than population when",
)  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a draw stands in the failing line."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind != "ValueError":
        return None
    if any(one in situation.message for one in _AXES):
        return _rows(spot, statement)
    return _more(spot, statement) if any(one in situation.message for one in _MORE) else None


def _rows(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`np.random.choice(x, 8)` of a table."""
    found = [
        one for one in calls(statement)
        if dotted(one.func).endswith("random.choice") or (dotted(one.func).endswith(".choice") and one.args)
    ]  # fmt: skip
    tables = [(one, value) for one in found if one.args and (value := _array(one.args[0], spot)) is not None]
    if len(tables) != 1:
        return None
    call, shape = tables[0]
    source, given = spot.source, call.args[0]
    text = source.text(given)
    cause = (
        f"{source.text(call.func)} draws from one row of values, and {short(text, 30)} is {sizes_of(shape)}: to draw "
        "rows of it, draw their places."
    )
    inner = source.text_with(call, {given: f"len({text})"})
    edit = in_place(spot, {call: f"{source.atom(given)}[{inner}]"})
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {text}[{inner}].")


def _array(node: ast.expr, spot: Spot) -> tuple[int | None, ...] | None:
    value = lookup(node, spot)
    shape = value.shape if is_ndarray(value) else _listed(value)
    return shape if shape is not None and len(shape) > 1 else None


def _listed(value: Any) -> tuple[int, ...] | None:
    """The shape of a list of lists, or of arrays, all of one length."""
    first: Any = value[0] if type(value) in (list, tuple) and value else None
    return (len(value), len(first)) if isinstance(first, (list, tuple)) or is_ndarray(first) else None


def _more(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`random.sample(pos, 8)` of 6, `np.random.choice(x, 8, replace=False)` of 6."""
    source = spot.source
    for call in calls(statement):
        last = dotted(call.func).rpartition(".")[2]
        size = next((word.value for word in call.keywords if word.arg in ("k", "size")), None)
        size = size or (call.args[1] if len(call.args) > 1 else None)
        if last not in ("sample", "choice") or size is None or not call.args:
            continue
        have, asked = _length(call.args[0], spot), origins.number(origins.valued(size, spot))
        if have is None or asked is None or asked <= have:
            continue
        text = source.text(call.args[0])
        cause = f"{short(source.text(call), 40)} draws {asked} without repeats, and {short(text, 30)} has {have}."
        head = source.text(call.func).rpartition(".")[0]
        new = f"{head}.choices({text}, k={source.text(size)})" if last == "sample" and head else ""
        if last == "choice":
            word = next((word.value for word in call.keywords if word.arg == "replace"), None)
            new = source.text_with(call, {word: "True"}) if word is not None else ""
        edit = in_place(spot, {call: new}) if new else None
        cause += " With repeats:" if edit else ""
        advice = f"Draw min({asked}, len({short(text, 30)})) of them, or with repeats."
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else advice)
    return None


def _length(node: ast.expr, spot: Spot) -> int | None:
    value: Any = origins.valued(node, spot)
    if type(value) is int:
        return value  # choice(6) draws of range(6)
    return len(value) if isinstance(value, (list, tuple, range, set, dict)) or is_ndarray(value) else None
