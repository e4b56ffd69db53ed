"""Bodies that use what a call gives which works in place: None, which NumPy makes NaN of in an array of floats."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes import in_place
from pyfunc_debug.doctor.failures.reading.returning import changes_its_argument, works_in_place
from pyfunc_debug.records import Node

_METHODS = frozenset(("fill", "shuffle", "sort"))
"""Of arrays and lists; other methods that are named as theirs may be the user's own, and give something."""


@dataclass(frozen=True)
class NoneOfCall:
    """A result that is None, and is used.

    Attributes:
      line: Where the call stands.
      words: What it does.
      fix: What to paste; "" where it is not certain.
    """

    line: int
    words: str
    fix: str


def none_of_call(facts: Facts, node: Node) -> NoneOfCall | None:
    """The first call in a body that works in place, and of which the body uses the result."""
    function = facts.function(node)
    if function is None or node.file is None or isinstance(function, ast.Lambda):
        return None
    source = pastes.source(facts, node.file)
    for one in code.own_nodes(function):
        statement = one if isinstance(one, ast.Assign) else None
        call = statement.value if statement is not None else None
        if statement is None or not works_in_place(call) or not isinstance(call.func, ast.Attribute):
            continue
        changes = changes_its_argument(call)
        if not changes and call.func.attr not in _METHODS:
            continue
        name = pastes.text_of(facts, node.file, call.func)
        target = statement.targets[0]
        if len(statement.targets) != 1 or not isinstance(target, ast.Name) or not _is_read(function, target.id, call):
            continue
        words = f"{name} works in place and returns None: {target.id} is None, and becomes NaN"
        edit = in_place.apart(node.file, source, statement, call)
        return NoneOfCall(statement.lineno, words, pastes.written(edit))
    return None


def _is_read(function: ast.AST, name: str, call: ast.Call) -> bool:
    """Whether a function reads a name behind the call that gave it, and nothing sets it in between."""
    named = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name]
    later = sorted((one for one in named if one.lineno > (call.end_lineno or call.lineno)), key=lambda one: one.lineno)
    return bool(later) and isinstance(later[0].ctx, ast.Load)
