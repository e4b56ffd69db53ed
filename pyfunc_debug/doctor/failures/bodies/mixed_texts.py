"""A text beside a number: `"part_" + i`, `x * config["scale"]` of a file's texts, `np.eye(3)[label]` of bytes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, decoded, is_ndarray

_SAID = re.compile(
    r"can only concatenate str \(not \"(?!bytes)[\w.]+\"\) to str|can't multiply sequence by non-int"
    r"|unsupported operand type\(s\) for \S+ '(?:\w+\.)?(?:str|int|float)\w*' and '(?:\w+\.)?(?:str|int|float)\w*'"
    r"|ufunc '\w+' did not contain a loop with signature matching types .*dtype\('<U"
    r"|not supported between instances of '(?:str' and '(?:\w+\.)?(?:int|float)\w*"
    r"|(?:\w+\.)?(?:int|float)\w*' and 'str)'"
)
_INDEX = "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays"
_LITERAL = re.compile(r"invalid literal for int\(\) with base 10: b?'|could not convert string to float: b?'")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_WIDTH = 40


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator computes with a text, or asks by one."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data:
        return None
    if situation.kind == "IndexError" and _INDEX in situation.message:
        return _index(spot, statement)
    if _LITERAL.search(situation.message):
        return _literal(spot, statement)
    if not _SAID.search(situation.message):
        return None
    pieces = _pieces(spot, statement)
    edit = in_place(spot, pieces)
    if edit is None:
        return None
    node, new = next(iter(pieces.items()))
    value = origins.valued(node, spot)
    name = short(spot.source.text(node), _WIDTH)
    if new.startswith("str("):
        cause = f"{name} is {origins.shown(value)}, a number, and + puts it behind a text: str makes a text of it."
    else:
        kind = new.partition("(")[0]
        cause = f"{name} is {origins.shown(value)}, a text, and the line computes with it: {kind} makes a number of it."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")


def _pieces(spot: Spot, statement: ast.stmt) -> dict[ast.expr, str]:
    """What stands beside a value of the other kind, and what makes it of that kind."""
    found: dict[ast.expr, str] = {}
    for left, sign, right in _operations(statement):
        one, other = origins.valued(left, spot), origins.valued(right, spot)
        number = other if isinstance(one, str) else one
        if isinstance(one, str) == isinstance(other, str):
            continue
        text_node, number_node = (left, right) if isinstance(one, str) else (right, left)
        text = one if isinstance(one, str) else other
        maker = _maker(text)
        inside = any(each in found for each in ast.walk(number_node))
        if maker and (inside or _is_number(number)) and not isinstance(text_node, ast.Constant):
            found[text_node] = f"{maker}({spot.source.text(text_node)})"
        elif sign is ast.Add and _is_number(number) and not is_ndarray(number):
            found[number_node] = f"str({spot.source.text(number_node)})"
    return found


def _operations(statement: ast.stmt) -> Iterator[tuple[ast.expr, type[ast.AST], ast.expr]]:
    """The sides of what a line computes and compares, the innermost first."""
    every: list[tuple[ast.expr, type[ast.AST], ast.expr]] = []
    for one in ast.walk(statement):
        if isinstance(one, ast.BinOp) and not isinstance(one.op, ast.Mod):
            every.append((one.left, type(one.op), one.right))
        elif isinstance(one, ast.Compare) and len(one.ops) == 1:
            every.append((one.left, type(one.ops[0]), one.comparators[0]))
        elif isinstance(one, ast.AugAssign):
            every.append((_loaded(one.target), type(one.op), one.value))
    yield from reversed(every)


def _loaded(target: ast.expr) -> ast.expr:
    """What an assignment's target holds before it."""
    return ast.copy_location(ast.Name(target.id, ast.Load()), target) if isinstance(target, ast.Name) else target


def _maker(text: Any) -> str:
    """What makes a number of a text: "int", "float"; "" where it is none."""
    if isinstance(text, str):
        for kind in (int, float):
            with suppress(ValueError):
                kind(text)
                return kind.__name__
    return ""


def _is_number(value: Any) -> bool:
    return origins.number(value) is not None or (is_ndarray(value) and value.dtype.kind in "biuf")


def _literal(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`int("1.0")`, `float("1,250")` and `int("85%")`."""
    for call in calls(statement):
        kind = dotted(call.func)
        if kind not in ("int", "float") or len(call.args) != 1 or call.keywords:
            continue
        value = origins.valued(call.args[0], spot)
        text = decoded(value)
        if not isinstance(text, str) or _maker(text) in ("int", kind):
            continue
        asked = spot.source.text(call.args[0])
        shown = f"{short(asked, _WIDTH)} is {origins.shown(value)}"
        if _maker(text) == "float":
            edit = in_place(spot, {call.args[0]: f"float({asked})"})
            cause = (
                f"{shown}, and int takes a text of digits alone. float reads it, and int cuts what is behind the point."
            )
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
        way = next((way for way, made in _ways(text) if _maker(made) in ("int", kind)), "")
        if way and isinstance(value, str):
            edit = in_place(spot, {call.args[0]: f"{spot.source.atom(call.args[0])}{way}"})
            return Explanation(
                RULE,
                spot.file,
                spot.line,
                f"{shown}, which is more than a number: {way} takes the rest off.",
                edit,
                "",
                "likely",
            )
    return None


def _ways(text: str) -> Iterator[tuple[str, str]]:
    """What is behind a text to make a number of it, and what it gives."""
    yield '.replace(",", "")', text.replace(",", "")
    yield '.replace(",", ".")', text.replace(",", ".")
    found = _NUMBER.search(text)
    if found is None:
        return
    before, behind = text[: found.start()].strip(), text[found.end() :].strip()
    if before and not behind and not any(one.isalnum() for one in before):
        yield f".lstrip({before!r})", text.lstrip(before)
    if behind and not before and len(behind) < 4:
        yield f".removesuffix({behind!r})", text.removesuffix(behind)


def _index(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`np.eye(3)[label]` of a text."""
    for one in ast.walk(statement):
        if not isinstance(one, ast.Subscript) or isinstance(one.slice, (ast.Slice, ast.Tuple, ast.Constant)):
            continue
        value = origins.valued(one.slice, spot)
        text = decoded(value)
        if not isinstance(text, str):
            continue
        name = short(spot.source.text(one.slice), _WIDTH)
        if _maker(text) != "int":
            cause = f"{name} is {text!r}, a text, and an array is asked by the number of a place."
            return Explanation(
                RULE, spot.file, spot.line, cause, None, f"Ask a dict or a list of the names which number {text!r} has."
            )
        edit = in_place(spot, {one.slice: f"int({spot.source.text(one.slice)})"})
        cause = (
            f"{name} is {origins.shown(value)}, a text, and an array is asked by the number of a place: int makes one."
        )
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write int({name}).", "likely")
    return None
