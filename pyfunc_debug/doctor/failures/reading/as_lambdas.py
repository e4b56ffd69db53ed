"""Small functions that are given to calls, read as the lambdas that they could be: `ds.map(scaled)`.

Causes look into what a call is given. A function of one `return` says as much as a lambda, a few lines above.
"""

from __future__ import annotations

import ast
from collections import Counter

from pyfunc_debug.doctor.failures.reading.given_to_calls import binders, given_anew
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names
from pyfunc_debug.program.syntax import copied

_BY_NAME = ("compile", "Lambda")
"""What these are given Keras traces: causes ask for it by its name, and whether a layer before it is trained."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def as_lambdas(source: Source, situation: Situation) -> Situation:
    """Puts lambdas in the places of names of functions that only return an expression.

    A lambda stands in the text where the name does, and what it gives where the function has it: a paste changes it
    there, for the one place that names the function.
    """
    found: dict[str, list[ast.AST]] = {}
    for name, one in binders(source.tree):
        found.setdefault(name, []).append(one)
    names_read = [one for one in ast.walk(source.tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    read = Counter(one.id for one in names_read)
    small = {
        name: one for name, (one, *more) in found.items()
        if not more and read[name] == 1 and isinstance(one, ast.FunctionDef) and _given(one) is not None
        and not isinstance(source.parent(one), ast.ClassDef)
    }  # fmt: skip
    if small:
        _Written(source, small).visit(source.tree)
    return situation


def _given(function: ast.FunctionDef) -> ast.expr | None:
    """What a function returns that does nothing else."""
    if function.decorator_list or len(function.body) != 1 or not isinstance(function.body[0], ast.Return):
        return None
    return function.body[0].value


class _Written(ast.NodeTransformer):
    """What calls are given."""

    def __init__(self, source: Source, functions: dict[str, ast.FunctionDef]) -> None:
        self._source, self._functions = source, functions

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if dotted(node.func).rpartition(".")[2] in _BY_NAME:
            return node
        return given_anew(node, self._as_lambda)

    def _as_lambda(self, node: ast.expr) -> ast.expr:
        function = self._functions.get(node.id) if isinstance(node, ast.Name) else None
        value = _given(function) if function is not None else None
        if function is None or value is None or not self._reads_the_same(node, function):
            return node
        return ast.copy_location(ast.Lambda(copied(function.args), copied(value)), node)

    def _reads_the_same(self, node: ast.expr, function: ast.FunctionDef) -> bool:
        """Whether the names that a function reads stand for the same where its own name is."""
        home = [one for one in self._source.around(function) if isinstance(one, _SCOPES)]
        here = [one for one in self._source.around(node) if isinstance(one, _SCOPES) and one not in home]
        inner = {name for scope in here for name, _ in binders(scope)}
        return not inner & set(names(function))
