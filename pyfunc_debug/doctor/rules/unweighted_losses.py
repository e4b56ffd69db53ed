"""Weights of rows or classes in `fit`, and a loss that returns one number for the batch: no row counts more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.models.compiled_losses import compiled_losses
from pyfunc_debug.records import Finding

NAMES = ("unweighted-loss",)
_MEANS = ("reduce_mean", "reduce_sum", "mean", "sum")
_WEIGHTS = ("sample_weight", "class_weight")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loss."""
    told: set[tuple[str, int]] = set()
    for file, line in pastes.keras_sites(facts):
        fit = pastes.call_at(facts, file, line, "fit")
        weights = next((one for one in (fit.keywords if fit is not None else ()) if one.arg in _WEIGHTS), None)
        if fit is None or weights is None or (isinstance(weights.value, ast.Constant) and weights.value.value is None):
            continue
        for function in compiled_losses(facts, file):
            numbers = _numbers(function)
            if numbers and (file, function.lineno) not in told:
                told.add((file, function.lineno))
                yield _finding(facts, file, function, numbers, weights)


def _numbers(function: ast.FunctionDef) -> list[ast.Call]:
    """The means over all axes that a loss returns; none where it returns something else, too."""
    found: list[ast.Call] = []
    for value in pastes.returns(function):
        made = value
        if isinstance(value, ast.Name):
            given = [
                one.value for one in code.own_nodes(function)
                if isinstance(one, ast.Assign) and [ast.unparse(target) for target in one.targets] == [value.id]
            ]  # fmt: skip
            made = given[0] if len(given) == 1 else value
        made = made.operand if isinstance(made, ast.UnaryOp) else made
        whole = isinstance(made, ast.Call) and pastes.last_name(made.func) in _MEANS and "." in ast.unparse(made.func)
        if not whole or not isinstance(made, ast.Call) or len(made.args) != 1 or made.keywords:
            return []
        found.append(made)
    return found


def _finding(
    facts: Facts, file: str, function: ast.FunctionDef, numbers: list[ast.Call], weights: ast.keyword
) -> Finding:
    own = pastes.source(facts, file)
    return Finding(
        NAMES[0], "warning", None, (),
        f"{function.name} returns one number for the whole batch, and fit got {weights.arg}: Keras multiplies that "
        "number by the weights of all rows, and no row counts more than another. One loss a row is weighted",
        pastes.all_replaced(facts, file, {one: own.with_argument(one, "axis=-1") for one in numbers}),
        file, numbers[0].lineno,
        evidence=(
            f"line {numbers[0].lineno}: {facts.line(file, numbers[0].lineno)}",
            f"line {weights.value.lineno}: {facts.line(file, weights.value.lineno)}",
        ),
        confidence="likely",
    )  # fmt: skip
