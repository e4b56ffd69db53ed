"""The dict that an image library gives, `transform(image=image)`, used as if it were the image in it."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import failed_node
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, read, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray, is_tensor, lookup

RULE = "body-input"
_USED = re.compile(
    r"unsupported operand type\(s\) for .*'dict'|\(<class 'dict'>\)|(?:not|got) '?dict\b|type dict\b"
    r"|'dict' object has no attribute '(?:astype|shape|reshape|dtype|mean|std|min|max|sum|ndim|size|transpose|numpy|"
    r"flatten|ravel|squeeze|tolist|tobytes|T)'|'dict'>? ?(?:to|as|is)"
)
_BY_NAME = re.compile(r"You have to pass data to augmentations as named arguments")
_TEXT = re.compile(r"(\d+)-th value returned by pyfunc_\d+ is string, but expects")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a name in the failing line is a dict with the value under a key that was asked for."""
    if _TEXT.search(situation.message):
        return _unpacked(situation)
    if _BY_NAME.search(situation.message):
        return _unnamed(situation)
    if not _USED.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        for name in dict.fromkeys(one.id for one in ast.walk(statement or ast.Pass()) if isinstance(one, ast.Name)):
            value = spot.variables.get(name)
            found = _taken(spot, name, value) if type(value) is dict and value else None
            if found is not None:
                return found
    return None


def _taken(spot: Spot, name: str, value: dict[Any, Any]) -> Explanation | None:
    """`name = call(image=image)["image"]`, where that is what the dict has an array or a tensor under."""
    statement, source = spot.statement, spot.source
    made = [
        one for one in (own_nodes(spot.function) if spot.function is not None else ())
        if isinstance(one, ast.Assign) and one.lineno < spot.line and dotted(one.targets[0]) == name
    ]  # fmt: skip
    call = made[-1].value if made and isinstance(made[-1].value, ast.Call) else None
    asked = [one.arg for one in call.keywords if one.arg in value] if call is not None else []
    keys = asked or (list(value) if len(value) == 1 else [])
    held = value.get(keys[0]) if keys else None
    if (
        call is None
        or statement is None
        or not isinstance(keys[0] if keys else None, str)
        or not (is_ndarray(held) or is_tensor(held))
    ):
        return None
    shown = ", ".join(repr(one) for one in list(value)[:3])
    cause = (
        f"{short(source.text(call.func), 30)} gives a dict with {shown}, and line {spot.line} takes {name} for what is "
        f"under {keys[0]!r}."
    )
    reads = [
        one for one in own_nodes(spot.function)
        if isinstance(one, ast.Subscript) and dotted(one.value) == name and isinstance(one.slice, ast.Constant)
    ] if spot.function is not None else []  # fmt: skip
    places: list[ast.expr] = [call] if not reads else [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    edit = edit_of(spot.file, source.replaced({one: f'{source.text(one)}["{keys[0]}"]' for one in places}))
    line = min(one.lineno for one in places)
    return Explanation(RULE, spot.file, line, cause, edit, "" if edit else f'Take {name}["{keys[0]}"].')


def _unnamed(situation: Situation) -> Explanation | None:
    """`transform(image)` of a library that takes its values by name."""
    for spot in reversed(situation.spots):
        statement = spot.statement
        for call in calls(statement) if statement is not None else ():
            given = call.args[0] if len(call.args) == 1 else None
            value = lookup(given, spot) if given is not None else None
            if given is None or call.keywords or not is_ndarray(value):
                continue
            text = spot.source.text
            outer = spot.source.parent(call)
            taken = "" if isinstance(outer, ast.Subscript) and outer.value is call else '["image"]'
            new = f"{text(call.func)}(image={text(given)}){taken}"
            cause = f"{short(text(call.func), 30)} takes its values by name, and gives a dict of them by these names."
            edit = edit_of(spot.file, spot.source.replaced({call: new}))
            return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {new}.", "likely")
    return None


def _unpacked(situation: Situation) -> Explanation | None:
    """`image, mask = transform(image=image, mask=mask)`: a dict that is taken apart gives its keys."""
    node = failed_node(situation)
    function = node.function() if node is not None else None
    if node is None or node.file is None or function is None or isinstance(function, ast.Lambda):
        return None
    source = read(node.file)
    for one in own_nodes(function):
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if not isinstance(target, ast.Tuple) or not isinstance(one, ast.Assign) or not isinstance(one.value, ast.Call):
            continue
        given = [word.arg for word in one.value.keywords if word.arg is not None]
        if one.value.args or len(given) != len(target.elts) or len(given) != len(one.value.keywords):
            continue
        out, indent = source.unused_name("out"), indent_of(source.lines[one.lineno - 1])
        parts = ", ".join(f'{out}["{key}"]' for key in given)
        lines = (f"{indent}{out} = {source.text(one.value)}", f"{indent}{source.text(target)} = {parts}")
        names = " and ".join(map(source.text, target.elts))
        cause = (
            f"{short(source.text(one.value.func), 30)} gives a dict by the names that it is given, and a dict that is "
            f"taken apart gives its keys: {names} are text."
        )
        edit = Edit(node.file, one.lineno, one.end_lineno or one.lineno, lines)
        return Explanation(RULE, node.file, one.lineno, cause, edit, "", "likely")
    return None
