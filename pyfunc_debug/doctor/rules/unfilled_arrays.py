"""A body that returns memory that nobody filled: `np.empty(n)` of which it fills as many as it has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.run_functions import functions_that_ran
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding

NAMES = ("unfilled-array",)
_MAKERS = ("empty", "empty_like")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding an array."""
    for ran in functions_that_ran(facts):
        np = pastes.module(facts, ran.file, "numpy")
        if np is None or isinstance(ran.function, ast.Lambda):
            continue
        own = pastes.source(facts, ran.file)
        for made, call in _arrays(ran.function, np):
            name = ast.unparse(made.targets[0])
            part = _part_filled(ran.function, made, name)
            if part is None:
                continue
            filled = own.text(part.targets[0])
            zeros = dotted(call.func).replace("empty", "zeros")
            yield Finding(
                NAMES[0], "error", ran.group[0].id if ran.group else None, (),
                f"{own.text(call)} is memory that nobody filled, and line {part.lineno} fills {filled} only: the rest "
                f"of {name} is whatever stood there before, other numbers in each run",
                pastes.written(pastes.replaced(facts, ran.file, {call.func: zeros})) or f"{zeros}(...) in its place",
                ran.file, made.lineno, several(one.id for one in ran.group),
                (f"line {part.lineno}: {facts.line(ran.file, part.lineno)}",), confidence="likely",
            )  # fmt: skip


def _arrays(function: Definition, np: str) -> Iterator[tuple[ast.Assign, ast.Call]]:
    for one in code.own_nodes(function):
        named = isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
        if not named or not isinstance(one, ast.Assign) or not isinstance(one.value, ast.Call):
            continue
        if dotted(one.value.func) in [f"{np}.{name}" for name in _MAKERS]:
            yield one, one.value


def _part_filled(function: Definition, made: ast.Assign, name: str) -> ast.Assign | None:
    """The one place that fills such an array, up to a length that is asked of something; None for others."""
    stores: list[ast.Assign] = []
    for one in code.own_nodes(function):
        if one is made:
            continue
        if isinstance(one, ast.Assign) and any(code.root(target) == name for target in one.targets):
            stores.append(one)
        elif isinstance(one, (ast.AugAssign, ast.For)) and code.root(one.target) == name:
            return None
        elif isinstance(one, ast.Call) and (
            (dotted(one.func).startswith(f"{name}."))
            or any(isinstance(part, ast.keyword) and code.root(part.value) == name for part in one.keywords)
        ):
            return None  # out=buffer, buffer.fill(0)
    if len(stores) != 1 or not isinstance(target := stores[0].targets[0], ast.Subscript):
        return None
    index = target.slice
    if not isinstance(index, ast.Slice) or index.step is not None or not _is_start(index.lower):
        return None
    return stores[0] if _is_length(function, index.upper) else None


def _is_start(lower: ast.expr | None) -> bool:
    return lower is None or (isinstance(lower, ast.Constant) and lower.value == 0)


def _is_length(function: Definition, upper: ast.expr | None) -> bool:
    """Whether it is `len(ids)`, or a name of that."""
    upper = pastes.behind_name(function, upper) if upper is not None else None
    return upper is not None and any(ast.unparse(one.func) == "len" for one in pastes.walk(upper, ast.Call))
