"""A session of TensorFlow 1 reads a variable that no initializer has run for.

`global_variables_initializer()` makes an op for the variables that the graph has at that line: an optimizer made behind
it adds its own (tensorflow/python/ops/variables.py).
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "uninitialized"
_SAID = re.compile(
    r"Could not find variable (\S+?)\. This could mean that the variable has been deleted"
    r"|Attempting to use uninitialized value (\S+)"
    r"|Could not find resource: localhost/(\S+)\)|Resource localhost/(\S+)/\w+ does not exist"
)
_GLOBAL = {"global_variables_initializer", "initialize_all_variables"}
_LOCAL = {"local_variables_initializer", "initialize_local_variables"}
_RESTORES = {"restore", "load", "import_meta_graph", "MonitoredTrainingSession", "MonitoredSession"}
"""What gives variables values in another way."""
_OTHERS = {"np", "numpy", "json", "pickle", "yaml", "torch", "joblib", "toml"}
"""Modules whose `load` is of something else."""
_V1 = ("Session", "InteractiveSession", "placeholder", "get_variable", "py_func")
_FARTHEST = 20
"""Lines that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a session's run met a variable without a value."""
    found, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if found is None or spot is None or statement is None or situation.body:
        return None
    runs = [one for one in calls(statement) if session_of(one, spot) is not None]
    every = list(calls(spot.source.tree))
    elsewhere = [one for _, source in situation.sources() if source is not spot.source for one in calls(source.tree)]
    v1 = {dotted(one.func).rpartition(".")[0] for one in every if _last(one) in _V1} - {""}
    if len(runs) != 1 or not v1 or any(map(_restores, (*every, *elsewhere))):
        return None
    name, graph = next(filter(None, found.groups())), session_of(runs[0], spot).graph
    wanted = _LOCAL if name in [one.op.name for one in graph.get_collection("local_variables")] else _GLOBAL
    made = [one for one in every if _last(one) in wanted]
    session = dotted(runs[0].func).rpartition(".")[0]
    module = min(v1, key=lambda one: (not one.endswith("v1"), one))
    if not made and not any(_last(one) in wanted for one in elsewhere):
        initializer = next(one for one in wanted if one.endswith("variables_initializer"))
        cause = f"{name} has no value yet: the program runs no {initializer}, which gives variables theirs."
        return _explained(spot, cause, _above(spot, statement, f"{session}.run({module}.{initializer}())"))
    return _of_initializer(spot, statement, name, graph, made, session) if len(made) == 1 else None


def _explained(spot: Spot, cause: str, edit: Edit | None, advice: str = "") -> Explanation:
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _restores(call: ast.Call) -> bool:
    """Whether a call may give variables values in another way than an initializer: not `np.load`."""
    return _last(call) in _RESTORES and dotted(call.func).partition(".")[0] not in _OTHERS


def _last(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2]


def session_of(call: ast.Call, spot: Spot) -> Any:
    """The session that a call of `run` is one of."""
    held = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) and call.func.attr == "run" else None
    kinds = {one.__name__ for one in type(held).__mro__ if one.__module__.endswith(".client.session")}
    return held if kinds else None


def _above(spot: Spot, statement: ast.stmt, text: str) -> Edit | None:
    """A line above a statement, or above the loops that it is in."""
    top = statement
    for one in spot.source.around(statement):
        if isinstance(one, (ast.FunctionDef, ast.Lambda, ast.With)):
            break
        if isinstance(one, (ast.For, ast.While)):
            top = one
    return Edit(spot.file, top.lineno, top.lineno - 1, (indent_of(spot.source.lines[top.lineno - 1]) + text,))


def _of_initializer(
    spot: Spot, statement: ast.stmt, name: str, graph: Any, made: list[ast.Call], session: str
) -> Explanation | None:
    """An initializer that is made, and does not run before the failing line, or does not know the variable."""
    source, call = spot.source, made[0]
    line = source.statement(call.lineno)
    target = line.targets[0] if isinstance(line, ast.Assign) and line.value is call else None
    kept = target.id if isinstance(target, ast.Name) else ""
    run = [
        one for one in calls(source.tree)
        if _last(one) == "run" and any(isinstance(part, ast.Name) and part.id == kept for part in ast.walk(one))
    ]  # fmt: skip
    if kept and not run and call.lineno < spot.line:
        cause = f"{name} has no value yet: {kept} (line {call.lineno}) gives the variables theirs, and nothing runs it."
        return _explained(spot, cause, _above(spot, statement, f"{session}.run({kept})"))
    born = line_of(graph, name, spot.file)
    if line is None or born is None or not call.lineno < born < spot.line:
        return None
    cause = (
        f"{name} has no value: {_last(call)} (line {call.lineno}) is for the variables that are there by then, and "
        f"line {born} makes this one."
    )
    advice = f"Make the initializer behind line {born}."
    edit = _behind(spot, line, born, kept)
    return _explained(spot, cause, edit, "" if edit is not None else advice)


def line_of(graph: Any, name: str, file: str) -> int | None:
    """The user's line that made a variable."""
    try:
        frames = graph.get_operation_by_name(name).traceback
    except (KeyError, ValueError):
        return None
    lines = [one.lineno for one in frames if one.filename == file]
    return lines[-1] if lines else None


def _behind(spot: Spot, line: ast.stmt, born: int, kept: str) -> Edit | None:
    """The initializer's line behind the one that makes the variable, where nothing between needs it."""
    source, block = spot.source, spot.source.block(line)
    after = [one for one in block or [] if one.lineno > line.lineno]
    holder = next((one for one in after if one.lineno <= born <= (one.end_lineno or one.lineno)), None)
    if holder is None:
        return None
    between = after[: after.index(holder) + 1]
    read = {part.id for one in between for part in ast.walk(one) if isinstance(part, ast.Name)}
    runs = any(_last(part) in ("run", "eval") for one in between for part in calls(one))
    end = holder.end_lineno or holder.lineno
    if kept in read or runs or end - line.lineno >= _FARTHEST or (line.end_lineno or line.lineno) != line.lineno:
        return None
    return Edit(
        spot.file, line.lineno, end, (*source.lines[line.lineno : end], source.lines[line.lineno - 1])
    )  # fmt: skip
