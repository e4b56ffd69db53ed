"""What cannot be put into an order: tuples with equal numbers whose second parts are dicts or arrays, None, dicts."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

_SAID = re.compile(r"'[<>]' not supported between instances of|The truth value of an array with more than one element")
_ORDERS = ("sorted", "max", "min")
_MOST = 100_000


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body or a generator sorts such a list, or asks for its largest or smallest."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data or not _SAID.search(situation.message):
        return None
    for call in calls(statement):
        name = dotted(call.func)
        given: ast.expr | None = None
        if name in _ORDERS and len(call.args) == 1:
            given = call.args[0]
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "sort" and not call.args:
            name, given = "sort", call.func.value
        if given is None or any(word.arg == "key" for word in call.keywords):
            continue
        held = lookup(given, spot)
        if type(held) in (list, tuple) and 1 < len(held) <= _MOST:
            return _of(spot, call, name, given, list(held))
    return None


def _of(spot: Spot, call: ast.Call, name: str, given: ast.expr, held: list[Any]) -> Explanation | None:
    text = short(spot.source.text(given), 30)
    kinds = {type(one).__name__ for one in held}
    if kinds == {"tuple"} and all(one and origins.number(one[0]) is not None for one in held):
        second = next((one[1] for one in held if len(one) > 1), None)
        what = origins.shown(second).partition(" of ")[0] or f"a {type(second).__name__}"
        cause = f"{text} has tuples with equal first parts, so {name} compares their second parts, "
        cause += f"and {what} has no order. A key looks at the first part alone."
        edit = in_place(spot, {call: spot.source.with_argument(call, "key=lambda one: one[0]")})
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    if kinds == {"dict"}:
        keys = [key for key in held[0] if type(key) is str]
        asked = repr(keys[0]) if keys else "..."
        advice = f"Say by which of their values, as key=lambda one: one[{asked}]."
        return Explanation(RULE, spot.file, spot.line, f"{text} has dicts, and these have no order.", None, advice)
    if "NoneType" in kinds:
        place = next(place for place, one in enumerate(held) if one is None)
        cause = f"{text} has None at place {place}, which is neither less nor more than the others."
        return Explanation(
            RULE, spot.file, spot.line, cause, None, f"Leave it out: [one for one in {text} if one is not None]."
        )
    return None
