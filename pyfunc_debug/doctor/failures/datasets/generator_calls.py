"""The calls of `Dataset.from_generator` in a program, and the generators that they are given."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names
from pyfunc_debug.records import FROM_GENERATOR

_FAILED = (
    "SELECT s.frames FROM call c JOIN node n ON n.id = c.node JOIN stack s ON s.id = n.stack JOIN function f "
    "ON f.id = n.function WHERE c.status = 'error' AND f.name = ? ORDER BY c.id LIMIT 1"
)


def calls(situation: Situation) -> list[tuple[str, Source, ast.Call]]:
    """The calls of from_generator in the user's files; that of the generator that failed first, where it is known."""
    found = [
        (file, source, one)
        for file, source in situation.sources()
        for one in ast.walk(source.tree)
        if isinstance(one, ast.Call) and dotted(one.func).endswith("from_generator")
    ]
    rows = situation.rows(_FAILED, (FROM_GENERATOR,)) if len(found) > 1 else []
    lines = [(file, line) for (frames,) in rows for file, line, *_ in json.loads(frames)]
    return sorted(found, key=lambda one: not any(_holds(one[2], line) for file, line in lines if file == one[0]))


def _holds(call: ast.Call, line: int) -> bool:
    return call.lineno <= line <= (call.end_lineno or call.lineno)


def given(call: ast.Call) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == "generator"), call.args[0] if call.args else None)


def types_alone(call: ast.Call) -> ast.expr | None:
    """The dtypes that a call of from_generator declares, where it says nothing of shapes."""
    named = {one.arg: one.value for one in call.keywords}
    if len(call.args) > 2 or {"output_shapes", "output_signature", None} & named.keys():
        return None
    return named.get("output_types", call.args[1] if len(call.args) > 1 else None)


def assigned(call: ast.Call, source: Source) -> Iterator[ast.expr]:
    """What the names in a call's declarations stand for, where the file assigns them once."""
    said = ("output_types", "output_shapes", "output_signature")
    given = [one.value for one in call.keywords if one.arg in said] + call.args[1:3]
    for name in dict.fromkeys(name for one in given for name in names(one)):
        found = [
            one.value for one in ast.walk(source.tree)
            if isinstance(one, ast.Assign) and any(dotted(target) == name for target in one.targets)
        ]  # fmt: skip
        if len(found) == 1:
            yield found[0]


def function_of(source: Source, given: ast.expr | None) -> ast.FunctionDef | None:
    """The generator function behind what is passed: its name, a call of it, or a lambda around one."""
    while isinstance(given, (ast.Lambda, ast.Call)):
        given = given.body if isinstance(given, ast.Lambda) else given.func
    name = given.id if isinstance(given, ast.Name) else given.attr if isinstance(given, ast.Attribute) else ""
    made = [
        one.value.func for one in ast.walk(source.tree)
        if isinstance(given, ast.Name) and isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        and given.id in map(dotted, one.targets)
    ]  # fmt: skip
    if len(made) == 1 and isinstance(made[0], ast.Name):  # `data = Data()`: its `__call__`
        name = made[0].id
    for one in ast.walk(source.tree):
        if isinstance(one, ast.FunctionDef) and one.name == name:
            return one
        if isinstance(one, ast.ClassDef) and one.name == name:  # an object of it is given
            called = [part for part in one.body if isinstance(part, ast.FunctionDef) and part.name == "__call__"]
            return called[0] if called else None
    return None


def yields_of(function: ast.FunctionDef | None) -> list[ast.Yield]:
    if function is None:
        return []
    return [one for one in ast.walk(function) if isinstance(one, ast.Yield) and one.value is not None]
