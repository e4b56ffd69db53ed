"""A tf.function appends to a list that it is given: TensorFlow refuses, and a trace would do it once."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.nodes import return_values
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_SAID = re.compile(r"([\w.]+)\(.*should not modify its Python input arguments.*were modified: ?(\w*)", re.DOTALL)
_FARTHEST = 25
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tf.function was refused for a change of what it was given."""
    found, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if found is None or spot is None or statement is None:
        return None
    called = found[1].rpartition(".")[2]
    functions = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == called]
    name = (found[2] or _changed(functions[0])) if len(functions) == 1 else ""
    if not name:
        return None
    function = functions[0]
    cause = (
        f"{function.name} changes {name}, which it is given: that happens as it is traced, with tensors that have no "
        "value then."
    )
    edit = _returned(spot, statement, function, name)
    if edit is not None:
        cause += f" What it returns has one, and the caller keeps that in {name}."
    else:
        edit = _copied(spot, statement, function, name)
        cause += " A list of its own it may change." if edit is not None else ""
    advice = f"Return it from {function.name}, and change {name} where {function.name} is called."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else advice)


def _changed(function: ast.FunctionDef) -> str:
    """The argument that a function appends to, which TensorFlow does not say of `log["loss"].append(x)`."""
    found = set()
    for one in calls(function):
        node: ast.expr = one.func
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        if isinstance(one.func, ast.Attribute) and one.func.attr == "append":
            found.add(dotted(node))
    given = found & set(parameters(function))
    return given.pop() if len(given) == 1 else ""


def _copied(spot: Spot, statement: ast.stmt, function: ast.FunctionDef, name: str) -> Edit | None:
    """A list of the function's own, where the call gives one that nobody else has: `collect(x, [])`."""
    calling = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == function.name]
    given = parameters(function)
    place = given.index(name) if name in given else len(given)
    held = calling[0].args[place] if len(calling) == 1 and len(calling[0].args) > place else None
    first = function.body[0]
    if not isinstance(held, ast.List) or first.lineno == function.lineno:
        return None
    return Edit(spot.file, first.lineno, first.lineno - 1, (f"{' ' * first.col_offset}{name} = list({name})",))


def _returned(spot: Spot, statement: ast.stmt, function: ast.FunctionDef, name: str) -> Edit | None:
    """`history.append(step(x))` in the place of `step(x, history)` and of what is appended in the function."""
    appended = [
        one for one in function.body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)
        and dotted(one.value.func) == f"{name}.append" and len(one.value.args) == 1
    ]  # fmt: skip
    uses = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name]
    calling = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == function.name]
    every = [one for one in calls(spot.source.tree) if dotted(one.func).rpartition(".")[2] == function.name]
    given = parameters(function)
    if len(appended) != 1 or len(uses) != 1 or len(calling) != 1 or len(every) != 1 or name not in given:
        return None
    call, line, text = calling[0], appended[0], spot.source.text
    assert isinstance(line.value, ast.Call)
    value, returned = text(line.value.args[0]), [text(one) for one in return_values(function)]
    if returned not in ([], [value]) or (not returned and function.body[-1] is not line):
        return None
    place = given.index(name)
    words = [one for one in call.keywords if one.arg == name]
    holder = call.args[place] if len(call.args) > place else words[0].value if words else None
    if holder is None or function.args.defaults or not isinstance(holder, (ast.Name, ast.Attribute)):
        return None
    rest = [text(one) for one in call.args if one is not holder]
    rest += [f"{one.arg}={text(one.value)}" for one in call.keywords if one.value is not holder]
    called = f"{text(call.func)}({', '.join(rest)})"
    header = spot.source.lines[function.lineno - 1]
    if function.body[0].lineno == function.lineno or any(one.annotation for one in function.args.args):
        return None
    listed = ", ".join(one.arg for one in function.args.args if one.arg != name)
    new_header, count = re.subn(r"\([^()]*\)", f"({listed})", header, count=1)
    first, last = spot.source.span(statement)
    blanks = " " * statement.col_offset
    if isinstance(statement, ast.Expr) and statement.value is call:
        lines: tuple[str, ...] = (f"{blanks}{text(holder)}.append({called})",)
    elif isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1:
        to = text(statement.targets[0])
        lines = (f"{blanks}{to} = {called}", f"{blanks}{text(holder)}.append({to})")
    else:
        return None
    inside = () if returned else (f"{' ' * line.col_offset}return {value}",)
    edits = [
        Edit(spot.file, function.lineno, function.lineno, (new_header,)),
        Edit(spot.file, line.lineno, line.end_lineno or line.lineno, inside),
        Edit(spot.file, first, last, lines),
    ]
    edit = together(sorted(edits, key=lambda one: one.first), spot.source.lines)
    return edit if count and edit.last - edit.first <= _FARTHEST else None
