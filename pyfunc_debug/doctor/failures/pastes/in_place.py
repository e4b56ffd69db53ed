"""Calls that change a value itself and give None, of which the result is used: the call alone, and the value."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.returning import changes_its_argument
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of


def apart(file: str, source: Source, made: ast.Assign, call: ast.Call) -> Edit:
    """`x = x.sort()` as `x.sort()`, `x = [2, 1].sort()` as two lines.

    Args:
      file: The file.
      source: Its text.
      made: The assignment.
      call: What it gives, a call that works in place.
    """
    assert isinstance(call.func, ast.Attribute)
    blanks, target = indent_of(source.lines[made.lineno - 1]), source.text(made.targets[0])
    owner, text = source.text(call.func.value), source.text(call)
    lines = [f"{blanks}{text}"]
    if changes_its_argument(call) and call.args:
        given = source.text(call.args[0])
        if not isinstance(call.args[0], (ast.Name, ast.Attribute)):
            rest = text[len(source.text(call.func)) :].replace(given, target, 1)
            lines = [f"{blanks}{target} = {given}", f"{blanks}{source.text(call.func)}{rest}"]
        elif given != target:
            lines.append(f"{blanks}{target} = {given}")
    elif owner != target and isinstance(call.func.value, (ast.Name, ast.Attribute)):
        lines.append(f"{blanks}{target} = {owner}")
    elif owner != target:
        lines = [f"{blanks}{target} = {owner}", f"{blanks}{target}{text[len(owner) :]}"]
    return Edit(file, made.lineno, made.end_lineno or made.lineno, tuple("\n".join(lines).split("\n")))
