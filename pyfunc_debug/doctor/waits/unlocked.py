"""A block that holds a lock, written so that one of its lines, which waits for TensorFlow, does not hold it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of

_STEP = "    "
_Region = tuple[str, Sequence[ast.stmt], int, int]
"""The lock, the statements that hold it, the first line that belongs to them, and the last line of all."""


def unlocked(facts: Facts, file: str, taken: int, line: int) -> str:
    """What to paste; "" where that cannot be said.

    Args:
      facts: The recording.
      file: The user's file.
      taken: Line of its `with lock:`, or of `lock.acquire()`.
      line: A line inside, which is to run without the lock. Of a loop it is the header: the loop's body keeps the lock.
    """
    own = pastes.source(facts, file)
    statement = own.statement(taken)
    if statement is None or statement.lineno != taken:
        return ""
    region = _with(statement) if isinstance(statement, ast.With) else _acquired(own, statement)
    if region is None:
        return ""
    lock, block, start, last = region
    strings = [one for part in block for one in ast.walk(part) if isinstance(one, (ast.Constant, ast.JoinedStr))]
    if any(one.lineno != one.end_lineno for one in strings):
        return ""  # other blanks in a text of several lines would be another text
    new = _Split(own, f"with {lock}:", line).block(block, indent_of(own.lines[taken - 1]), start)
    return "" if new is None else pastes.written(Edit(file, taken, last, tuple(new)))


def _with(statement: ast.With) -> _Region | None:
    if len(statement.items) != 1 or statement.items[0].optional_vars is not None:
        return None
    if statement.body[0].lineno == statement.lineno:
        return None
    return ast.unparse(statement.items[0].context_expr), statement.body, statement.lineno + 1, _end(statement)


def _acquired(own: Source, statement: ast.stmt) -> _Region | None:
    """`lock.acquire()` and what follows up to `lock.release()`, or a `try` with that in its `finally`."""
    lock = _calls(statement, "acquire")
    block = own.block(statement)
    if lock is None or block is None:
        return None
    after = block[block.index(statement) + 1 :]
    if after and isinstance(held := after[0], ast.Try) and _is_plain(held):
        last = held.finalbody[0]
        if _calls(last, "release") == lock:
            return lock, held.body, held.lineno + 1, _end(held)
    released = next((place for place, one in enumerate(after) if _calls(one, "release") == lock), None)
    return (lock, after[:released], statement.lineno + 1, _end(after[released])) if released else None


def _is_plain(held: ast.Try) -> bool:
    """Whether a `try` only makes sure that one statement runs at its end."""
    apart = held.body[0].lineno > held.lineno
    return apart and not held.handlers and not held.orelse and len(held.finalbody) == 1


def _calls(statement: ast.stmt, method: str) -> str | None:
    """`lock` for the statement `lock.acquire()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or call.args or call.keywords or not isinstance(call.func, ast.Attribute):
        return None
    return ast.unparse(call.func.value) if call.func.attr == method else None


class _Split:
    """Blocks whose statements hold a lock, but for the one at a line."""

    def __init__(self, own: Source, header: str, line: int) -> None:
        self._own = own
        self._header = header
        self._line = line

    def block(self, block: Sequence[ast.stmt], indent: str, start: int) -> list[str] | None:
        """Its lines.

        Args:
          block: The statements.
          indent: The blanks before them.
          start: The first line that belongs to them.
        """
        place = next((place for place, one in enumerate(block) if _first(one) <= self._line <= _end(one)), None)
        if place is None:
            return None
        one = block[place]
        before, after = block[:place], block[place + 1 :]
        inner = self._one(one, indent, _end(before[-1]) + 1 if before else start)
        if inner is None:
            return None
        lines = self._locked(before, indent, start)
        return [*lines, *inner, *self._locked(after, indent, _end(one) + 1)]

    def _one(self, one: ast.stmt, indent: str, start: int) -> list[str] | None:
        first = _first(one)
        body = getattr(one, "body", None)
        if not isinstance(body, list):
            return self._moved(start, _end(one), indent, first)
        if getattr(one, "orelse", None) or not isinstance(one, (ast.For, ast.If, ast.While, ast.With)):
            return None
        _, header = self._own.span(one)
        if body[0].lineno <= header:
            return None
        head = self._moved(start, header, indent, first)
        if self._line > header:
            inner = self.block(body, indent + _STEP, header + 1)
            return None if inner is None else [*head, *inner]
        if not isinstance(one, ast.For):
            return None  # the test of a `while` may read what the lock is for
        return [*head, *self._locked(body, indent + _STEP, header + 1)]

    def _locked(self, block: Sequence[ast.stmt], indent: str, start: int) -> list[str]:
        if not block:
            return []
        return [f"{indent}{self._header}", *self._moved(start, _end(block[-1]), indent + _STEP, _first(block[0]))]

    def _moved(self, first: int, last: int, indent: str, like: int) -> list[str]:
        """Lines with other blanks before them: the line `like` gets `indent`, the others as many more as they had."""
        old = indent_of(self._own.lines[like - 1])
        lines = self._own.lines[first - 1 : last]
        return [f"{indent}{one.removeprefix(old) if one.startswith(old) else one.lstrip()}".rstrip() for one in lines]


def _first(statement: ast.stmt) -> int:
    return pastes.first_line(statement)


def _end(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno
