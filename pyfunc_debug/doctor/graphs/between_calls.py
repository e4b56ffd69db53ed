"""What stands beside a tf.function between two of its calls, where it should be traced again, and is not."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.graphs.replaced_objects import making
from pyfunc_debug.records import Function


@dataclass(frozen=True)
class Between:
    """Statements of a function's scope, between its first call and its last.

    Attributes:
      statements: They, in order.
      calls: Where it was called, for the evidence.
      again: The statement that makes it again; "" for a method, or where its own line does not tell how it is made.
    """

    statements: tuple[ast.stmt, ...]
    calls: str
    again: str


def between_calls(facts: Facts, function: Function, own: ast.FunctionDef) -> Between | None:
    """What stands between the calls of a tf.function in its file; None where it is made again there, or called once.

    Args:
      facts: The recording.
      function: The traced function.
      own: Its definition.
    """
    sites = sorted(line for file, line in pastes.run_sites(facts, function.id) if file == function.file)
    source = pastes.source(facts, function.file)
    holder = source.parent(own)
    method = isinstance(holder, ast.ClassDef)
    scope = getattr(pastes.scope_of(facts, function.file, holder if method and holder is not None else own), "body", ())
    if len(sites) < 2 or any(own.name in map(ast.unparse, getattr(one, "targets", ())) for one in scope):
        return None
    made = None if method else making(source, own, own.name)
    return Between(
        tuple(one for one in scope if sites[0] < one.lineno < sites[-1]),
        f"it was called in line {sites[0]} before, and in line {sites[-1]} after that",
        "" if made is None else f"{made[0]} = {made[1]}",
    )
