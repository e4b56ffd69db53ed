"""`ds.map(f)` as a statement: it gives a new dataset, which nothing keeps, and leaves `ds` as it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.by_text import Dropped, Program, chain
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import edited_lines
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding

NAMES = ("dropped-dataset",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a statement."""
    told = edited_lines(facts)
    for file, dropped in _dropped(facts):
        if (file, dropped.statement.lineno) not in told:
            yield _finding(facts, file, dropped)


def lines(facts: Facts) -> set[tuple[str, int]]:
    """Files and lines of these statements."""
    spans = ((file, one.statement.lineno, one.statement.end_lineno or 0) for file, one in _dropped(facts))
    return {(file, line) for file, first, last in spans for line in range(first, last + 1)}


def _dropped(facts: Facts) -> Iterator[tuple[str, Dropped]]:
    ran = {(loop["site"][0], loop["site"][1]) for loop in facts.meta.get("inputs") or [] if loop["site"]}
    ran |= {(frame.file, frame.line) for node in facts.nodes.values() for frame in node.stack}
    trees = {file: tree for file in facts.files if (tree := facts.tree(file)) is not None}
    if not any(chain(one) for tree in trees.values() for one in pastes.walk(tree, ast.Expr)):
        return
    program = Program(trees.values())
    for file, tree in trees.items():
        for one in program.dropped(tree):
            if program.ran(one.statement, {line for where, line in ran if where == file}) and program.is_read(one):
                yield file, one


def _finding(facts: Facts, file: str, dropped: Dropped) -> Finding:
    statement, name = dropped.statement, dropped.owner
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    lines = facts.source(file)[first - 1 : last]
    start = lines[0][: statement.col_offset]
    new = (f"{start}{name} = {lines[0][statement.col_offset :]}", *lines[1:])
    methods = [*dict.fromkeys(dropped.methods)]
    without = " and ".join([", ".join(methods[:-1]), methods[-1]] if len(methods) > 1 else methods)
    return Finding(
        NAMES[0], "warning", None, (),
        f"{dropped.text} gives a new dataset, which nothing keeps here: {name} itself stays as it was, without "
        f"this {without}",
        pastes.written(Edit(file, first, last, new)), file, first,
        evidence=(f"line {first}: {lines[0].strip()}",),
    )  # fmt: skip
