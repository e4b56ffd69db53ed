"""A generator that iterates the dataset made of it: `dataset = from_generator(lambda: iter(dataset))`."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted


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
    given = call.args[0] if call.args else None
    value = given.body if isinstance(given, ast.Lambda) and not given.args.args else None
    if isinstance(value, ast.Call) and dotted(value.func) == "iter" and len(value.args) == 1:
        value = value.args[0]
    statement = own.statement(call.lineno)
    if not isinstance(value, ast.Name) or not isinstance(statement, ast.Assign):
        return None
    if [dotted(one) for one in statement.targets] != [value.id] or not isinstance(given, ast.Lambda):
        return None
    name = value.id
    text = f"the lambda in line {call.lineno} reads {name} when it is called, and {name} is the dataset itself then: "
    text += "each pass begins another one"
    used = {one.id for one in pastes.walk(own.tree, ast.Name)}
    new = next((one for one in ("data", f"{name}_rows", "rows_of_data") if one not in used), "")
    kept = f"lambda {new}={name}: {own.text_with(given.body, {value: new})}"
    fix = pastes.written(pastes.replaced(facts, file, {given: kept})) if new else ""
    return text, fix, file, call.lineno
