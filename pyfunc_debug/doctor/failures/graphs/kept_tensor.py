"""A symbolic tensor that Python kept while a function was traced, and that is asked for its value afterwards."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.graphs import state_changes
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.each_time import each_time
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, held, is_keras, is_symbolic

RULE = "leaked-tensor"
_SAID = re.compile(
    r"'(?:SymbolicTensor|Tensor)' object has no attribute|Cannot convert a symbolic|cannot be interpreted as an integer"
    r"|(?:float|int)\(\) argument must be|to a NumPy array|of type <class '[\w.]*SymbolicTensor'>"
)
_KEEP = ("append", "add")
_NEAR = 6
"""Lines between those that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line runs eagerly and reads a tensor of a graph that is long built."""
    spot = situation.last
    if spot is None or situation.body or not _SAID.search(situation.message):
        return None
    statement = spot.statement
    if statement is None:
        return None
    name, function = holder(statement, spot), spot.function
    built = name is not None and _is_built(name, spot)
    if name is None or (_tracing(situation) and not built):
        return None
    kept = kept_at(spot.source, name.rpartition(".")[2])
    local = kept is None or kept[1] is function or name in spot.variables
    if isinstance(function, ast.FunctionDef) and local and not built:
        return None  # a local one may be of the graph that is being built
    assigned = _assigned(spot.source, name.rpartition(".")[2], function) if built else []
    if kept is None and assigned:
        kept = assigned[0]
    where = f" in line {kept[0].lineno}, while {kept[1].name} was traced" if kept is not None else " at a trace"
    cause = (
        f"`{short(spot.source.text(statement).split(chr(10))[0], 40)}` reads a tensor of a graph that {name} kept"
        f"{where}: once, as a symbol. It has no value; each run of the graph makes values that nobody keeps."
    )
    edit = None
    if kept is not None and isinstance(kept[0], ast.Call):
        edit = kept_each_time(spot, kept[0], kept[1])
    elif assigned:
        edit = _assigned_each_time(spot, assigned)
    if edit is None and kept is not None and isinstance(kept[0], (ast.Assign, ast.AugAssign)):
        edit = state_changes.kept_in_python(spot, kept[0], kept[1])
    advice = "" if edit is not None else "Return it from the traced function, and keep what the call gives."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _is_built(name: str, spot: Spot) -> bool:
    """Whether what a name holds is of graphs that are finished: nothing of them is being traced."""
    value = held(ast.parse(name, mode="eval").body, spot)
    parts: list[Any] = [value]
    if isinstance(value, (dict, list, tuple)):
        parts = list(value.values() if isinstance(value, dict) else value)
    tensors = [one for one in parts if _is_kept(one)]
    return bool(tensors) and all(getattr(one.graph, "structured_outputs", None) is not None for one in tensors)


def _assigned(source: Source, name: str, but: object) -> list[tuple[ast.Assign, ast.FunctionDef]]:
    """The lines of one function that assign a tensor to an attribute, or to entries of a dict, of this name."""
    found = [
        (one, function) for function in ast.walk(source.tree)
        if isinstance(function, ast.FunctionDef) and function.name not in ("__init__", "build") and function is not but
        for one in ast.walk(function) if isinstance(one, ast.Assign) and len(one.targets) == 1
        and source.function(one.lineno) is function and _keeps(one.targets[0], name)
        and not isinstance(one.value, (ast.Constant, ast.Dict, ast.List, ast.Tuple))
    ]  # fmt: skip
    return found if len({id(function) for _, function in found}) == 1 else []


def _keeps(target: ast.expr, name: str) -> bool:
    if isinstance(target, ast.Subscript):
        return isinstance(target.slice, ast.Constant) and dotted(target.value).rpartition(".")[2] == name
    return isinstance(target, ast.Attribute) and target.attr == name


def _assigned_each_time(spot: Spot, assigned: list[tuple[ast.Assign, ast.FunctionDef]]) -> Edit | None:
    """The same with py_functions that assign the values, in each run of the graph."""
    source, tf = spot.source, alias(spot, "tensorflow")
    edits = []
    for one, function in assigned:
        target, blanks = one.targets[0], indent_of(source.lines[one.lineno - 1])
        if not isinstance(target, (ast.Attribute, ast.Subscript)) or one.lineno != one.end_lineno:
            return None
        if any(isinstance(part, ast.expr) and ast.unparse(part) == ast.unparse(target) for part in ast.walk(one.value)):
            return None  # the graph goes on with what it was at trace
        owner = source.text(target.value)
        put = f'setattr({owner}, "{target.attr}", value)' if isinstance(target, ast.Attribute) else (
            f"{owner}.__setitem__({source.text(target.slice)}, value)"
        )  # fmt: skip
        reads = any(
            isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Load)
            and source.text(part) == source.text(target) for part in ast.walk(function)
        )  # fmt: skip
        given = source.text(target if reads else one.value)
        lines: tuple[str, ...] = (f"{blanks}{tf}.py_function(lambda value: {put}, [{given}], [])",)
        if reads:
            lines = (source.lines[one.lineno - 1], *lines)
        edits.append(Edit(spot.file, one.lineno, one.lineno, lines))
    first, last = min(one.first for one in edits), max(one.last for one in edits)
    return together(edits, source.lines) if last - first <= _NEAR else None


def kept_each_time(spot: Spot, call: ast.Call, function: ast.FunctionDef) -> Edit | None:
    """The line that keeps a tensor, in a py_function."""
    new = each_time(spot.source, function, call, alias(spot, "tensorflow"))
    found = spot.source.replaced({call: new}) if new is not None else None
    return edit_of(spot.file, found)


def _tracing(situation: Situation) -> bool:
    """Whether any of the user's frames was being traced."""
    return any(spot.by or spot.generated for spot in situation.spots) or wrapping.entry(situation)[1] != ""


def holder(statement: ast.stmt, spot: Spot) -> str | None:
    """What the statement reads the tensor from: a list or dict of them; else a name or an attribute that is one."""
    single = None
    for one in ast.walk(statement):
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant):
            owner = held(one.value, spot)
            if isinstance(owner, dict) and _is_kept(owner.get(one.slice.value)) and dotted(one.value):
                return dotted(one.value)
        if not isinstance(one, (ast.Name, ast.Attribute)) or not isinstance(one.ctx, ast.Load) or not dotted(one):
            continue
        value = held(one, spot)
        if _is_kept(value):
            single = single or dotted(one)
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)) and value and all(map(_is_kept, value)):
            return dotted(one)
    return single


def _is_kept(value: object) -> bool:
    """Whether it is of a function's graph: not a Keras input, and not of the one graph that a v1 program builds."""
    graph = getattr(value, "graph", None) if is_symbolic(value) and not is_keras(value) else None
    return type(graph).__name__.endswith("FuncGraph")


def kept_at(source: Source, name: str) -> tuple[ast.expr | ast.stmt, ast.FunctionDef] | None:
    """The only line that keeps something under a name, and the function that it is in."""
    found: list[tuple[ast.expr | ast.stmt, ast.FunctionDef]] = []
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef) or function.name == "__init__":
            continue
        for call in calls(function):
            owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in _KEEP else None
            if owner is not None and dotted(owner).rpartition(".")[2] == name and len(call.args) == 1:
                found.append((call, function))
        for one in ast.walk(function):
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            if not isinstance(one, (ast.Assign, ast.AugAssign)):
                continue
            parts = [two.value if isinstance(two, ast.Subscript) else two for two in targets]
            if any(dotted(two).rpartition(".")[2] == name for two in parts):
                found += [(one, function)] * any(isinstance(two, (ast.Attribute, ast.Subscript)) for two in targets)
    return found[0] if len(found) == 1 else None
