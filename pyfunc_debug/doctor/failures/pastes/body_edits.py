"""What the explanations of a body's values share: what a name holds, and edits of one line."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Function

RULE = "body-input"


def holds(spot: Spot, name: str, kind: str) -> bool:
    """Whether a variable holds a value of a type of this name."""
    return name in spot.variables and type(spot.variables[name]).__name__ == kind


def in_place(spot: Spot, pieces: dict[ast.expr, str]) -> Edit | None:
    """The lines of some expressions with other text in their place."""
    if not pieces:
        return None
    found = spot.source.replaced(pieces)
    return edit_of(spot.file, found)


def of_a_tensor(spot: Spot, pieces: dict[ast.expr, str], said: str) -> Explanation | None:
    """Names in a line, which hold eager tensors, and what is to stand in their place."""
    return of_names(spot, pieces, f"a py_function gives its body eager tensors, and NAME is one: {said}")


def of_names(spot: Spot, pieces: dict[ast.expr, str], cause: str) -> Explanation | None:
    """Names in a line, and what is to stand in their place; NAME in the cause is the first of them."""
    edit = in_place(spot, pieces)
    if edit is None:
        return None
    name = next(iter(pieces)).id  # type: ignore[attr-defined]
    return Explanation(RULE, spot.file, spot.line, cause.replace("NAME", name, 1), edit)


def value_of(spot: Spot, name: str) -> str:
    """An eager tensor's value: text for text."""
    dtype = getattr(getattr(spot.variables[name], "dtype", None), "name", "")
    return f"{name}.numpy().decode()" if dtype == "string" else f"{name}.numpy()"


def is_generator(function: Function) -> bool:
    """Whether a function yields."""
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(function))


def first_statement(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line of a function's first statement behind its docstring."""
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    return body[1 if documented else 0].lineno
