"""What a program does with the result of a py_function: the statement that makes it, and who reads its name."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Node

_LOOKS = ("print", "set_shape", "get_shape")
"""Functions and methods that only look at a graph's tensor, or say its shape."""


@dataclass(frozen=True)
class Result:
    """A result by its name.

    Attributes:
      file: The user's file.
      source: Its source.
      call: The call of py_function.
      statement: The statement that holds the call.
      name: What the statement calls the result; None where it leaves it.
      scope: The function around the statement, or the file.
      reads: Where the name is read, without what only looks at the graph's tensor.
      looks: Statements that only look at it.
    """

    file: str
    source: Source
    call: ast.Call
    statement: ast.stmt
    name: str | None
    scope: ast.FunctionDef | ast.Module
    reads: tuple[ast.Name, ...]
    looks: tuple[ast.stmt, ...]

    @property
    def whole(self) -> bool:
        """Whether the call is all that the statement computes."""
        return getattr(self.statement, "value", None) is self.call


def result_of(facts: Facts, node: Node) -> Result | None:
    """What becomes of a node's result; None where its statement does not give it one name, or the name has others."""
    found = pastes.call_of(facts, node)
    if found is None:
        return None
    file, source = found[0], pastes.source(facts, found[0])
    call = next((one for one in pastes.walk(source.tree, ast.Call) if _same_place(one, found[1])), None)
    statement = source.statement(call.lineno) if call is not None else None
    if call is None or statement is None or _in_a_function(source, call, statement):
        return None
    scope = next((one for one in source.around(statement) if isinstance(one, ast.FunctionDef)), source.tree)
    if isinstance(statement, ast.Expr) and statement.value is call:
        return Result(file, source, call, statement, None, scope, (), ())
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Name):
        return None
    every = [one for one in pastes.walk(scope, ast.Name) if one.id == target.id]
    if sum(isinstance(one.ctx, ast.Store) for one in every) != 1:
        return None
    seen = [(one, _look(source, one)) for one in every if isinstance(one.ctx, ast.Load)]
    reads = tuple(one for one, look in seen if look is None)
    looks = tuple(look for _, look in seen if look is not None)
    return Result(file, source, call, statement, target.id, scope, reads, looks)


def _same_place(one: ast.AST, other: ast.AST) -> bool:
    return all(getattr(one, at) == getattr(other, at) for at in ("lineno", "col_offset", "end_lineno"))


def _in_a_function(source: Source, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether a lambda stands between a call and its statement: it is not made there."""
    for one in source.around(call):
        if one is statement:
            return False
        if isinstance(one, ast.Lambda):
            return True
    return True


def _look(source: Source, name: ast.Name) -> ast.stmt | None:
    """The statement `print(y)` or `y.set_shape(...)` that a name stands in."""
    statement = source.statement(name.lineno)
    value = statement.value if isinstance(statement, ast.Expr) else None
    looks = isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in _LOOKS
    return statement if looks else None
