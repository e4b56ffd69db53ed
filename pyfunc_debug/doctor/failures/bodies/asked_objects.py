"""A dict asked by a point, an object by brackets, and what has no places: `sample.image`, `box[0]`, `zipped[i]`."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, only_keeps

_ATTRIBUTE = re.compile(r"'dict' object has no attribute '(\w+)'")
_BRACKETS = re.compile(r"'(\w+)' object is not subscriptable")
_LENGTH = re.compile(r"object of type '(map|zip|filter|enumerate|reversed)' has no len\(\)")
_VIEWS = ("dict_keys", "dict_values", "dict_items", "set", "frozenset")
_ONCE = ("zip", "map", "filter", "enumerate", "reversed")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator asks such an object."""
    spot, statement, text = situation.last, situation.statement, situation.message
    if spot is None or statement is None or not situation.data:
        return None
    if (attribute := _ATTRIBUTE.search(text)) is not None:
        return _of_dict(spot, statement, attribute[1])
    if (length := _LENGTH.search(text)) is not None:
        asked = [one.args[0] for one in calls(statement) if dotted(one.func) == "len" and len(one.args) == 1]
        return next(filter(None, (_once(spot, one, length[1], "nothing counts them") for one in asked)), None)
    brackets = _BRACKETS.search(text)
    if brackets is None:
        return None
    every = [one for one in ast.walk(statement) if isinstance(one, ast.Subscript)]
    if brackets[1] in _ONCE:
        return next(filter(None, (_once(spot, one.value, brackets[1], "they have no places") for one in every)), None)
    return _of_view(spot, every, brackets[1]) if brackets[1] in _VIEWS else _of_object(spot, every, brackets[1])


def _of_dict(spot: Spot, statement: ast.stmt, name: str) -> Explanation | None:
    """`sample.image` of a dict with that key."""
    text = spot.source.text
    every = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load)]
    asked = [one for one in every if one.attr == name and type(lookup(one.value, spot)) is dict]
    if not asked:
        return None
    owner: Any = lookup(asked[0].value, spot)
    held = text(asked[0].value)
    if name not in owner:
        keys = [one for one in owner if type(one) is str][:4]
        cause = f"{short(held, 30)} is a dict without a key {name!r}. It has {', '.join(map(repr, keys))}."
        return (
            Explanation(RULE, spot.file, spot.line, cause, None, "Ask for one of these, in brackets.") if keys else None
        )
    pieces: dict[ast.expr, str] = {
        one: f'{text(one.value)}["{one.attr}"]' for one in every
        if text(one.value) == held and one.attr in owner and not hasattr(dict, one.attr)
    }  # fmt: skip
    cause = f"{short(held, 30)} is a dict, and {name} is one of its keys: a dict is asked in brackets."
    return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, pieces))


def _of_view(spot: Spot, every: list[ast.Subscript], kind: str) -> Explanation | None:
    """`table.keys()[i]` and `words[0]` of a set."""
    text = spot.source.text
    for one in every:
        views = isinstance(one.value, ast.Call) and dotted(one.value.func).rpartition(".")[2] in (
            "keys",
            "values",
            "items",
        )
        if not views and type(lookup(one.value, spot)).__name__ != kind:
            continue
        what = "a view of a dict" if kind.startswith("dict_") else f"a {kind}"
        cause = f"{short(text(one.value), 30)} is {what}, whose values have no places. A list of it has."
        pieces: dict[ast.expr, str] = {
            each.value: f"list({text(each.value)})" for each in every if text(each.value) == text(one.value)
        }
        return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, pieces))
    return None


def _once(spot: Spot, node: ast.expr, kind: str, what: str) -> Explanation | None:
    """`pairs[i]`, and `len(pairs)`, of what `zip` or `map` gave: values that come once, one after the other."""
    value = lookup(node, spot)
    if type(value).__name__ != kind or not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    name = spot.source.text(node)
    made = spot.source.given_to(dotted(node))
    cause = f"{name} is what {kind} gives: its values come once, one after the other, and {what}. A list keeps them."
    if len(made) != 1:
        return Explanation(
            RULE, spot.file, spot.line, cause, None, f"Make it a list where it is made: {name} = list(...)."
        )
    edit = edit_of(spot.file, spot.source.replaced({made[0]: f"list({spot.source.text(made[0])})"}))
    return Explanation(RULE, spot.file, made[0].lineno, cause, edit)


def _of_object(spot: Spot, every: list[ast.Subscript], kind: str) -> Explanation | None:
    """`box[0]` and `box["x"]` of an object of the user's."""
    text = spot.source.text
    for one in every:
        value = lookup(one.value, spot)
        if type(value).__name__ != kind or not only_keeps(value):
            continue
        names = [name for name in vars(value) if not name.startswith("_")]
        listed = ", ".join(names[:4]) + ", ..." * (len(names) > 4)
        held = short(text(one.value), 30)
        cause = f"{held} is an object, a {kind}, and is asked by a point. It has {listed or 'nothing of its own'}."
        key = one.slice.value if isinstance(one.slice, ast.Constant) else None
        if isinstance(key, str) and key in names:
            pieces: dict[ast.expr, str] = {
                each: f"{text(each.value)}.{each.slice.value!s}" for each in every
                if text(each.value) == text(one.value) and isinstance(each.slice, ast.Constant)
                and each.slice.value in names
            }  # fmt: skip
            return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, pieces))
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Write {held}.{names[0] if names else '...'}.")
    return None
