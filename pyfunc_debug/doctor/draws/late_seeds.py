"""A seed that is set between the calls of a tf.function which draws: its graph goes on with that of its trace."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.graphs.between_calls import between_calls
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
    between = between_calls(facts, function, own) if draws else None
    late = [
        one for one in (between.statements if between is not None else ())
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and _SEEDS.search(ast.unparse(one.value.func))
    ]  # fmt: skip
    if between is None or not late:
        return
    edits = [
        pastes.behind(file, one, f"{between.again}  # traced with this seed") for one in late[: pastes.MOST]
    ] if between.again else []  # fmt: skip
    yield Finding(
        "trace-only", "warning", None, (),
        f"line {late[0].lineno} sets a seed after TensorFlow traced {own.name}: {ast.unparse(draws[0].func)} in its "
        "graph took the seed of the trace, and goes on with that",
        pastes.written(*edits) or f"make the tf.function of {own.name} again behind each line that sets a seed",
        file, late[0].lineno,
        evidence=(f"line {draws[0].lineno}: {facts.line(file, draws[0].lineno)}", between.calls),
        confidence="likely",
    )  # fmt: skip
