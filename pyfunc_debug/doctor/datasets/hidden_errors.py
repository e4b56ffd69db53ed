"""Bodies that catch exceptions themselves, and return a flag by which a filter drops the element: all of them, here."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.source import Source, short
from pyfunc_debug.places import source_line

_NODES = "SELECT id, token, body, file, line FROM node WHERE origin = 'user' ORDER BY id"
_CALLS = """
    SELECT count(*), total(v.min = v.max AND v.max = ? AND v.dtype = 'bool'), min(c.id) FROM call c
    LEFT JOIN value v ON v.call = c.id AND v.role = 'output' AND v.position = ?
    WHERE c.node = ? AND c.kind = 'forward' AND c.end_ns IS NOT NULL
"""
_DROPPED = "SELECT 1 FROM dropped WHERE node = ?"
_HAS = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'dropped'"
_TEXTS = "SELECT text FROM value WHERE call = ? AND role = 'input' AND dtype = 'string' ORDER BY position LIMIT 1"
_TEXT = re.compile(r"string\[\] '([^'…]+)'")


@dataclass(frozen=True)
class Hidden:
    """A body of which each call caught an exception.

    Attributes:
      node: Its number.
      token: Its token.
      call: Its first call.
      file: The file.
      line: The line of the `except`.
      cause: What happened.
      advice: What to do.
    """

    node: int
    token: str
    call: int
    file: str
    line: int
    cause: str
    advice: str


def hidden(rows: Callable[..., Any], sources: Mapping[str, Source]) -> Iterator[Hidden]:
    """Such bodies of a recording, in files that filter a dataset.

    Args:
      rows: Asks the recording.
      sources: The user's files.
    """
    for node, token, body, file, line in rows(_NODES):
        source = sources.get(file)
        filters = _filters(source) if source is not None else []
        function = _function(source, line) if source is not None and filters else None
        flag = _flag(function) if function is not None else None
        if source is None or function is None or flag is None:
            continue
        position, caught, handler = flag
        count, flagged, first = rows(_CALLS, (float(caught), position, node))[0]
        if not count or count != int(flagged) or (rows(_HAS) and rows(_DROPPED, (node,))):
            continue
        name = body.rpartition(".")[2]
        every = f"each of {count:,} calls" if count > 1 else "the only call"
        what = short(source.text(handler.type), 30) if handler.type is not None else ""
        at = f"`except{' ' * bool(what)}{what}` at {source_line(file, handler.lineno)}"
        which = f"`.filter({short(source.text(filters[0]), 30)})`" if len(filters) == 1 else "the filter behind it"
        cause = (
            f"{every} of {name} in this map caught an exception (its {at}) and returned {caught} as value {position}: "
            f"{which} let no element through, and the dataset is empty.{_given(rows, first)}"
        )
        advice = f"Write `raise` as the first line of that except: then the program says what {name} could not do."
        yield Hidden(node, token, first, file, handler.lineno, cause, advice)


def _given(rows: Callable[..., Any], call: int) -> str:
    """What the first call was given, where that is the name of a file that is not there."""
    found = rows(_TEXTS, (call,))
    said = _TEXT.fullmatch(found[0][0]) if found else None
    if said is None or not re.search(r"[/\\.]", said[1]) or os.path.exists(said[1]):
        return ""
    return f" {short(repr(said[1]), 60)}, what the first was given, is not there."


def _filters(source: Source) -> list[ast.expr]:
    return [
        one.args[0] for one in ast.walk(source.tree)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "filter" and one.args
    ]  # fmt: skip


def _function(source: Source, line: int | None) -> ast.FunctionDef | None:
    return next((one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.lineno == line), None)


def _flag(function: ast.FunctionDef) -> tuple[int, bool, ast.ExceptHandler] | None:
    """The place of a value that is True or False by whether a body's one `try` caught something, and which it is."""
    inside = own_nodes(function)
    tries = [one for one in function.body if isinstance(one, ast.Try)]
    returns = [one for one in inside if isinstance(one, ast.Return)]
    if (
        len(tries) != 1
        or len(tries[0].handlers) != 1
        or any(isinstance(one, ast.Try) for one in inside if one not in tries)
    ):
        return None
    block, handler = tries[0], tries[0].handlers[0]
    tried = [one for part in (*block.body, *block.orelse) for one in (part, *own_nodes(part)) if one in returns]
    others = [one for one in returns if one not in tried]
    falls = not isinstance([*block.body, *block.orelse][-1], ast.Return)  # what follows runs without an exception, too
    before = any(one.lineno < block.lineno for one in others)
    below = any(one.lineno > (handler.end_lineno or handler.lineno) for one in others)
    if not tried or not others or before or block.finalbody or (falls and below):
        return None
    for position in range(8):
        plain, caught = {_value(one, position) for one in tried}, {_value(one, position) for one in others}
        if len(plain) == len(caught) == 1 and None not in plain | caught and plain != caught:
            return position, bool(caught.pop()), handler
    return None


def _value(one: ast.AST, position: int) -> bool | None:
    """True or False, where a `return` has that at a place."""
    value = one.value if isinstance(one, ast.Return) else None
    part = value.elts[position] if isinstance(value, ast.Tuple) and len(value.elts) > position else None
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, bool) else None
