"""`run_eagerly=True` in the one call of `compile`: the last resort, where each step has to be Python."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts


def run_eagerly(facts: Facts, file: str) -> str:
    """The line that compiles the model, so that each step runs as Python; "" where there is no one such line.

    Args:
      facts: The recording.
      file: The user's file.
    """
    calls = [
        one for one in pastes.walk(facts.tree(file), ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "compile"
    ]  # fmt: skip
    if len(calls) != 1 or any(word.arg in (None, "run_eagerly", "jit_compile") for word in calls[0].keywords):
        return ""
    eager = pastes.source(facts, file).with_argument(calls[0], "run_eagerly=True")
    return pastes.all_replaced(facts, file, {calls[0]: eager})
