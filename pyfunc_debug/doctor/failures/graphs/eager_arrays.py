"""A TensorArray of eager code in a tf.function: a graph cannot go on with it, and makes one of its own."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_tf_variable, lookup, method_calls

RULE = "symbolic-value"
_FILL = ("write", "unstack", "scatter", "split")
_SAID = "Attempting to build a graph-mode TF2-style TensorArray from either an eager-mode"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a function that is traced uses a TensorArray that was made outside of it."""
    if _SAID not in situation.message:
        return None
    for place in range(len(situation.spots) - 1, -1, -1):
        spot = situation.spots[place]
        function = spot.function
        if not isinstance(function, ast.FunctionDef):
            continue
        found = [one for one in _arrays(spot, function) if _makers(spot, function, situation.spots[:place], one)]
        if found:
            return _told(spot, function, situation.spots[:place], found)
    return None


def at_variable(situation: Situation) -> Explanation | None:
    """The explanation, if the place in such an array is a variable: Python would need its value."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or "as a Python `bool`" not in situation.message:
        return None
    for call in method_calls(statement, "write", "read", "scatter", "gather"):
        owner = call.func.value  # type: ignore[attr-defined]
        value, at = lookup(owner, spot), call.args[0] if call.args else None
        if at is None or not _is_array(value) or not is_tf_variable(lookup(at, spot)):
            continue
        name, place = spot.source.text(owner), spot.source.text(at)
        cause = (
            f"{name} is a TensorArray that was made in eager code: it takes Python's numbers, and {place} is a "
            "variable. It lasts for one run only."
        )
        given = spot.source.text(call.args[1]) if len(call.args) > 1 else "x"
        tf = alias(spot, "tensorflow")
        advice = f"Make it {tf}.Variable({tf}.zeros((size, ...))), and here {name}[{place}].assign({given})."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None


def _arrays(spot: Spot, function: ast.FunctionDef) -> list[str]:
    """The names in a function that stand for TensorArrays: parameters, globals, attributes of self."""
    held = [name for name in names(function) if _is_array(spot.value(name))]
    held += [
        dotted(one) for one in own_nodes(function)
        if isinstance(one, ast.Attribute) and dotted(one).startswith("self.") and _is_array(lookup(one, spot))
    ]  # fmt: skip
    given = [name for name in parameters(function) if _is_array(spot.value(name))]
    return list(dict.fromkeys([*given, *held]))


def _is_array(value: Any) -> bool:
    return type(value).__name__ in ("TensorArray", "ShouldUseWrapper")  # the second is what write() gives


def _makers(spot: Spot, function: ast.FunctionDef, around: tuple[Spot, ...], name: str) -> list[tuple[Source, str]]:
    """How the array that a name stands for was made, where the source says it once."""
    source, wanted = spot.source, name
    if name in parameters(function):
        given = _given(function, around, name)
        if given is None:
            return []
        source, wanted = given
    made = [
        one.value for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        and wanted in [dotted(target) for target in one.targets]
        and dotted(one.value.func).rpartition(".")[2] == "TensorArray"
    ]  # fmt: skip
    inside = made and source is spot.source and any(one is made[0] for one in ast.walk(function))
    return [(source, source.text(made[0]))] if len(made) == 1 and not inside else []


def _given(function: ast.FunctionDef, around: tuple[Spot, ...], name: str) -> tuple[Source, str] | None:
    """The name that a call gives for a parameter, in the frames around."""
    for outer in reversed(around):
        statement = outer.statement
        for call in calls(statement) if statement is not None else ():
            if dotted(call.func).rpartition(".")[2] != function.name:
                continue
            at = parameters(function).index(name)
            words = {one.arg: one.value for one in call.keywords}
            node = words.get(name, call.args[at] if at < len(call.args) else None)
            if node is not None and dotted(node):
                return outer.source, dotted(node)
    return None


def _is_filled(spot: Spot, function: ast.FunctionDef, around: tuple[Spot, ...], name: str) -> bool:
    """Whether something is written into an array outside of the function."""
    source, wanted = (_given(function, around, name) if name in parameters(function) else None) or (spot.source, name)
    inside = set(ast.walk(function))
    written = [one for one in method_calls(source.tree, *_FILL) if one not in inside]
    return any(isinstance(one.func, ast.Attribute) and dotted(one.func.value) == wanted for one in written)


def _told(spot: Spot, function: ast.FunctionDef, around: tuple[Spot, ...], found: list[str]) -> Explanation:
    source = spot.source
    first = next((one for one in function.body if not _is_text(one)), function.body[0])
    blanks = indent_of(source.lines[first.lineno - 1])
    lines = tuple(f"{blanks}{name} = {_makers(spot, function, around, name)[0][1]}" for name in found)
    listed, one = " and ".join(found), len(found) == 1
    cause = (
        f"{listed} {'is a TensorArray' if one else 'are TensorArrays'} of eager code, and {function.name} is traced: "
        "its graph takes only those that are made in it."
    )
    edit = Edit(spot.file, first.lineno, first.lineno - 1, lines)
    if any(_is_filled(spot, function, around, name) for name in found):
        tf = alias(spot, "tensorflow")
        cause += " What it holds goes in as a tensor."
        advice = f"Give {function.name} its .stack(), and in it make {tf}.TensorArray(...).unstack(x) of that."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    writes_global = any(isinstance(part, ast.Global) for part in own_nodes(function))
    if writes_global or any(name.startswith("self.") for name in found):
        advice = "Make it in the function, and give on what .stack() gives; or keep a tf.Variable, which lasts."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
