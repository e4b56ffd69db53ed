"""An index beyond a text, as `s[i + 1]` of its last character, or of a text that is empty."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.callables import called
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

_SAID = "string index out of range"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one index of the failing line of a body or a generator is beyond its text."""
    spot, statement = situation.last, situation.statement
    if not situation.data or spot is None or statement is None or _SAID not in situation.message:
        return None
    found = list(_beyond(statement, spot))
    if len(found) != 1:
        return None
    asked, index, size = found[0]
    text = spot.source.text
    owner, place = short(text(asked.value), 30), short(text(asked.slice), 30)
    many = f"{size} character{'' if size == 1 else 's'}" if size else "no character"
    told = "" if isinstance(asked.slice, ast.Constant) else f", and {place} is {index}"
    cause = f"{owner} has {many}{told}: `{short(text(asked), 40)}` asks for one that is not there."
    test = f"{place} < len({owner})" if index >= 0 else f"len({owner}) >= {-index}"
    advice = f"Test `{test}` before"
    empty = _empty(situation, spot, asked.value)
    if empty is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"{advice} it is asked for.")
    outer, name = empty
    if outer is not spot:
        cause += f" Line {outer.line} gave {name} for it, an empty text of the data."
    leave, node = "return what stands for it", outer.statement
    loops = [one for one in outer.source.around(node) if isinstance(one, ast.For)] if node is not None else []
    if loops and name in [one.id for one in ast.walk(loops[0]) if isinstance(one, ast.Name)]:
        leave = "continue"
    advice += f", or leave empty texts out: `if not {name}: {leave}` above line {outer.line}."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _beyond(statement: ast.stmt, spot: Spot) -> Iterator[tuple[ast.Subscript, int, int]]:
    """The indices of a line that are beyond the text they are asked of; those of what stands below its header not."""
    header = statement.test if isinstance(statement, (ast.If, ast.While)) else statement
    seen = set()
    for one in ast.walk(header):
        if not isinstance(one, ast.Subscript) or isinstance(one.slice, ast.Slice):
            continue
        owner, index = lookup(one.value, spot), _number(one.slice, spot)
        if isinstance(owner, (str, bytes)) and index is not None and not -len(owner) <= index < len(owner):
            if ast.unparse(one) not in seen:
                yield one, index, len(owner)
            seen.add(ast.unparse(one))


def _number(node: ast.expr, spot: Spot) -> int | None:
    """The value of `3`, `i` and `i + 1`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _number(node.left, spot), _number(node.right, spot)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left - right
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand, spot)
        return None if value is None else -value
    found = node.value if isinstance(node, ast.Constant) else lookup(node, spot)
    return found if type(found) is int else None


def _empty(situation: Situation, spot: Spot, owner: ast.expr) -> tuple[Spot, str] | None:
    """The empty text that was asked, or that the call in the frame around gave for it: where, and its name."""
    if not isinstance(owner, ast.Name):
        return None
    outer, function = situation.outer(spot), spot.function
    if isinstance(function, ast.FunctionDef) and owner.id in parameters(function) and outer is not None:
        place, node = parameters(function).index(owner.id), outer.statement
        made = [one for one in calls(node) if called(one) == function.name] if node is not None else []
        given = argument(made[0], place, owner.id) if len(made) == 1 else None
        if isinstance(given, ast.Name) and _is_empty(outer.value(given.id)):
            return outer, given.id
    return (spot, owner.id) if _is_empty(spot.value(owner.id)) else None


def _is_empty(value: object) -> bool:
    return isinstance(value, (str, bytes)) and not value
