"""Lines that go above the first statement of a function whose body stands behind its colon: `def f(x): return x`."""

from __future__ import annotations

import ast
from dataclasses import replace

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of, parameters, parsed, read


def opened(explanation: Explanation) -> Explanation:
    """An explanation whose lines go into such a function, which then has its body below; else as it is.

    Above its line they would be outside of the function, where its parameters have no values.
    """
    edit = explanation.edit
    if edit is None or edit.last >= edit.first or not edit.lines:
        return explanation
    source = read(edit.file)
    function = _on_line(source, edit.first)
    if function is None or not _are_for(function, edit):
        return explanation
    text = source.lines[edit.first - 1].encode()
    column = function.body[0].col_offset
    head, rest = text[:column].decode().rstrip(), text[column:].decode()
    inside = f"{indent_of(head)}    "
    own = [f"{inside}{line.removeprefix(indent_of(head))}" for line in edit.lines]
    last = max(one.end_lineno or one.lineno for one in function.body)
    more = source.lines[edit.first : last]  # of a statement that goes on below
    return replace(explanation, edit=Edit(edit.file, edit.first, last, (head, *own, f"{inside}{rest}", *more)))


def _on_line(source: Source, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function whose body begins on a line of its header."""
    found = [
        one for one in ast.walk(source.tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
        and one.lineno == line == one.body[0].lineno
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _are_for(function: ast.FunctionDef | ast.AsyncFunctionDef, edit: Edit) -> bool:
    """Whether lines read the function's parameters, or say which names of others it changes."""
    cut = len(indent_of(edit.lines[0]))
    tree = parsed("\n".join(line[cut:] for line in edit.lines)).tree
    names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    words = any(isinstance(one, (ast.Global, ast.Nonlocal)) for one in ast.walk(tree))
    return words or bool(names & set(parameters(function)))
