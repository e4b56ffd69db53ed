"""Python's syntax trees of texts: `ast.parse`, whatever other threads do meanwhile.

CPython before 3.11.8 and 3.12.2 counts the depth of a tree in one place for all threads: two that parse at once may
both get SystemError "AST constructor recursion depth mismatch" for a text that has nothing wrong (gh-106905).
"""

from __future__ import annotations

import ast

_TRIES = 5


def parse(text: str, file: str = "<unknown>") -> ast.Module:
    """The tree of a module's text.

    Args:
      text: Python.
      file: Its name, for messages.

    Raises:
      SyntaxError: it is not Python.
      ValueError: it holds a null character.
    """
    for _ in range(_TRIES - 1):
        try:
            return ast.parse(text, file)
        except SystemError:
            continue
    return ast.parse(text, file)


def expression(text: str, file: str = "<unknown>") -> ast.expr:
    """The tree of one expression, as `parse`."""
    for _ in range(_TRIES - 1):
        try:
            return ast.parse(text, file, "eval").body
        except SystemError:
            continue
    return ast.parse(text, file, "eval").body
