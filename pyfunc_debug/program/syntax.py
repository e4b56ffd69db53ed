"""Python's syntax trees of texts: `ast.parse`, whatever other threads do meanwhile.

CPython before 3.11.8 and 3.12.2 counts the depth of a tree in one place for all threads: two that parse at once may
both get SystemError "AST constructor recursion depth mismatch" for a text that has nothing wrong (gh-106905).
"""

from __future__ import annotations

import ast
from typing import TypeVar

_TRIES = 5
_Tree = TypeVar("_Tree", bound=ast.AST)


def copied(tree: _Tree) -> _Tree:
    """A tree of its own, with the same lines and columns: `copy.deepcopy` takes some ten times as long.

    What has no parts (`ast.Load()`) is the same object in both, as in the trees that Python makes.
    """
    if not tree._fields:
        return tree
    made: _Tree = type(tree).__new__(type(tree))
    own = made.__dict__
    for name, value in tree.__dict__.items():
        if isinstance(value, ast.AST):
            own[name] = copied(value)
        elif isinstance(value, list):
            own[name] = [copied(one) if isinstance(one, ast.AST) else one for one in value]
        else:
            own[name] = value
    return made


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
