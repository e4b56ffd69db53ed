"""Eager execution that a line of the program switches off, where Keras 3 goes over a dataset and needs it."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.graphs.eager_sessions import RULE, uses_session
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted

_SAID = "only supports Python-style iteration in eager mode"
_SWITCHES = ("disable_eager_execution", "disable_v2_behavior")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the program has a line that switches eager execution off, and no Session."""
    if situation.body or _SAID not in situation.message or uses_session(situation):
        return None
    for file, source in situation.sources():
        for one in source.tree.body:
            call = one.value if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) else None
            name = dotted(call.func) if call is not None else ""
            if name.rpartition(".")[2] not in _SWITCHES:
                continue
            cause = (
                f"{name}() makes this a program of TensorFlow 1's graphs, and Keras 3 runs eagerly: it goes over data."
            )
            alone = len([each for each in source.tree.body if each.lineno == one.lineno]) == 1
            lines = tuple(f"# {line}" for line in source.lines[one.lineno - 1 : one.end_lineno])
            edit = Edit(file, one.lineno, one.end_lineno or one.lineno, lines) if alone else None
            return Explanation(RULE, file, one.lineno, cause, edit, "" if edit else f"Leave out {name}().")
    return None
