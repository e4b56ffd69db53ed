"""Batches that a generator collects in lists: lists that are never emptied, or are made new for each row."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of, names
from pyfunc_debug.doctor.generators.batches import Batches, Seen
from pyfunc_debug.doctor.text import listed

_LONGEST = 24
"""Lines that are pasted."""
_EMPTIES = {"clear", "pop", "popleft", "remove"}
_SHOWN = 4
_Loop = (ast.For, ast.While)


def grown(facts: Facts, batches: Batches) -> Seen | None:
    """Each batch has more rows than the one before: its lists are filled, yielded, and filled on."""
    rows, yields = batches.rows, batches.yields
    if len(yields) != 1 or not all(one < other or other == rows[0] for one, other in itertools.pairwise(rows)):
        return None
    if not rows[0] < rows[1] < rows[2]:
        return None  # one row, in each of several passes
    own, statement = pastes.source(facts, batches.file), yields[0]
    lists = kept_lists(own, batches.function, statement)
    if not lists:
        return None
    indent = indent_of(own.lines[statement.lineno - 1])
    end = statement.end_lineno or statement.lineno
    lines = tuple(f"{indent}{name} = []" for name in lists)
    first_pass = rows[: rows.index(rows[0], 1)] if rows[0] in rows[1:] else rows
    shown = ", ".join(map(str, first_pass[:_SHOWN]))
    several = len(lists) > 1
    return Seen(
        f"the batches of {batches.function.name} grow: they have {shown} ... rows. {listed(lists)} "
        f"{'are' if several else 'is'} filled on behind the yield in line {statement.lineno}, so that each batch holds "
        "all rows of those before it",
        pastes.written(Edit(batches.file, end + 1, end, lines)), statement.lineno,
    )  # fmt: skip


def kept_lists(own: Source, function: ast.FunctionDef, statement: ast.stmt, outer: bool = True) -> list[str]:
    """The lists that a generator fills, yields, and does not empty: in no loop around, or not in the innermost."""
    loops = [one for one in own.around(statement) if isinstance(one, _Loop)][: None if outer else 1]
    inside = {id(part) for loop in loops for part in ast.walk(loop)}
    stored = {name for one in ast.walk(function) if id(one) in inside for name in _emptied(one)}
    read = _read(own.block(statement), statement)
    return [name for name in filled_lists(function) if name in read and name not in stored]


def single(facts: Facts, batches: Batches) -> Seen | None:
    """Each batch has one row: its lists are made new for each row, and yielded as a counter is full."""
    if set(batches.rows) != {1} or len(batches.yields) != 1:
        return None
    own, statement = pastes.source(facts, batches.file), batches.yields[0]
    around = list(own.around(statement))
    asked = next((one for one in around if isinstance(one, ast.If)), None)
    loop = own.parent(asked) if asked is not None else None
    if asked is None or not isinstance(loop, ast.For) or asked not in loop.body:
        return None
    before = loop.body[: loop.body.index(asked)]
    filled = [name for one in before if isinstance(one, ast.Expr) for name in _appended(one.value)]
    new = [one for one in before if _makes_lists(one) and set(_targets(one)) <= set(filled)]
    lists = [name for one in new for name in _targets(one)]
    if not lists or not set(lists) <= _read(own.block(statement), statement) or len(filled) != len(set(filled)):
        return None
    counts = {
        name
        for one in before
        if isinstance(one, ast.AugAssign)
        for name in names(one.target)
        if name in names(asked.test)
    }
    if not counts:
        return None
    outer: ast.stmt = loop
    for one in around:
        if isinstance(one, _Loop) and one is not loop and not counts & _assigned(one.body):
            outer = one
    fix = _made_before(own.lines, batches.file, outer, loop, new, statement)
    return Seen(
        f"the batches of {batches.function.name} have one row each: line{'s' * (len(new) > 1)} "
        f"{listed([one.lineno for one in new])} make{'s' * (len(new) == 1)} {listed(lists)} new for each turn of the "
        f"loop in line {loop.lineno}, and the yield in line {statement.lineno} gives what the last turn put there",
        fix or f"make {listed(lists)} above the loop, and again behind the yield", new[0].lineno,
    )  # fmt: skip


def _made_before(
    lines: Sequence[str], file: str, outer: ast.stmt, loop: ast.For, new: list[ast.stmt], given: ast.stmt
) -> str:
    """The loop with its lists made above it, and again behind the yield."""
    first, last = outer.lineno, given.end_lineno or given.lineno
    gone = {number for one in new for number in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    texts = [lines[one.lineno - 1].strip() for one in new]
    if (
        last - first > _LONGEST
        or any(one.lineno != one.end_lineno for one in new)
        or loop.body[0].lineno == loop.lineno
    ):
        return ""
    begin, behind = (indent_of(lines[one - 1]) for one in (first, given.lineno))
    kept = [lines[number - 1] for number in range(first, last + 1) if number not in gone]
    return pastes.written(
        Edit(file, first, last, (*(begin + one for one in texts), *kept, *(behind + one for one in texts)))
    )


def filled_lists(function: ast.FunctionDef) -> list[str]:
    """Names of lists that a function makes empty, and appends to."""
    own = list(code.own_nodes(function))
    made = {name for one in own if isinstance(one, ast.stmt) and _makes_lists(one) for name in _targets(one)}
    return [name for name in dict.fromkeys(name for one in own for name in _appended(one)) if name in made]


def _appended(node: ast.AST) -> list[str]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "append":
        return []
    return [node.func.value.id] if isinstance(node.func.value, ast.Name) else []


def _makes_lists(statement: ast.stmt) -> bool:
    """`a = []`, `a, b = [], []`, `a = list()`."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return bool(parts) and all(
        (isinstance(one, ast.List) and not one.elts) or (isinstance(one, ast.Call) and ast.unparse(one) == "list()")
        for one in parts
    )


def _targets(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _emptied(node: ast.AST) -> set[str]:
    """Names that a node gives another value, or takes something out of."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return {node.id}
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return {code.root(node) or ""}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EMPTIES:
        return {code.root(node.func.value) or ""}
    return set()


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Names that statements give a value, but not those inside of loops and branches."""
    return {name for one in body for name in _targets(one)}


def _read(block: list[ast.stmt] | None, given: ast.stmt) -> set[str]:
    """The names that a yield gives, and those that its block makes them of."""
    found = set(names(given.value)) if isinstance(given, (ast.Expr, ast.Assign)) else set()
    for one in reversed(block or []):
        if isinstance(one, ast.Assign) and set(_targets(one)) & found:
            found |= set(names(one.value))
    return found
