"""A number where a loop, a list or a sum takes several values: `for i in len(rows)`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

_SAID = re.compile(r"'(?:numpy\.)?(?:int|float)\d*' object is not iterable|iteration over a 0-d array")
_TAKE = ("list", "tuple", "set", "sum", "max", "min", "sorted", "enumerate", "zip", "iter", "any", "all", "map")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator goes over a number."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data or not _SAID.search(situation.message):
        return None
    loops = [statement.iter] if isinstance(statement, ast.For) else []
    loops += [one.iter for one in ast.walk(statement) if isinstance(one, ast.comprehension)]
    for one in loops:
        found = _loop(spot, one)
        if found is not None:
            return found
    for call in calls(statement):
        if dotted(call.func) in _TAKE:
            for given in call.args:
                value = origins.number(origins.valued(given, spot))
                if value is not None:
                    name = short(spot.source.text(given), 40)
                    cause = f"{name} is {value}, one number, and {dotted(call.func)} takes several values."
                    return Explanation(RULE, spot.file, spot.line, cause, None, f"Give it a list: [{name}].")
    return None


def _loop(spot: Spot, given: ast.expr) -> Explanation | None:
    value = origins.number(origins.valued(given, spot))
    if value is None:
        return None
    name = short(spot.source.text(given), 40)
    cause = f"{name} is {value}, one number, and a loop goes over several values."
    counts = isinstance(given, ast.Name) or (isinstance(given, ast.Call) and dotted(given.func) == "len")
    counts = counts or (isinstance(given, ast.Attribute) and not isinstance(given.value, ast.Subscript))
    if type(value) is int and counts:
        cause += " range counts up to it."
        edit = in_place(spot, {given: f"range({spot.source.text(given)})"})
        return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    made = origins.parts(given.slice, spot) if isinstance(given, ast.Subscript) else []
    cause += f" There {origins.listed(made)}." if made else ""
    advice = f"Keep a list there, [{value}]; or count up to it: range({name})."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
