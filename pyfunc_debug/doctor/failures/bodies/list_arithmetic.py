"""Arithmetic with a list or a tuple, as if it were an array: `1 - dones`, `rewards / 5`, `values * 0.5`."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup

_KINDS = r"'(?:int|float|list|tuple|numpy\.\w+)'"
_SAID = re.compile(
    rf"unsupported operand type\(s\) for (?:[-+*/%]|//|\*\* or pow\(\))=?: {_KINDS} and {_KINDS}"
    rf"|can't multiply sequence by non-int of type {_KINDS}|bad operand type for unary -: '(?:list|tuple)'"
    r"|can only concatenate (?:list|tuple) \(not \"(?:int|float|numpy\.\w+)\""
)
_LARGEST = 100_000


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line computes with lists of numbers that a name holds."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind != "TypeError" or not _SAID.search(situation.message):
        return None
    sides: list[ast.expr] = []
    for one in ast.walk(statement):
        if isinstance(one, ast.BinOp):
            sides += [one.left, one.right]
        elif isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub):
            sides.append(one.operand)
        elif isinstance(one, ast.AugAssign):
            sides.append(one.value)
    found = [one for one in sides if isinstance(one, (ast.Name, ast.Attribute)) and _numbers(one, spot)]
    if not found:
        return None
    np = alias(spot, "numpy")
    texts = list(dict.fromkeys(spot.source.text(one) for one in found))
    kinds = {type(lookup(one, spot)).__name__ for one in found}
    named = " and ".join(texts) if len(texts) < 3 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    what = (
        f"is a {kinds.pop()}"
        if len(texts) == 1
        else f"are {kinds.pop()}s"
        if len(kinds) == 1
        else "are lists or tuples"
    )
    cause = f"{short(named, 60)} {what} of Python's, which does not compute with its elements. An array does."
    pieces: dict[ast.expr, str] = {one: f"{np}.array({spot.source.text(one)})" for one in found}
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    if np == "numpy" and spot.value("numpy") is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Make it one: numpy.array({texts[0]}).")
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _numbers(node: ast.expr, spot: Spot) -> bool:
    """Whether it is a list or a tuple of numbers, arrays or lists of these."""
    value: Any = lookup(node, spot) if dotted(node) else None
    if type(value) not in (list, tuple) or not 0 < len(value) <= _LARGEST:
        return False
    return all(
        type(one) in (int, float, bool, list, tuple) or type(one).__module__ == "numpy"
        or type(one).__name__ == "EagerTensor" for one in value
    )  # fmt: skip
