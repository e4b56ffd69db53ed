"""A list that an object or a dict keeps, `self.clouds[split]`, and that nothing was put into: which line would have.

`empty_lists` tells of a list of the function's own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.bodies.empty_lists import asks_for_elements
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short

_FILLS = {"append", "extend", "insert", "add", "appendleft"}
_EMPTIES = {"pop", "popleft", "clear", "remove"}
_AROUND = {"enumerate", "list", "sorted", "reversed", "tqdm", "tqdm.tqdm", "len", "range", "tuple"}
_DEEPEST = 3
_WIDTH = 44


@dataclass(frozen=True)
class _Filler:
    """A line that puts something into a list: its file's text, the statement or call, and the list as it is named."""

    source: Source
    node: ast.AST
    owner: ast.expr


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line asks a kept list of none for one of its elements."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data or not asks_for_elements(situation.message):
        return None
    asked = [one for one in ast.walk(statement) if isinstance(one, (ast.Attribute, ast.Subscript))]
    empty = {ast.unparse(one): one for one in asked if _is_empty(origins.kept(one, spot))}
    if len(empty) != 1:
        return None
    node: ast.expr = next(iter(empty.values()))
    cause, told = f"{_shown(node, spot)} is empty, and line {spot.line} asks it for an element.", ""
    for deep in range(_DEEPEST):
        fillers = list(_fillers(node, situation))
        if len(fillers) != 1 or _is_emptied(node, situation, fillers[0]):
            break
        said, inner, told = _filled(fillers[0], node, spot)
        cause += said.replace(" fills it", " fills that") if deep else said
        if inner is None:
            break
        node = inner
    advice = (
        "Nothing came that far: correct the condition, or what it looks at." if told else "Look why it has none then."
    )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _is_empty(value: Any) -> bool:
    return type(value) in (list, tuple, dict) and not value


def _shown(node: ast.expr, spot: Spot) -> str:
    """`self.clouds['validation']` of `self.clouds[split]`."""
    if isinstance(node, ast.Subscript):
        key = origins.shown(origins.kept(node.slice, spot))
        return f"{_shown(node.value, spot)}[{key or spot.source.text(node.slice)}]"
    return spot.source.text(node)


def _filled(filler: _Filler, node: ast.expr, spot: Spot) -> tuple[str, ast.expr | None, str]:
    """What is said of the line that fills a list; the list that its loop is over, if that is empty; and a condition."""
    line = getattr(filler.node, "lineno", 0)
    test = _chooses(filler, node, spot)
    if test is None:
        inside = [
            one for one in filler.source.around(filler.node) if isinstance(one, (ast.If, ast.For, ast.FunctionDef))
        ]
        first = inside[0] if inside else None
        if isinstance(first, ast.For):
            walked = _walked(first.iter)
            if dotted(walked) != "" or isinstance(walked, ast.Subscript):
                value = origins.kept(walked, spot)
                said = f" Line {line} fills it in a loop over {_shown(walked, spot)}"
                return (f"{said}, which is empty, too.", walked, "") if _is_empty(value) else (f"{said}.", None, "")
        test = first.test if isinstance(first, ast.If) and _in_body(first, filler) else None
    if test is None:
        return f" Line {line} fills it.", None, ""
    text = short(filler.source.text(test), _WIDTH)
    known = origins.listed([one for one in origins.parts(test, spot) if "." in one[0]][:2])  # names may be others there
    where = f" (line {test.lineno})" if test.lineno + 1 != line else ""
    return f" Line {line} fills it, if `{text}`{where}{f': {known}' if known else ''}.", None, text


def _in_body(block: ast.If, filler: _Filler) -> bool:
    return any(part is filler.node for one in block.body for part in ast.walk(one))


def _chooses(filler: _Filler, node: ast.expr, spot: Spot) -> ast.expr | None:
    """The condition under which the key of a filling line is the one that is asked for."""
    if not isinstance(node, ast.Subscript) or not isinstance(filler.owner, ast.Subscript):
        return None
    wanted, name = origins.kept(node.slice, spot), dotted(filler.owner.slice)
    if not origins.is_plain(wanted):
        return None
    function = _function(filler.source, filler.node)
    tests = [
        block.test for block in (ast.walk(function) if function is not None else ()) if isinstance(block, ast.If)
        for one in block.body if isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [name]
        and isinstance(one.value, ast.Constant) and one.value.value == wanted
    ]  # fmt: skip
    return tests[0] if name and len(tests) == 1 else None


def _walked(node: ast.expr) -> ast.expr:
    """`rows` of `enumerate(rows)` and of `range(len(rows))`."""
    while isinstance(node, ast.Call) and dotted(node.func) in _AROUND and len(node.args) == 1:
        node = node.args[0]
    return node


def _owner(node: ast.expr) -> str:
    """`self.clouds` of `self.clouds[split]`, with a mark for the key."""
    return f"{_owner(node.value)}[]" if isinstance(node, ast.Subscript) else dotted(node)


def _changed(wanted: str, situation: Situation, methods: set[str]) -> Iterator[_Filler]:
    for _, source in situation.sources():
        for one in ast.walk(source.tree):
            func = one.func if isinstance(one, ast.Call) else None
            if isinstance(func, ast.Attribute) and func.attr in methods and _owner(func.value) == wanted:
                yield _Filler(source, one, func.value)


def _fillers(node: ast.expr, situation: Situation) -> Iterator[_Filler]:
    """The lines that put something into a list, or into one of its kind."""
    wanted = _owner(node)
    yield from _changed(wanted, situation, _FILLS)
    for _, source in situation.sources():
        for one in ast.walk(source.tree):
            if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and _owner(one.target) == wanted:
                yield _Filler(source, one, one.target)


def _is_emptied(node: ast.expr, situation: Situation, filler: _Filler) -> bool:
    """Whether some line takes elements out again, or begins a new list apart from where it is made and filled."""
    wanted = _owner(node)
    if any(True for _ in _changed(wanted, situation, _EMPTIES)):
        return True
    fills = _function(filler.source, filler.node)
    for _, source in situation.sources():
        for one in ast.walk(source.tree):
            if isinstance(one, ast.Assign) and wanted in map(_owner, one.targets):
                makes = _function(source, one)
                if makes is not None and makes is not fills and makes.name != "__init__":
                    return True
    return False


def _function(source: Source, node: ast.AST) -> ast.FunctionDef | None:
    return next((one for one in source.around(node) if isinstance(one, ast.FunctionDef)), None)
