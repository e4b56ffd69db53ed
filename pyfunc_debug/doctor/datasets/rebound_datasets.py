"""A generator that iterates the dataset made of it, which got the name of what it was to iterate."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted


def told(facts: Facts, node: int | None) -> tuple[str, str, str, int] | None:
    """Why calls of a generator wait for each other: a sentence, the paste, the file and the line; None for another one.

    Args:
      facts: The recording.
      node: The node of its elements.
    """
    found = pastes.dataset_call(facts, facts.nodes[node]) if node is not None and node in facts.nodes else None
    if found is None:
        return None
    file, call = found
    own = pastes.source(facts, file)
    given, statement = call.args[0] if call.args else None, own.statement(call.lineno)
    names = [dotted(one) for one in statement.targets] if isinstance(statement, ast.Assign) else []
    if isinstance(given, ast.Name):
        return _of_function(own, file, call, given.id, names)
    value = given.body if isinstance(given, ast.Lambda) and not given.args.args else None
    if isinstance(value, ast.Call) and dotted(value.func) == "iter" and len(value.args) == 1:
        value = value.args[0]
    if not isinstance(value, ast.Name) or names != [value.id] or not isinstance(given, ast.Lambda):
        return None
    name = value.id
    used = {one.id for one in pastes.walk(own.tree, ast.Name)}
    new = next((one for one in ("data", f"{name}_rows", "rows_of_data") if one not in used), "")
    kept = f"lambda {new}={name}: {own.text_with(given.body, {value: new})}"
    fix = pastes.written(pastes.replaced(facts, file, {given: kept})) if new else ""
    return _said(f"the lambda in line {call.lineno}", name), fix, file, call.lineno


def _said(who: str, name: str) -> str:
    return f"{who} reads {name} when it is called, and {name} is the dataset itself then: each pass begins another one"


def _of_function(
    own: Source, file: str, call: ast.Call, called: str, names: list[str]
) -> tuple[str, str, str, int] | None:
    """The same of a function that loops over the name: its value of before becomes the default of an argument."""
    functions = [
        one for one in ast.walk(own.tree)
        if isinstance(one, ast.FunctionDef) and one.name == called and one.lineno < call.lineno
    ]  # fmt: skip
    if not functions or len(names) != 1:
        return None
    function, name = max(functions, key=lambda one: one.lineno), names[0]  # a name may have been another's before
    looped = [one.iter for one in code.own_nodes(function) if isinstance(one, ast.For)]
    looped += [
        one for one in code.own_nodes(function) if isinstance(one, ast.Call) and dotted(one.func) in ("iter", "next")
    ]
    read = {one.id for each in looped for one in ast.walk(each) if isinstance(one, ast.Name)}
    if name not in read or name in code.local_names(function):
        return None
    before = any(
        isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [name]
        and (one.end_lineno or one.lineno) < function.lineno
        for one in ast.walk(own.tree)
    )  # fmt: skip
    if before:
        fix = pastes.written(pastes.with_default(file, own.lines, function, f"{name}={name}"))
    else:
        fix = f"call what line {call.lineno} makes by another name than {name}, there and below"
    return _said(called, name), fix, file, function.lineno if before else call.lineno
