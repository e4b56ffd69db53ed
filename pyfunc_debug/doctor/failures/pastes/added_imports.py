"""The import that a paste needs beside its lines, where the program has it not: one that imports Keras only."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Collection, Sequence

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of, read

MODULES = {
    "tf": "tensorflow", "np": "numpy", "keras": "keras", "math": "math", "functools": "functools",
    "threading": "threading", "os": "os", "asyncio": "asyncio", "zlib": "zlib",
}  # fmt: skip
"""Names that pastes have for modules."""
_STARS = ("tensorflow", "keras", "tf_keras", "numpy", "sklearn", "typing")
"""Packages whose `from ... import *` brings none of TensorFlow, NumPy and Python's own modules by these names."""
_IMPORTS = (ast.Import, ast.ImportFrom)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def with_imports(explanation: Explanation, situation: Situation) -> Explanation:
    """The explanation whose paste begins with the imports that it lacks. In a notebook another cell may have them."""
    edit = explanation.edit
    source = read(edit.file) if edit is not None else None
    if edit is None or source is None or not edit.lines:
        return explanation
    there = [spot for spot in situation.spots if spot.file == edit.file] or situation.spots
    missing = [
        _import(name) for name in lacking(source, edit.first, edit.lines)
        if not any(name in spot.module for spot in there)
    ]  # fmt: skip
    if not missing:
        return explanation
    edit = with_lines_above(missing, edit, source)
    if edit is None:
        return dataclasses.replace(explanation, advice=f"It needs: {'; '.join(missing)}.")
    return dataclasses.replace(explanation, edit=edit)


def with_lines_above(imports: Sequence[str], edit: Edit, source: Source) -> Edit | None:
    """An edit that begins with imports; None where none can stand there."""
    edit = _from_its_statement(source, edit)
    if not _begins_statement(source, edit):
        return None
    blanks = indent_of(edit.lines[0])
    lines = (*(f"{blanks}{one}" for one in imports), *edit.lines)
    if _is_method(source, edit):  # a name of a class is none of its methods'
        lines = (edit.lines[0], *(f"{blanks}    {one}" for one in imports), *edit.lines[1:])
    return dataclasses.replace(edit, lines=lines)


def lacking(source: Source, line: int, pasted: Sequence[str]) -> list[str]:
    """Names of modules, such as `tf`, that pasted lines read and a file does not have at the line they go to."""
    text = "\n".join(pasted)
    return [
        name for name in MODULES
        if re.search(rf"(?<![\w.\"'`]){name}\.[a-zA-Z_]", text) and not _bound(source, name, line)
        and not re.search(rf"^\s*{_import(name)}$", text, re.MULTILINE)
    ]  # fmt: skip


def _import(name: str) -> str:
    return f"import {MODULES[name]} as {name}" if MODULES[name] != name else f"import {name}"


def import_above(source: Source, file: str, names: Collection[str]) -> Edit | None:
    """The imports of such modules above a file's first one; None where it has none, or is a cell of a notebook.

    In a notebook another cell may have them.
    """
    lines = [
        one.lineno for one in source.tree.body
        if isinstance(one, _IMPORTS) and _root(one) != "__future__"
    ]  # fmt: skip
    if not names or not lines or not file.endswith(".py"):
        return None
    return Edit(file, lines[0], lines[0] - 1, tuple(map(_import, names)))


def _from_its_statement(source: Source, edit: Edit) -> Edit:
    """The edit with the lines of its statement above it, where it begins inside one that only does something."""
    statement = source.statement(edit.first)
    inside = statement is not None and statement.lineno < edit.first <= edit.last and not hasattr(statement, "body")
    if statement is None or not inside:
        return edit
    lines = (*source.lines[statement.lineno - 1 : edit.first - 1], *edit.lines)
    return dataclasses.replace(edit, first=statement.lineno, lines=lines)


def _bound(source: Source, name: str, line: int) -> bool:
    """Whether the file gives a name a meaning that a line has, or a star may."""
    for one in ast.walk(source.tree):
        inside = next((each for each in source.around(one) if isinstance(each, _FUNCTIONS)), None)
        if inside is not None and not inside.lineno < line <= (inside.end_lineno or line):
            continue  # a name of another function's own
        imported = [each.asname or each.name for each in one.names] if isinstance(one, _IMPORTS) else []
        if name in imported or (isinstance(one, ast.Import) and any(each.startswith(f"{name}.") for each in imported)):
            return True
        if imported == ["*"] and _root(one) not in _STARS:
            return True
        stored = isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id == name
        if stored or (isinstance(one, ast.arg) and one.arg == name):
            return True
    return not source.tree.body


def _root(node: ast.AST) -> str:
    """The package that a `from ... import` is of."""
    return str(getattr(node, "module", None) or "").partition(".")[0]


def _is_method(source: Source, edit: Edit) -> bool:
    statement = source.statement(edit.first)
    return isinstance(statement, ast.FunctionDef) and isinstance(source.parent(statement), ast.ClassDef)


def _begins_statement(source: Source, edit: Edit) -> bool:
    statement = source.statement(edit.first)
    decorators = getattr(statement, "decorator_list", ())
    if statement is not None and decorators and decorators[0].lineno == edit.first <= edit.last:
        return not isinstance(source.parent(statement), ast.ClassDef)
    if statement is None or edit.lines[0].lstrip().startswith("@"):
        return False
    return edit.last < edit.first or statement.lineno == edit.first
