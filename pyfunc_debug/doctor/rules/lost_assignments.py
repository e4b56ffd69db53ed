"""A callback, or another function, that means to change what a body reads, and assigns a name of its own instead.

Without `global` an assignment in a function makes a name that ends with it. What the module calls so stays as it was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.run_functions import functions_that_ran
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding

NAMES = ("lost-assignment",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a name that is assigned so."""
    told: set[tuple[str, str]] = set()
    for ran in functions_that_ran(facts):
        own = pastes.source(facts, ran.file)
        made = [one for one in own.tree.body if isinstance(one, (ast.Assign, ast.AnnAssign))]
        of_module = {name for one in made for name in code.stored_names(one)}
        read = of_module & _read(ran.function)
        if not read:
            continue
        for function in pastes.walk(own.tree, ast.FunctionDef):
            for statement, name in _lost(function, read):
                if (ran.file, name) not in told and _is_called(own, function):
                    told.add((ran.file, name))
                    yield _finding(
                        facts, own, ran.file, getattr(ran.function, "name", "a body"), function, statement, name
                    )


def _read(function: Definition) -> set[str]:
    """What a function reads of the module's names."""
    names = {one.id for one in pastes.walk(function, ast.Name) if isinstance(one.ctx, ast.Load)}
    return names - code.local_names(function)


def _lost(function: ast.FunctionDef, names: set[str]) -> Iterator[tuple[ast.stmt, str]]:
    """The assignments in a function to a name of its own that nothing in it reads."""
    loaded = {one.id for one in pastes.walk(function, ast.Name) if not isinstance(one.ctx, ast.Store)}
    kept = {
        name for one in ast.walk(function) if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names
    }  # fmt: skip
    for one in code.own_nodes(function):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            name = one.targets[0].id
            if name in names - loaded - kept - {*code.parameters(function)}:
                yield one, name


def _is_called(own: Source, function: ast.FunctionDef) -> bool:
    """Whether something calls a function: its name stands elsewhere, or it is a method, which Keras may call."""
    named = any(one.id == function.name for one in pastes.walk(own.tree, ast.Name))
    named = named or any(one.attr == function.name for one in pastes.walk(own.tree, ast.Attribute))
    return named or isinstance(own.parent(function), ast.ClassDef)


def _finding(
    facts: Facts, own: Source, file: str, reader: str, function: ast.FunctionDef, statement: ast.stmt, name: str
) -> Finding:
    line = statement.lineno
    first = next((one for one in own.tree.body if name in code.stored_names(one)), statement)
    return Finding(
        NAMES[0], "error", None, (),
        f"line {line} assigns {name} in {function.name}, where that is a name of its own, which nothing reads: "
        f"{reader} reads the module's {name} (line {first.lineno}), which stays as it is",
        pastes.written(pastes.above(facts, file, line, f"global {name}")) or f"global {name} above line {line}",
        file, line, evidence=tuple(f"line {one}: {facts.line(file, one)}" for one in (line, first.lineno)),
    )  # fmt: skip
