"""A number of 0 that is divided by, and a name that a list of classes lacks: the values, and where they came from."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import calls

_NOT_IN = re.compile(r"is not in (?:list|deque)$|x not in (?:list|tuple)$|tuple\.index\(x\): x not in tuple")
_DIVIDES = (ast.Div, ast.FloorDiv, ast.Mod)
_WIDTH = 44
_MOST = 6


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line divides by a known 0, or asks a known list for what it lacks."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data:
        return None
    if situation.kind == "ZeroDivisionError":
        return _divided(spot, statement)
    return _absent(spot, statement) if situation.kind == "ValueError" and _NOT_IN.search(situation.message) else None


def _divided(spot: Spot, statement: ast.stmt) -> Explanation | None:
    divisors = [one.right for one in ast.walk(statement) if isinstance(one, ast.BinOp) and isinstance(one.op, _DIVIDES)]
    divisors += [statement.value] if isinstance(statement, ast.AugAssign) and isinstance(statement.op, _DIVIDES) else []
    divisors = [one for one in divisors if not isinstance(one, ast.Constant)]
    zeros = {ast.unparse(one): one for one in divisors if origins.number(origins.valued(one, spot)) == 0}
    if len(zeros) != 1:
        return None
    ((_, node),) = zeros.items()
    text = spot.source.text
    made = origins.origin(node, spot)
    cause = f"{short(text(node), _WIDTH)} is 0, and line {spot.line} divides by it."
    whole, line = (made.made, made.line) if made is not None else (node, spot.line)
    known = origins.listed([one for one in origins.parts(whole, spot) if one[0] != text(node)])
    if made is not None:
        cause += f" It is `{short(text(whole), _WIDTH)}` of line {line}."
    cause += f" There {known}." if known else ""
    if isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.FloorDiv):
        below = origins.number(origins.valued(whole.left, spot))
        above = origins.number(origins.valued(whole.right, spot))
        if below is not None and above is not None and 0 < below < above:
            advice = f"{below} is less than {above}: make {text(whole.right)} smaller, or use max(1, {text(whole)})."
            return Explanation(RULE, spot.file, line, cause, None, advice)
    advice = "Correct what makes it 0, or ask for that first and leave such elements out."
    return Explanation(RULE, spot.file, line, cause, None, advice)


def _absent(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`CLASSES.index(name)` of a name that is not there."""
    found = []
    for one in calls(statement):
        if isinstance(one.func, ast.Attribute) and one.func.attr == "index" and len(one.args) == 1:
            owner, asked = origins.kept(one.func.value, spot), origins.valued(one.args[0], spot)
            plain = type(owner) in (list, tuple) and all(map(origins.is_plain, (*owner, asked)))
            if plain and asked not in list(owner):
                found.append((one, owner, asked))
    if len(found) != 1:
        return None
    call, owner, asked = found[0]
    text, name = spot.source.text, spot.source.text(call.args[0])
    listed = ", ".join(repr(each) for each in owner[:_MOST] if type(each) in (str, bytes, int, float))
    more = ", ..." if len(owner) > _MOST else ""
    which = f"{short(name, 30)} is {asked!r}" if not isinstance(call.args[0], ast.Constant) else repr(asked)
    cause = f"{which}, and {text(call.func.value)} does not have it: {short(listed, 60)}{more}."  # type: ignore[attr-defined]
    near = [each for each in owner if type(each) is str and isinstance(asked, str) and _plain(each) == _plain(asked)]
    if near:
        cause += f" It has {near[0]!r}: they differ in spaces or in upper and lower case."
    if isinstance(asked, bytes) and asked.decode("utf-8", "replace") in list(owner):
        cause += f" It has the text: `{short(name, 30)}.decode()` is one."
    advice = f"Add it to {text(call.func.value)}, or leave out what has another name."  # type: ignore[attr-defined]
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _plain(text: str) -> str:
    return text.strip().lower()
