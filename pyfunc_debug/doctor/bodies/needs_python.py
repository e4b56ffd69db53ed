"""Whether a function can take a tensor in the place of a Python number."""

from __future__ import annotations

import ast
import re

_TAKES = re.compile(r"(?:tf\.(?!constant$)|keras\.|self\.|\w+\.assign|range$|abs$|max$|min$)")
"""Functions to which a tensor can be given in place of a number: AutoGraph has its own `range`."""


def needs_python(own: ast.AST, name: str, signature: str = "") -> bool:
    """Whether a function uses a parameter where a tensor cannot stand: in NumPy, a text, an index of a list.

    Args:
      own: The function.
      name: Its parameter, or what is to be one: `self.rate`.
      signature: For what it was traced, as TensorFlow says it.
    """
    for one in ast.walk(own):
        inside: list[ast.AST] = []
        if isinstance(one, ast.Call) and not _TAKES.match(ast.unparse(one.func)):
            inside = [*one.args, *(given.value for given in one.keywords)]
        elif isinstance(one, ast.FormattedValue):
            inside = [one.value]
        elif isinstance(one, ast.Subscript) and not re.search(rf"\b{ast.unparse(one.value)}: \w+\[", signature):
            inside = [one.slice]
        parts = (part for node in inside for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute)))
        if any(ast.unparse(part) == name for part in parts):
            return True
    return False
