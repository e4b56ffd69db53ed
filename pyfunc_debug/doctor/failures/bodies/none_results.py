"""What gave None in the failing line: a dict's `get`, a pattern that does not match, a tag that is not there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.bodies import near_keys
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup

_PATTERNS = ("match", "search", "fullmatch")
_SHOWN = 4


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body or a generator used the None of such a call."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or "NoneType" not in situation.message or not situation.data:
        return None
    for call in _used(statement):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        found = None
        if method == "get":
            found = _get(spot, call)
        elif method in _PATTERNS:
            found = _pattern(spot, call)
        elif method == "find":
            found = _tag(spot, call)
        if found is not None:
            return found
    return None


def _used(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a line whose results it uses, the innermost first; also what a loop goes through."""
    parts: list[ast.expr] = []
    for one in ast.walk(statement):
        if isinstance(one, (ast.Attribute, ast.Subscript)):
            parts.append(one.value)
        elif isinstance(one, (ast.For, ast.comprehension)):
            parts.append(one.iter)
        elif isinstance(one, ast.BinOp):
            parts += [one.left, one.right]
        elif isinstance(one, ast.Call):
            parts += one.args
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None:
            parts.append(one.value)
    yield from reversed([one for one in parts if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)])


def _get(spot: Spot, call: ast.Call) -> Explanation | None:
    """`captions.get(name)` of a name that is not there."""
    assert isinstance(call.func, ast.Attribute)
    owner, given = lookup(call.func.value, spot), call.args[0] if len(call.args) == 1 else None
    key = origins.valued(given, spot) if given is not None else None
    if type(owner) is not dict or given is None or type(key) not in (str, int, bytes) or key in owner:
        return None
    text = spot.source.text(call.func.value)
    keys = [one for one in owner if type(one) in (str, int, float, bytes)]
    cause = f"{short(spot.source.text(call), 40)} gives None: {short(text, 30)} has no key {short(repr(key), 40)}"
    for near, form, how in near_keys.ways(key, frozenset(keys)) if isinstance(key, (str, int)) else ():
        if near in keys:
            edit = in_place(spot, {given: form.format(spot.source.atom(given))})
            if edit is not None:
                return Explanation(RULE, spot.file, spot.line, f"{cause}, but {near!r}: {how}.", edit, "", "likely")
    listed = ", ".join(map(repr, keys[:_SHOWN])) + ", ..." * (len(keys) > _SHOWN)
    advice = "Give it that key, or say what stands for it: .get(..., default)."
    return Explanation(RULE, spot.file, spot.line, f"{cause}. It has {short(listed, 60)}.", None, advice)


def _pattern(spot: Spot, call: ast.Call) -> Explanation | None:
    """`re.match(pattern, text)` of a text without it."""
    assert isinstance(call.func, ast.Attribute)
    owner = dotted(call.func.value)
    values = [origins.valued(one, spot) for one in call.args]
    if owner == "re" and len(values) > 1:
        pattern, text = values[0], values[1]
    else:
        held = lookup(call.func.value, spot)
        pattern, text = getattr(held, "pattern", None), values[0] if values else None
    if isinstance(pattern, bytes) and isinstance(text, bytes):
        pattern, text = pattern.decode("latin-1"), text.decode("latin-1")
    if not isinstance(pattern, str) or not isinstance(text, str):
        return None
    try:
        matched = getattr(re, call.func.attr)(pattern, text)
    except re.error:
        return None
    if matched is not None:
        return None
    cause = (
        f"{short(spot.source.text(call.func), 20)} gives None: {short(repr(text), 50)} does not have the pattern "
        f"{short(repr(pattern), 40)}."
    )
    advice = "Correct the pattern, or leave such texts out: `if m is None:`."
    if call.func.attr == "match" and re.search(pattern, text):
        cause += " It has it further on: match looks at the beginning only, and search at all of it."
        edit = in_place(spot, {call.func: f"{spot.source.text(call.func.value)}.search"})
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else advice, "likely")
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _tag(spot: Spot, call: ast.Call) -> Explanation | None:
    """`root.find("size")` of an element without such a child."""
    assert isinstance(call.func, ast.Attribute)
    owner, wanted = _element(call.func.value, spot), call.args[0] if call.args else None
    tag = wanted.value if isinstance(wanted, ast.Constant) else origins.valued(wanted, spot) if wanted else None
    if owner is None or not isinstance(tag, str) or owner.find(tag) is not None:
        return None
    tags = list(dict.fromkeys(str(one.tag) for one in owner))
    listed = ", ".join(f"<{one}>" for one in tags[:_SHOWN]) + ", ..." * (len(tags) > _SHOWN)
    text = short(spot.source.text(call.func.value), 30)
    cause = f"{text} has no child <{tag}>: find gives None. It has {listed or 'none at all'}."
    advice = "Ask for one of these, or leave such files out."
    same = [one for one in tags if one.lower() == tag.lower()]
    edit = in_place(spot, {wanted: repr(same[0])}) if len(same) == 1 and isinstance(wanted, ast.Constant) else None
    if edit is None and owner.find(f".//{tag}") is not None and isinstance(wanted, ast.Constant):
        edit = in_place(spot, {wanted: repr(f".//{tag}")})
        cause += " It is deeper in it."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else advice)


def _element(node: ast.expr, spot: Spot) -> Any:
    """The element of an XML tree that a name, or a chain of `find`, stands for."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "find":
        owner = _element(node.func.value, spot)
        tag = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        return owner.find(tag) if owner is not None and isinstance(tag, str) else None
    value = lookup(node, spot)
    return value if type(value).__name__ == "Element" and type(value).__module__.startswith("xml.") else None
