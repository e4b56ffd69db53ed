"""Texts with places for values: too few values for `"%d_%d"`, a float for `{:05d}`, a text for `%d`."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from contextlib import suppress

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import calls, decoded

_PLACE = re.compile(r"%(?!%)[-+ #0]*\d*(?:\.\d+)?([a-zA-Z])")
_CODE = re.compile(r"Unknown format code '(\w)' for object of type '(\w+)'|%(\w) format: .* is required, not ([\w.]+)")
_COUNT = re.compile(r"not enough arguments for format string|not all arguments converted during string formatting")
_WHOLE = "bcdoxXn"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a text in the failing line of a body or a generator takes other values."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data:
        return None
    if _COUNT.search(situation.message):
        return _count(spot, statement)
    return _kind(spot, statement) if _CODE.search(situation.message) else None


def _count(spot: Spot, statement: ast.stmt) -> Explanation | None:
    for one in ast.walk(statement):
        if not isinstance(one, ast.BinOp) or not isinstance(one.op, ast.Mod):
            continue
        text = origins.valued(one.left, spot)
        if not isinstance(text, str):
            continue
        places, held = len(_PLACE.findall(text)), origins.valued(one.right, spot)
        whole = isinstance(one.right, ast.Tuple) or type(held) is tuple
        given = len(one.right.elts) if isinstance(one.right, ast.Tuple) else len(held) if type(held) is tuple else 1
        if places == given and not whole:
            continue
        cause = f"{short(repr(text), 40)} has {places or 'no'} place{'s' * (places != 1)} for values, and "
        cause += f"gets {given or 'none'}: {short(spot.source.text(one.right), 30)}."
        if places == 1 and type(held) is tuple and not isinstance(one.right, ast.Tuple):
            cause += " A tuple is taken for as many values as it has."
            edit = in_place(spot, {one.right: f"({spot.source.text(one.right)},)"})
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
        advice = "Write %s where the value goes." if not places else "Give it one."
        if places > 1:
            advice = f"Give it {places} in brackets, ({', '.join(['...'] * places)}); or leave a place out."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None


def _kind(spot: Spot, statement: ast.stmt) -> Explanation | None:
    for node, code in _formatted(spot, statement):
        value = origins.valued(node, spot)
        known = decoded(value)
        wanted, new = ("int" if code in _WHOLE else "float"), ""
        text = spot.source.text(node)
        if isinstance(known, str):
            with suppress(ValueError):
                {"int": int, "float": float}[wanted](known)
                new = f"{wanted}({text})"
        elif code in _WHOLE and isinstance(origins.number(value), float):
            new = f"int({text})"
        if not new:
            continue
        kind = "a text" if isinstance(known, str) else "a float"
        takes = "whole numbers" if wanted == "int" else "numbers"
        cause = f"{short(text, 40)} is {origins.shown(value)}, {kind}, and `{code}` in the text takes {takes}."
        edit = in_place(spot, {node: new})
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Give it {new}.", "likely")
    return None


def _formatted(spot: Spot, statement: ast.stmt) -> Iterator[tuple[ast.expr, str]]:
    """The values that a line puts into texts, and the letter of the place that each goes to."""
    for one in ast.walk(statement):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod):
            text = origins.valued(one.left, spot)
            given = one.right.elts if isinstance(one.right, ast.Tuple) else [one.right]
            yield from zip(given, _PLACE.findall(text)) if isinstance(text, str) else ()
        elif isinstance(one, ast.FormattedValue) and isinstance(one.format_spec, ast.JoinedStr):
            last = one.format_spec.values[-1] if one.format_spec.values else None
            if isinstance(last, ast.Constant) and isinstance(last.value, str) and last.value:
                yield one.value, last.value[-1]
    for call in calls(statement):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "format":
            text = origins.valued(call.func.value, spot)
            if not isinstance(text, str):
                continue
            with suppress(ValueError):
                places = [(name, spec) for _, name, spec, _ in string.Formatter().parse(text) if name is not None]
                for order, (name, spec) in enumerate(places):
                    at = int(name) if name.isdigit() else order if not name else -1
                    if spec and 0 <= at < len(call.args):
                        yield call.args[at], spec[-1]
