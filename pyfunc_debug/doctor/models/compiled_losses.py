"""The functions of a file that `compile` is given as losses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts


def compiled_losses(facts: Facts, file: str) -> Iterator[ast.FunctionDef]:
    """Functions that a file gives `compile` by name as the loss, and those that a function returns which it calls."""
    tree = facts.tree(file)
    functions = {one.name: one for one in pastes.walk(tree, ast.FunctionDef)}
    for call in pastes.walk(tree, ast.Call):
        loss = pastes.argument(call, 1, "loss") if pastes.last_name(call.func) == "compile" else None
        made = functions.get(ast.unparse(loss.func)) if isinstance(loss, ast.Call) else None
        if made is not None:
            yield from (one for one in made.body if isinstance(one, ast.FunctionDef))
        elif isinstance(loss, ast.Name) and loss.id in functions:
            yield functions[loss.id]
