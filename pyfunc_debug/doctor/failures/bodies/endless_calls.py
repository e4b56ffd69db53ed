"""A function that calls itself without an end, and a `__getattr__` that asks for what is not set."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted

_LEAST = 20
"""Frames of one function, one in the other, from which it is said."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the same function of a body or a generator stands many times at the traceback's end."""
    spot = situation.last
    function = spot.function if spot is not None else None
    if situation.kind != "RecursionError" or spot is None or not situation.data:
        return None
    if not isinstance(function, ast.FunctionDef):
        return None
    last = [one for one in situation.spots[-2 * _LEAST :] if one.code == function.name and one.file == spot.file]
    if len(last) < _LEAST:
        return None
    if function.name in ("__getattr__", "__getattribute__"):
        asked = [
            one.attr for one in own_nodes(function)
            if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self"
        ]  # fmt: skip
        if not asked:
            return None
        name = asked[0]
        cause = (
            f"Python calls {function.name} for what an object does not have, and {function.name} asks for self.{name}, "
        )
        cause += "which it does not have either: so it is called again."
        return Explanation(
            RULE, spot.file, spot.line, cause, None, f"Set self.{name} in __init__, before anything else is asked for."
        )
    calls = [
        one.lineno for one in own_nodes(function)
        if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] == function.name
    ]  # fmt: skip
    if not calls:
        return None
    ends = any(isinstance(one, (ast.If, ast.IfExp)) for one in own_nodes(function))
    cause = f"{function.name} calls itself in line {calls[0]}, {len(last)} times and more, and "
    cause += "none of its conditions came true." if ends else "has no condition that ends it."
    advice = f"Return before line {calls[0]} where nothing is left to do, and make what it is given smaller each time."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
