"""A symbolic tensor that Python kept while a function was traced, and that is asked for its value afterwards."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures import state_changes, wrapping
from pyfunc_debug.doctor.failures.each_time import each_time
from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import Source, dotted, short
from pyfunc_debug.doctor.failures.symbols import alias, calls, is_keras, is_symbolic

RULE = "leaked-tensor"
_SAID = re.compile(
    r"'(?:SymbolicTensor|Tensor)' object has no attribute|Cannot convert a symbolic|cannot be interpreted as an integer"
    r"|(?:float|int)\(\) argument must be|to a NumPy array|of type <class '[\w.]*SymbolicTensor'>"
)
_KEEP = ("append", "add")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line runs eagerly and reads a tensor of a graph that is long built."""
    spot = situation.last
    if spot is None or situation.body or not _SAID.search(situation.message) or _tracing(situation):
        return None
    statement = spot.source.statement(spot.line)
    if statement is None:
        return None
    name, function = holder(statement, spot), spot.function
    if name is None:
        return None
    kept = kept_at(spot.source, name.rpartition(".")[2])
    if isinstance(function, ast.FunctionDef) and (kept is None or kept[1] is function or name in spot.variables):
        return None  # a local one may be of the graph that is being built
    where = f" in line {kept[0].lineno}, while {kept[1].name} was traced" if kept is not None else " at a trace"
    cause = (
        f"`{short(spot.source.text(statement).split(chr(10))[0], 40)}` reads a tensor of a graph that {name} kept"
        f"{where}: once, as a symbol. It has no value; each run of the graph makes values that nobody keeps."
    )
    edit = None
    if kept is not None and isinstance(kept[0], ast.Call):
        edit = kept_each_time(spot, kept[0], kept[1])
    if kept is not None and isinstance(kept[0], (ast.Assign, ast.AugAssign)):
        edit = state_changes.kept_in_python(spot, kept[0], kept[1])
    advice = "" if edit is not None else "Return it from the traced function, and keep what the call gives."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def kept_each_time(spot: Spot, call: ast.Call, function: ast.FunctionDef) -> Edit | None:
    """The line that keeps a tensor, in a py_function."""
    new = each_time(spot.source, function, call, alias(spot, "tensorflow"))
    found = spot.source.replaced({call: new}) if new is not None else None
    return None if found is None else Edit(spot.file, found[0], found[1], (found[2],))


def _tracing(situation: Situation) -> bool:
    """Whether any of the user's frames was being traced."""
    return any(spot.by or spot.generated for spot in situation.spots) or wrapping.entry(situation)[1] != ""


def holder(statement: ast.stmt, spot: Spot) -> str | None:
    """What the statement reads the tensor from: a list or dict of them; else a name or an attribute that is one."""
    single = None
    for one in ast.walk(statement):
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant):
            owner = _read(one.value, spot)
            if isinstance(owner, dict) and _is_kept(owner.get(one.slice.value)) and dotted(one.value):
                return dotted(one.value)
        if not isinstance(one, (ast.Name, ast.Attribute)) or not isinstance(one.ctx, ast.Load) or not dotted(one):
            continue
        value = _read(one, spot)
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


def _read(node: ast.expr, spot: Spot) -> object:
    """The value of `a.b.c`, read from the objects' own variables: runs nothing."""
    if isinstance(node, ast.Name):
        return spot.value(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    owner = _read(node.value, spot)
    try:
        return vars(owner).get(node.attr)
    except TypeError:
        return None


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
