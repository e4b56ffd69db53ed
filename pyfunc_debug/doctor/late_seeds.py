"""A seed that is set between the calls of a tf.function which draws: its graph goes on with that of its trace."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding, Function

_DRAWS = re.compile(r"(?:^|\.)random\.(?!stateless|set_seed|get_|Generator|experimental)\w+$")
_SEEDS = re.compile(r"(?:^|\.)set_(?:random_)?seed$")


def seeded_late(facts: Facts, function: Function) -> Iterator[Finding]:
    """A finding for a traced function of the user's, if lines beside it set a seed between its calls.

    Args:
      facts: The recording.
      function: The traced function.
    """
    own, file = facts.definition(function.file, function.line), function.file
    if not isinstance(own, ast.FunctionDef) or file is None or function.kind != "tf.function":
        return
    draws = [
        one for one in code.own_nodes(own) if isinstance(one, ast.Call) and _DRAWS.search(ast.unparse(one.func))
        and ast.unparse(one.func).startswith(f"{pastes.module(facts, file, 'tensorflow') or 'tf'}.")
        and not any(word.arg == "seed" for word in one.keywords)
    ]  # fmt: skip
    sites = sorted(line for at, line in pastes.run_sites(facts, function.id) if at == file) if draws else []
    scope = getattr(pastes.scope_of(facts, file, own), "body", ())
    late = [
        one for one in scope if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)
        and _SEEDS.search(ast.unparse(one.value.func)) and sites and sites[0] < one.lineno < sites[-1]
    ]  # fmt: skip
    again = [one for one in scope if own.name in map(ast.unparse, getattr(one, "targets", ()))]
    if not late or again:
        return
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    edits = []
    for one in late[: pastes.MOST]:
        line = f"{' ' * one.col_offset}{own.name} = {tf}.function({own.name}.python_function)  # traced with this seed"
        end = one.end_lineno or one.lineno
        edits.append(Edit(file, end + 1, end, (line,)))
    yield Finding(
        "trace-only", "warning", None, (),
        f"line {late[0].lineno} sets a seed after TensorFlow traced {own.name}: {ast.unparse(draws[0].func)} in its "
        "graph took the seed of the trace, and goes on with that",
        pastes.written(*edits), file, late[0].lineno,
        evidence=(f"line {draws[0].lineno}: {facts.line(file, draws[0].lineno)}",
                  f"it was called in line {sites[0]} before, and in line {sites[-1]} after that"),
        confidence="likely",
    )  # fmt: skip
