"""What was drawn once, above a generator or a body, and is meant to be drawn for each element."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.draws.single_draws import draws_one
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding, Node

NAMES = ("same-draws",)
_LEAST = 5
"""Elements from which it is said."""
_ARGUMENTS = {"randint": 2, "uniform": 2, "random": 0, "rand": 0, "integers": 2, "randrange": 2}
"""Functions that draw one number, by how many arguments they have without a size."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a generator, and one a body."""
    for group in facts.lines:
        function = facts.function(group[0])
        if isinstance(function, ast.FunctionDef) and facts.calls_of(group).count >= _LEAST:
            yield from _in_body(facts, group, function)
    for node in facts.nodes.values():
        function = facts.function(node) if facts.is_generator(node) else None
        if not isinstance(function, ast.FunctionDef) or node.file is None:
            continue
        own = pastes.source(facts, node.file)
        yields = [one for one in code.own_nodes(function) if isinstance(one, ast.Yield) and one.value is not None]
        made = _made(own, function, yields[0]) if len(yields) == 1 else None
        count = _alike(facts, node) if made is not None else 0
        if made is not None and count >= _LEAST and code.is_random(_as_function(made.value), own.tree):
            yield _finding(facts, node, own, function, yields[0], made, count)


def _in_body(facts: Facts, group: Sequence[Node], function: ast.FunctionDef) -> Iterator[Finding]:
    """`x[top:top + 16]` with a `top` that the file drew once, as it was run."""
    node, own = group[0], pastes.source(facts, group[0].file)
    places = [
        part for one in code.own_nodes(function) if isinstance(one, (ast.Slice, ast.If, ast.IfExp))
        for part in ast.walk(one.test if isinstance(one, (ast.If, ast.IfExp)) else one) if isinstance(part, ast.Name)
    ]  # fmt: skip
    names = dict.fromkeys(one.id for one in places if one.id not in code.local_names(function))
    stored = Counter(one.id for one in pastes.walk(own.tree, ast.Name) if isinstance(one.ctx, ast.Store))
    drawn = [
        one for one in own.tree.body
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
        and one.targets[0].id in names and stored[one.targets[0].id] == 1 and draws_one(one.value, _ARGUMENTS)
    ]  # fmt: skip
    if not drawn or node.file is None:
        return
    listed = " and ".join(ast.unparse(one.targets[0]) for one in drawn)
    line = pastes.beginning(function)
    indent = " " * function.body[0].col_offset
    lines = tuple(f"{indent}{own.text(one)}" for one in drawn)
    fix = pastes.written(Edit(node.file, line, line - 1, lines)) if line is not None else ""
    count = facts.calls_of(group).count
    yield Finding(
        NAMES[0], "warning", node.id, (),
        f"{listed} {'was' if len(drawn) == 1 else 'were'} drawn once, as line {drawn[0].lineno} ran: all {count:,} "
        f"calls of {facts.name(node)} took the same", fix or "draw it in the body", node.file, drawn[0].lineno,
        several(one.id for one in group), (f"line {drawn[0].lineno}: {facts.line(node.file, drawn[0].lineno)}",),
    )  # fmt: skip


def _alike(facts: Facts, node: Node) -> int:
    """How many elements of a generator were recorded, where all of them are the same; else 0."""
    rows = facts.reader.rows(
        "SELECT v.position, count(*), count(DISTINCT v.digest), count(v.digest) FROM value v JOIN call c ON c.id = "
        "v.call WHERE c.node = ? AND c.kind = 'forward' AND v.role = 'output' GROUP BY v.position",
        (node.id,),
    )
    same = bool(rows) and all(kinds == 1 and count == known for _, count, kinds, known in rows)
    return min(count for _, count, *_ in rows) if same else 0


def _made(own: Source, function: Definition, given: ast.Yield) -> ast.Assign | None:
    """The statement above a generator that gives all names of its yield their values; None where there is not one."""
    local = code.local_names(function)
    names = {one.id for one in pastes.walk(given.value, ast.Name)}
    if not names or names & local or any(isinstance(one, ast.Call) for one in ast.walk(given)):
        return None
    found = [
        one for one in pastes.walk(own.tree, ast.Assign)
        if names & code.stored_names(one) and own.function(one.lineno) is not function
    ]  # fmt: skip
    if len(found) != 1 or not names <= code.stored_names(found[0]):
        return None
    loops = [one for one in own.around(found[0]) if isinstance(one, (ast.For, ast.While))]
    return None if loops else found[0]


def _as_function(value: ast.expr) -> ast.Lambda:
    """An expression as the body of a function without parameters, for who asks what a function does."""
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(args=empty, body=value), value)


def _finding(
    facts: Facts, node: Node, own: Source, function: ast.FunctionDef, given: ast.Yield, made: ast.Assign,
    count: int,
) -> Finding:  # fmt: skip
    statement = own.statement(given.lineno)
    indent = " " * (statement.col_offset if statement is not None else 0)
    fix = f"{own.text(made)}  # in {function.name}, above the yield"
    if statement is not None and made.lineno == made.end_lineno and node.file is not None:
        line = f"{indent}{own.text(made)}"
        fix = pastes.written(Edit(node.file, statement.lineno, statement.lineno - 1, (line,)))
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"all {count:,} elements of {function.name} are the same: what it yields was drawn once, in line "
        f"{made.lineno}, before it ran",
        fix, node.file, given.lineno, evidence=(f"line {made.lineno}: {facts.line(node.file, made.lineno)}",),
    )  # fmt: skip
