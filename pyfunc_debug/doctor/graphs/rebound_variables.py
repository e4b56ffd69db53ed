"""A callback that puts something else in the place of the variable that it was given: the graph reads the variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding

_VARIABLES = ("Variable", "variable")
_ADDED: dict[type, str] = {ast.Add: "assign_add", ast.Sub: "assign_sub"}
_Change = ast.Assign | ast.AugAssign


def rebound(facts: Facts, file: str) -> Iterator[Finding]:
    """One finding an attribute of a callback's.

    Args:
      facts: The recording.
      file: A file of the user's, whose model was trained.
    """
    tree = facts.tree(file)
    made = {
        target.id for one in pastes.walk(tree, ast.Assign) for target in one.targets
        if isinstance(target, ast.Name) and _is_variable(one.value)
    }  # fmt: skip
    holders = [one for one in pastes.walk(tree, ast.ClassDef)
               if any(pastes.last_name(base) == "Callback" for base in one.bases)]  # fmt: skip
    for holder in holders if made else ():
        for attribute, parameter in _given(holder):
            names = [ast.unparse(one) for one in code.given(holder, tree, parameter)]
            read = [one for one in names if one in made and _read_elsewhere(tree, one, holder)]
            changes = _changes(holder, attribute)
            if len(names) != 1 or not read or not changes:
                continue
            first = changes[0]
            yield Finding(
                "stale-closure", "error", None, (),
                f"line {first.lineno} puts another object into {attribute}: {read[0]}, which it was given and "
                "the graph reads, stays what it was. A variable changes by .assign",
                _fix(facts, file, attribute, changes), file, first.lineno,
                evidence=tuple(f"line {one.lineno}: {facts.line(file, one.lineno)}" for one in changes[:3]),
            )  # fmt: skip


def _is_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and pastes.last_name(value.func) in _VARIABLES


def _given(holder: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Attributes that `__init__` gives a parameter: `self.w = w`."""
    for one in holder.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            for part in one.body:
                if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.value, ast.Name):
                    yield ast.unparse(part.targets[0]), part.value.id


def _changes(holder: ast.ClassDef, attribute: str) -> list[_Change]:
    """Statements outside of `__init__` that put a number, a sum or a variable into an attribute; none if others do."""
    found = list[_Change]()
    for method in holder.body:
        if not isinstance(method, ast.FunctionDef) or method.name == "__init__":
            continue
        for one in code.own_nodes(method):
            if not isinstance(one, (ast.Assign, ast.AugAssign)):
                continue
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            if attribute not in map(ast.unparse, targets):
                continue
            summed = isinstance(one.value, ast.BinOp) and attribute in ast.unparse(one.value)
            plain = isinstance(one, ast.AugAssign) and type(one.op) in _ADDED
            if len(targets) > 1 or not (plain or summed or code.is_number(one.value) or _is_variable(one.value)):
                return []
            found.append(one)
    return found


def _read_elsewhere(tree: ast.AST | None, name: str, but: ast.ClassDef) -> bool:
    """Whether a function that neither is in the class nor around it reads a name, or a loss is weighed by it."""
    inside = set(map(id, ast.walk(but)))
    functions = [one for one in pastes.walk(tree, ast.FunctionDef) if id(one) not in inside]
    weights = [one.value for one in pastes.walk(tree, ast.keyword) if one.arg == "loss_weights"]
    if any(isinstance(part, ast.Name) and part.id == name for one in weights for part in ast.walk(one)):
        return True
    return any(
        isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        for function in functions for one in code.own_nodes(function)
        if not function.lineno <= but.lineno <= (function.end_lineno or 0)
    )  # fmt: skip


def _fix(facts: Facts, file: str, attribute: str, changes: list[_Change]) -> str:
    edits = list[Edit | None]()
    for one in changes:
        lines = pastes.lines_of(facts, file, one.lineno)
        value = one.value.args[0] if _is_variable(one.value) and one.value.args else one.value  # type: ignore[attr-defined]
        method = _ADDED[type(one.op)] if isinstance(one, ast.AugAssign) else "assign"
        text = f"{attribute}.{method}({pastes.text_of(facts, file, value)})"
        last = one.end_lineno or one.lineno
        edits.append(None if lines is None else Edit(file, one.lineno, last, (lines[0] + text,)))
    return pastes.written(*edits) or f"{attribute}.assign(...)"
