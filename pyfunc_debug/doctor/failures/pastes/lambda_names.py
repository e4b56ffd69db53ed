"""Lambdas inside lambdas of a paste, or beside others: AutoGraph tells them apart by the names of their parameters.

Source: TensorFlow's autograph/pyct/parser.py, "found multiple definitions with identical signatures at the location":
of two on a line it warns, and runs the outer one as it is.
"""

from __future__ import annotations

import ast
import dataclasses

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, applied
from pyfunc_debug.doctor.failures.reading.source import Source, parameters, read


def distinct(explanation: Explanation) -> Explanation:
    """The explanation whose pasted lambdas have parameters of other names than those around them, and before them."""
    edit = explanation.edit
    source = read(edit.file) if edit is not None else None
    if edit is None or source is None or sum(line.count("lambda") for line in edit.lines) < 2:
        return explanation
    written = Source(applied([edit], source.lines))
    last = edit.first + len(edit.lines) - 1
    before = "\n".join(source.lines[edit.first - 1 : edit.last])
    pieces: dict[ast.expr, str] = {}
    beside: list[ast.Lambda] = []
    for one in ast.walk(written.tree):
        if not isinstance(one, ast.Lambda) or not edit.first <= one.lineno <= last:
            continue
        around = [outer for outer in written.around(one) if isinstance(outer, ast.Lambda)]
        if not around and written.text(one) not in before:
            around = [other for other in beside if other.lineno == one.lineno]
            beside.append(one)
        if parameters(one) and any(parameters(outer) == parameters(one) for outer in around):
            pieces |= _renamed(one, written)
    if not pieces:
        return explanation
    lines = written.spliced(pieces, edit.first, last)
    return dataclasses.replace(explanation, edit=dataclasses.replace(edit, lines=lines))


def _renamed(one: ast.Lambda, source: Source) -> dict[ast.expr, str]:
    """A lambda's parameters with new names, where they are given and where they are read."""
    inner = [other for other in ast.walk(one.body) if isinstance(other, ast.Lambda)]
    hidden = {name for other in inner for name in parameters(other)}
    taken = {part.id for part in ast.walk(source.tree) if isinstance(part, ast.Name)}
    if hidden & set(parameters(one)) or one.args.defaults:
        return {}
    new = {
        name: next(text for text in (f"{name}_value", f"{name}_given") if text not in taken) for name in parameters(one)
    }
    places: list[ast.AST] = [*one.args.args, *(part for part in ast.walk(one.body) if isinstance(part, ast.Name))]
    return {
        place: new[name]  # type: ignore[misc]
        for place in places
        if (name := getattr(place, "arg", None) or getattr(place, "id", "")) in new
    }
