"""Fields of a line that Python reads no number in: empty, quoted, with a decimal comma, or not split at all."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "body-input"
_SAID = re.compile(r"(?:could not convert string to float|invalid literal for int\(\) with base 10): (['\"])(.*)\1$")
_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_QUOTED = re.compile(r"\s*(['\"])\s*[-+]?[\d.]*(?:[eE][-+]?\d+)?\s*\1\s*")
_SEPARATORS = (";", "\t", ",", "|", " ")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a field of a line that the failing function splits is not a number as it is written."""
    said, spot = _SAID.search(situation.message), situation.last
    function = spot.function if spot is not None else None
    if said is None or spot is None or function is None:
        return None
    split = [one for one in calls(function) if _splits(one)]
    if len(split) != 1:
        return None
    return _told(spot, split[0], ast.literal_eval(f"{said[1]}{said[2]}{said[1]}"))


def _splits(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "split" and len(call.args) < 2


def _separator(call: ast.Call) -> str | None:
    """What a line is split at; None where that is not written there, "" for any blanks."""
    if not call.args:
        return ""
    value = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
    return value if isinstance(value, str) else None


def _told(spot: Spot, call: ast.Call, field: str) -> Explanation | None:
    text, separator, advice = spot.source.text, _separator(call), ""
    assert isinstance(call.func, ast.Attribute)
    line, shown = text(call.func.value), field if len(field) < 40 else f"{field[:36]}..."
    pieces: dict[ast.expr, str] = {}
    other = next((one for one in _SEPARATORS if one != separator and _numbers(field.split(one))), None)
    if separator is None:
        return None
    if not field.strip():
        pieces, cause = _or_nan(spot, call), "a field of a line is empty: no number is there. NaN can stand for it."
    elif _COMMA.fullmatch(field) and separator != ",":
        pieces = {call.func.value: f'{line}.replace(",", ".")'}
        cause = f"a field of a line is {shown!r}, with a decimal comma, and Python's numbers have a point."
    elif _QUOTED.fullmatch(field):
        mark = field.strip()[0]
        pieces = {call.func.value: f"{line}.replace({mark!r}, '')"}
        cause = f"a field of a line is {field.strip()}, with its quotes, and a number has none."
    elif other is not None:
        pieces = {call: f"{text(call.func)}({other!r})"}
        cause = f"the line is {shown!r}, without {separator!r}: its fields stand between {other!r}."
    else:
        return None
    edit = edit_of(spot.file, spot.source.replaced(pieces)) if pieces else None
    if edit is None:
        advice = "Write what stands for such a field before it is made a number."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _numbers(parts: list[str]) -> bool:
    """Whether there are several parts and each is a number."""
    try:
        return len(parts) > 1 and all(float(one) is not None for one in parts)
    except ValueError:
        return False


def _or_nan(spot: Spot, call: ast.Call) -> dict[ast.expr, str]:
    """What is made a number, with NaN for nothing: `float(v or "nan")`, or the list of the parts."""
    made = spot.source.parent(call)
    whole = isinstance(made, ast.Call) and call in made.args[:1] and dotted(made.func) not in ("float", "int", "map")
    if whole:
        return {call: f'[v or "nan" for v in {spot.source.text(call)}]'}
    statement = spot.statement
    floats = [one for one in calls(statement) if dotted(one.func) == "float" and one.args] if statement else []
    return {one.args[0]: f'{spot.source.text(one.args[0])} or "nan"' for one in floats}
