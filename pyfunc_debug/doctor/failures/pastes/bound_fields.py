"""What a paste binds where `self.x` was read as a name: `lambda self.x: f(self.x)` becomes `lambda x: f(x)`."""

from __future__ import annotations

import ast
import dataclasses
import re
import textwrap
from contextlib import suppress

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Function, indent_of
from pyfunc_debug.program import syntax

_BINDS = re.compile(r"(?:\blambda\b[^:\n]*|\bdef )\bself\.\w")
_FIELD = re.compile(r"\bself\.(?=[^\W\d])")
_MARK = "self_ж_"
"""An attribute of `self` as one name, which nobody has."""


def as_parameters(edit: Edit) -> Edit:
    """Gives parameters that are attributes of `self` their own names, and keeps a function in its attribute."""
    text = "\n".join(edit.lines)
    if _BINDS.search(text) is None:
        return edit
    blanks = indent_of(next(line for line in edit.lines if line.strip()))
    lines = _FIELD.sub(_MARK, textwrap.dedent(text)).split("\n")
    with suppress(SyntaxError, ValueError):
        tree = syntax.parse("\n".join(lines))
        pieces: dict[tuple[int, int], tuple[str, str]] = {}
        kept: dict[int, str] = {}
        for one in ast.walk(tree):
            if isinstance(one, (ast.FunctionDef, ast.Lambda)):
                pieces |= _renamed(one)
            if isinstance(one, ast.FunctionDef) and one.name.startswith(_MARK):
                name = one.name.removeprefix(_MARK)
                at = lines[one.lineno - 1].index(one.name)
                pieces[one.lineno, at] = (one.name, name)
                kept[one.end_lineno or one.lineno] = f"{indent_of(lines[one.lineno - 1])}{_MARK}{name} = {name}"
        for (line, column), (old, new) in sorted(pieces.items(), reverse=True):
            coded = lines[line - 1].encode()
            lines[line - 1] = (coded[:column] + new.encode() + coded[column + len(old.encode()) :]).decode()
        for line, text in sorted(kept.items(), reverse=True):
            lines.insert(line, text)
        made = "\n".join(lines).replace(_MARK, "self.")
        return dataclasses.replace(edit, lines=tuple(textwrap.indent(made, blanks).split("\n")))
    return edit


def _renamed(function: Function) -> dict[tuple[int, int], tuple[str, str]]:
    """The places of such parameters of a function: the name there, and that in its stead."""
    arguments = [one for one in ast.walk(function.args) if isinstance(one, ast.arg)]
    body = function.body if isinstance(function.body, list) else [function.body]
    read = [one for part in body for one in ast.walk(part) if isinstance(one, ast.Name)]
    taken = {one.id for one in read} | {one.arg for one in arguments}
    found: dict[tuple[int, int], tuple[str, str]] = {}
    for one in arguments:
        name = one.arg.removeprefix(_MARK)
        if name == one.arg or name in taken:
            continue
        places = [(part.lineno, part.col_offset) for part in read if part.id == one.arg]
        found |= dict.fromkeys([(one.lineno, one.col_offset), *places], (one.arg, name))
    return found
