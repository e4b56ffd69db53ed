"""Functions of `math` outside of what they take: the logarithm of 0, the root of a negative number, an array."""

from __future__ import annotations

import ast
import math
import re
import sys
from contextlib import suppress
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup
from pyfunc_debug.doctor.failures.reading.tables import is_table

_DOMAIN = re.compile(r"math domain error|expected a (?:positive|nonnegative) (?:number|input)")
_RANGE = "math range error"
_ARRAY = re.compile(
    r"only (?:0-dimensional|length-1|size-1) arrays can be converted|must be real number, not (?:list|tuple)"
)
_NAN = re.compile(r"cannot convert float (NaN|infinity) to integer")
_LOGS = ("log", "log2", "log10")
_SMALL = "1e-12"
_WIDTH = 40


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator calls such a function."""
    spot, statement, text = situation.last, situation.statement, situation.message
    if spot is None or statement is None or not situation.data:
        return None
    if _NAN.search(text):
        return _whole(spot, statement, text)
    for call in calls(statement):
        name = dotted(call.func)
        if not call.args or not _is_math(call.func, spot):
            continue
        value, last = origins.valued(call.args[0], spot), name.rpartition(".")[2]
        if _ARRAY.search(text) and (type(value) in (list, tuple) or (is_ndarray(value) and value.ndim)):
            return _array(spot, call, last, value)
        number = origins.number(value)
        if number is not None and _DOMAIN.search(text):
            return _domain(spot, call, last, number)
        if number is not None and _RANGE in text:
            cause = (
                f"{short(spot.source.text(call.args[0]), _WIDTH)} is {number:.6g}: {name} of it is larger than a float."
            )
            return Explanation(
                RULE, spot.file, spot.line, cause, None, "np.exp gives inf there; or limit the value before."
            )
    return None


def _is_math(function: ast.expr, spot: Spot) -> bool:
    """Whether a function is one of Python's math."""
    owner = (
        spot.value(function.value.id)
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        else None
    )
    known = spot.value(function.id) if isinstance(function, ast.Name) else None
    return owner is math or getattr(known, "__module__", "") == "math"


def _array(spot: Spot, call: ast.Call, name: str, value: Any) -> Explanation | None:
    import_name = alias(spot, "numpy")
    text = short(spot.source.text(call.args[0]), _WIDTH)
    cause = f"math.{name} takes one number, and {text} is {origins.shown(value)}."
    if len(call.args) > 1 or not hasattr(sys.modules.get("numpy"), name):
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Give it one of them: math.{name}({text}[0]).")
    cause += f" {import_name}.{name} takes each of them."
    return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, {call.func: f"{import_name}.{name}"}))


def _domain(spot: Spot, call: ast.Call, name: str, number: float) -> Explanation | None:
    given, text = call.args[0], spot.source.text(call.args[0])
    of = {"sqrt": "the root of a negative number", **dict.fromkeys(_LOGS, "the logarithm of 0 or less")}.get(name)
    if of is None:
        cause = f"{short(text, _WIDTH)} is {number:.6g}, and math.{name} takes no such number."
        return Explanation(
            RULE, spot.file, spot.line, cause, None, "Limit the value before, or leave such elements out."
        )
    made = origins.origin(given, spot)
    cause = f"{short(text, _WIDTH)} is {number:.6g}, and there is no number for {of}."
    if made is not None:
        cause += f" It is `{short(spot.source.text(made.made), _WIDTH)}` of line {made.line}."
    new = f"max({text}, 0)" if name == "sqrt" else f"max({text}, {_SMALL})"
    return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, {given: new}), "", "likely")


def _field(node: ast.expr, spot: Spot) -> Any:
    """What an expression gives, also a field of a table's row."""
    held = lookup(node.value, spot) if isinstance(node, ast.Subscript) else None
    if held is None or not is_table(held) or not isinstance(node, ast.Subscript):
        return origins.valued(node, spot)
    key = origins.valued(node.slice, spot)
    with suppress(Exception):
        return held[key] if type(key) in (str, int) else None
    return None


def _whole(spot: Spot, statement: ast.stmt, message: str) -> Explanation | None:
    """`int(value)` of NaN: a field that a table does not have."""
    for call in calls(statement):
        if dotted(call.func) not in ("int", "round", "math.floor", "math.ceil") or len(call.args) != 1:
            continue
        value = origins.number(_field(call.args[0], spot))
        if not isinstance(value, float) or math.isfinite(value):
            continue
        text = short(spot.source.text(call.args[0]), _WIDTH)
        parts = [one for one in origins.parts(call.args[0], spot) if one[0] != text]
        where = f" There {origins.listed(parts)}." if parts else ""
        what = "NaN: pandas has it for an empty field of a table" if math.isnan(value) else "infinite"
        cause = f"{text} is {what}, and no whole number stands for it.{where}"
        advice = "Leave such rows out (df.dropna()), or say what stands for them (df.fillna(0))."
        if not math.isnan(value):
            advice = "Correct what makes it infinite: a division by 0, a logarithm of 0."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None
