"""A thread that feeds a queue and fails: its error handed through the queue to the body that waits, which raises it."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of

_NAMES = ("got", "item", "received")
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Break, ast.Continue)


def over(facts: Facts, dead: dict[str, Any], file: object, line: object) -> tuple[str, int, str] | None:
    """Where the thread died, and the lines that hand its error over.

    Args:
      facts: The recording.
      dead: What is known of the thread; empty where none died.
      file: The file of the body's line that waits.
      line: That line.
    """
    if not dead or not dead["does"].endswith(".put") or not isinstance(file, str) or not isinstance(line, int):
        return None
    failed, asks = _caught(facts, dead), _asked(facts, file, line)
    if failed is None or asks is None:
        return None
    if failed.file != asks.file:
        return dead["file"], dead["line"], f"{pastes.written(failed)}\n{pastes.written(asks)}"
    return dead["file"], dead["line"], pastes.written(failed, asks)


def _caught(facts: Facts, dead: dict[str, Any]) -> Edit | None:
    """The statement that failed, in the function that fills the queue, with its error put into the queue."""
    file, line = dead["file"], dead["line"]
    own = pastes.source(facts, file)
    statement, function = own.statement(line), own.function(line)
    if file != dead["does_file"] or function is None or function is not own.function(dead["at"]):
        return None
    if statement is None or hasattr(statement, "body") or any(isinstance(one, _LEAVES) for one in ast.walk(statement)):
        return None
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    lines = own.lines[first - 1 : last]
    blanks = indent_of(lines[0])
    if len(lines) > 1 and any('"""' in one or "'''" in one for one in lines):
        return None
    taken = {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}
    error = "error" if "error" not in taken else "failure"
    return Edit(file, first, last, (
        f"{blanks}try:",
        *(f"    {one}" for one in lines),
        f"{blanks}except Exception as {error}:",
        f"{blanks}    {dead['does']}({error})  # who waits raises it",
        f"{blanks}    raise",
    ))  # fmt: skip


def _asked(facts: Facts, file: str, line: int) -> Edit | None:
    """The body's statement, which raises what it gets where that is an error."""
    own = pastes.source(facts, file)
    statement = own.statement(line)
    if statement is None or hasattr(statement, "body"):
        return None
    calls = [
        one for one in pastes.around(statement, line, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "get"
    ]  # fmt: skip
    taken = {one.id for one in ast.walk(own.function(line) or own.tree) if isinstance(one, ast.Name)}
    name = next((one for one in _NAMES if one not in taken), None)
    placed = own.replaced({calls[0]: str(name)}) if len(calls) == 1 else None
    if placed is None or name is None or (placed[0], placed[1]) != own.span(statement):
        return None
    blanks = indent_of(own.lines[statement.lineno - 1])
    return Edit(file, placed[0], placed[1], (
        f"{blanks}{name} = {own.text(calls[0])}",
        f"{blanks}if isinstance({name}, Exception):",
        f"{blanks}    raise {name}",
        placed[2],
    ))  # fmt: skip
