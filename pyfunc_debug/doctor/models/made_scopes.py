"""The functions that made what a line trains: `build_model()`, a class's `__init__`, a caller that gave the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.models.keras_callees import nodes_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def made_scopes(tree: ast.Module, line: int) -> list[Any]:
    """The file, the functions around a line, and those in which the object was made whose method the line calls."""
    found = _Scopes(tree)
    around: list[Any] = [tree, *pastes.around(tree, line, ast.FunctionDef)]
    for one in around:
        found.add(one)
    for call in pastes.around(tree, line, ast.Call):
        if isinstance(call.func, ast.Attribute):
            found.follow(ast.unparse(call.func.value), around)
    return found.scopes


class _Scopes:
    """Scopes that are found as one looks for where a name was given its value.

    Args:
      tree: The file.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.scopes: list[Any] = []
        self._tree = tree
        self._seen: set[tuple[str, int]] = set()
        self._functions: dict[str, list[Any]] = {}
        self._holders: dict[int, ast.ClassDef] = {}
        for holder in pastes.walk(tree, ast.ClassDef):
            for one in holder.body:
                self._holders[id(one)] = holder
        for one in pastes.walk(tree, ast.FunctionDef):
            if id(one) not in self._holders:
                self._functions.setdefault(one.name, []).append(one)

    def add(self, scope: Any) -> None:
        if not any(one is scope for one in self.scopes):
            self.scopes.append(scope)

    def follow(self, name: str, scopes: list[Any]) -> None:
        """Adds the functions that made what some scopes have under a name."""
        for scope in scopes:
            if (name, id(scope)) in self._seen:
                continue
            self._seen.add((name, id(scope)))
            for value in _given(scope, name):
                self._made(value)
            if not isinstance(scope, _FUNCTIONS):
                continue
            if name.startswith("self") and len(name) > len("self.") and id(scope) in self._holders:
                for method in self._holders[id(scope)].body:
                    if isinstance(method, _FUNCTIONS) and any(True for _ in _given(method, name)):
                        self.add(method)
                        self.follow(name, [method])
            if name in [one.arg for one in scope.args.args]:
                self._callers(scope, name)

    def _made(self, value: ast.expr) -> None:
        """The function of the file whose result this is, and where it has its own from."""
        for call in (one for one in ast.walk(value) if isinstance(one, ast.Call)):
            for function in self._of(call):
                if any(one is function for one in self.scopes):
                    continue
                self.add(function)
                for back in (one.value for one in nodes_of(function) if isinstance(one, ast.Return) and one.value):
                    self._made(back)
                    for name in (part.id for part in ast.walk(back) if isinstance(part, ast.Name)):
                        self.follow(name, [function])

    def _of(self, call: ast.Call) -> list[Any]:
        every = self._functions.get(call.func.id, []) if isinstance(call.func, ast.Name) else []
        return every if len(every) == 1 else []

    def _callers(self, function: Any, name: str) -> None:
        """The scopes whose calls gave a function what it has under the name of a parameter."""
        place = [one.arg for one in function.args.args].index(name)
        for call in pastes.walk(self._tree, ast.Call):
            if function not in self._of(call):
                continue
            given = next((one.value for one in call.keywords if one.arg == name), None)
            given = call.args[place] if given is None and place < len(call.args) else given
            if given is None:
                continue
            scopes: list[Any] = [self._tree, *pastes.around(self._tree, call.lineno, ast.FunctionDef)]
            for one in scopes:
                self.add(one)
            self._made(given)
            self.follow(ast.unparse(given), scopes)


def _given(scope: Any, name: str) -> Iterator[ast.expr]:
    """What the statements of a scope assign to a name, alone or with others."""
    for one in nodes_of(scope):
        if isinstance(one, ast.Assign):
            for target in one.targets:
                parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                if any(ast.unparse(part) == name for part in parts):
                    yield one.value
