"""What readings share that put something else in the places of what calls are given."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator


def given_anew(call: ast.Call, made: Callable[[ast.expr], ast.expr]) -> ast.Call:
    """A call with what `made` gives for each of its arguments in their places."""
    call.args = [made(one) for one in call.args]
    for word in call.keywords:
        word.value = made(word.value)
    return call


def binders(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that a program binds, each as often as it does, and what binds them."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            yield one.id, one
        elif isinstance(one, ast.arg):
            yield one.arg, one
        elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield one.name, one
        elif isinstance(one, ast.alias):
            yield one.asname or one.name.partition(".")[0], one
