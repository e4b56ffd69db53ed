"""`ds.map(f)` as a statement: it gives a new dataset, which nothing keeps, and leaves `ds` as it was."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.datasets.dropped import METHODS
from pyfunc_debug.doctor.failures.kept import edited_lines
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding

NAMES = ("dropped-dataset",)
_DATASET = re.compile(r"\bDataset\b|\.data\.\w|_dataset_from_directory\(|TFRecordDataset")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a statement."""
    told = edited_lines(facts)
    for file, statement, name, method in _dropped(facts):
        if (file, statement.lineno) not in told:
            yield _finding(facts, file, statement, name, method)


def lines(facts: Facts) -> set[tuple[str, int]]:
    """Files and lines of these statements."""
    spans = ((file, one.lineno, one.end_lineno or one.lineno) for file, one, _, _ in _dropped(facts))
    return {(file, line) for file, first, last in spans for line in range(first, last + 1)}


def _dropped(facts: Facts) -> Iterator[tuple[str, ast.Expr, str, str]]:
    if not facts.meta.get("inputs") and not any(one.kind == "tf.data" for one in facts.functions.values()):
        return
    ran = {(loop["site"][0], loop["site"][1]) for loop in facts.meta.get("inputs") or [] if loop["site"]}
    ran |= {(frame.file, frame.line) for node in facts.nodes.values() for frame in node.stack}
    for file in facts.files:
        tree = facts.tree(file)
        shown = tree.body[-1] if tree is not None else None  # a notebook prints what a cell ends with
        for statement in pastes.walk(tree, ast.Expr):
            call = statement.value
            method = call.func if isinstance(call, ast.Call) else None
            owner = method.value if isinstance(method, ast.Attribute) and method.attr in METHODS else None
            if statement is shown or not isinstance(owner, ast.Name) or not _ran(facts, file, statement, ran):
                continue
            if _is_dataset(facts, file, owner):
                yield file, statement, owner.id, method.attr  # type: ignore[union-attr]


def _ran(facts: Facts, file: str, statement: ast.Expr, ran: set[tuple[str, int]]) -> bool:
    """Whether a statement is the file's own, or stands in a function of which another line is known to have run."""
    around = pastes.around(facts.tree(file), statement.lineno, ast.FunctionDef)[-1:]
    spans = [(one.lineno, one.end_lineno or one.lineno) for one in around]
    return all(any(where == file and first <= line <= last for where, line in ran) for first, last in spans)


def _finding(facts: Facts, file: str, statement: ast.Expr, name: str, method: str) -> Finding:
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    lines = facts.source(file)[first - 1 : last]
    start = lines[0][: statement.col_offset]
    new = (f"{start}{name} = {lines[0][statement.col_offset :]}", *lines[1:])
    return Finding(
        NAMES[0], "warning", None, (),
        f"{name}.{method}(...) gives a new dataset, which nothing keeps here: {name} itself stays as it was, without "
        f"this {method}",
        pastes.written(Edit(file, first, last, new)), file, first,
        evidence=(f"line {first}: {lines[0].strip()}",),
    )  # fmt: skip


def _is_dataset(facts: Facts, file: str, name: ast.Name) -> bool:
    """Whether every value that the scope of a line gives to a name is a dataset by its text."""
    tree = facts.tree(file)
    scopes = pastes.around(tree, name.lineno, ast.FunctionDef)[-1:]
    scope: ast.AST | None = scopes[0] if scopes else tree
    values = [
        one.value for one in pastes.walk(scope, ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == name.id for target in one.targets)
    ]  # fmt: skip
    own = [one for one in values if not any(isinstance(x, ast.Name) and x.id == name.id for x in ast.walk(one))]
    return bool(own) and all(_DATASET.search(ast.unparse(one)) for one in own)
