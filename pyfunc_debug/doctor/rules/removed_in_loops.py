"""A list that loses elements while a loop goes over it: the loop misses the one behind each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding

NAMES = ("missed-element",)
_TAKES = ("remove", "pop")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loop of a body or a generator that ran."""
    told: set[tuple[str | None, int]] = set()
    for group in facts.lines_and_generators:
        node, function = group[0], facts.function(group[0])
        if function is None or not facts.calls_of(group).count:
            continue
        for loop, taken in _loops(function):
            if (node.file, loop.lineno) in told:
                continue
            told.add((node.file, loop.lineno))
            name, line = ast.unparse(loop.iter), taken.lineno
            yield Finding(
                NAMES[0], "error", node.id, (),
                f"the loop goes over {name} by places, and line {line} takes an element out of it: the next one moves "
                "to its place, and the loop goes on behind that. It misses the element behind each that is gone, and "
                f"{name} is shorter in the next pass",
                pastes.written(pastes.replaced(facts, node.file or "", {loop.iter: f"list({name})"})),
                node.file, loop.lineno, several(one.id for one in group),
                (f"line {line}: {facts.line(node.file, line)}",), "likely",
            )  # fmt: skip


def _loops(function: Definition) -> Iterator[tuple[ast.For, ast.stmt]]:
    """The loops over a name, and the statement in each that takes elements out of what it stands for."""
    for loop in code.own_nodes(function):
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, (ast.Name, ast.Attribute)):
            continue
        name = dotted(loop.iter)
        for block in _blocks(loop):
            for place, one in enumerate(block):
                ends = any(isinstance(each, (ast.Break, ast.Return)) for each in block[place + 1 :])
                if name and _takes(one, name) and not ends:
                    yield loop, one
                    break


def _blocks(loop: ast.For) -> Iterator[list[ast.stmt]]:
    """The blocks of a loop's body: its own, and those of the statements in it."""
    for one in [loop, *(each for part in loop.body for each in ast.walk(part))]:
        for name in ("body", "orelse") if one is not loop else ("body",):
            block = getattr(one, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _takes(statement: ast.stmt, name: str) -> bool:
    """Whether a statement is `rows.remove(row)`, `row = rows.pop(i)` or `del rows[i]`."""
    if isinstance(statement, ast.Delete):
        return any(isinstance(one, ast.Subscript) and dotted(one.value) == name for one in statement.targets)
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    called = value.func if isinstance(value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in _TAKES and dotted(called.value) == name
