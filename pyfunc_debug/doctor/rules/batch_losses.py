"""A loss for Keras that adds up over axis 0, the rows of the batch: a number for each output instead of one a row."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.failures.models.batch_losses import over_batch
from pyfunc_debug.records import Finding

NAMES = ("batch-loss",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loss function."""
    told = {(one.file, one.line) for one in failures(facts, NAMES)}
    for file in dict.fromkeys(file for file, _ in pastes.keras_sites(facts)):
        tree = facts.tree(file)
        named = {name for call in pastes.walk(tree, ast.Call) if pastes.last_name(call.func) == "compile"
                 for name in _losses(pastes.argument(call, 1, "loss"))}  # fmt: skip
        for one in pastes.walk(tree, ast.FunctionDef):
            found = over_batch(one) if one.name in named else None
            if found is None or not (found.sums and found.bent) or (file, found.call.lineno) in told:
                continue
            text = pastes.text_of(facts, file, found.call)
            yield Finding(
                NAMES[0], "warning", None, (),
                f"{one.name} adds up over axis 0, the rows of the batch: it gives a number for each output, and Keras "
                "expects one for each row. What it shows and trains on grows with the batch, and weights of rows fail",
                pastes.written(pastes.replaced(facts, file, {found.axis: "-1"})) or "the sum over axis -1",
                file, found.call.lineno, evidence=(f"line {found.call.lineno}: {text}",), confidence="likely",
            )  # fmt: skip


def _losses(loss: ast.expr | None) -> Iterator[str]:
    """The names of the functions that stand in what `compile` was given for its loss."""
    parts: list[ast.expr] = [loss] if isinstance(loss, (ast.Name, ast.Attribute)) else []
    parts = loss.elts if isinstance(loss, (ast.List, ast.Tuple)) else parts
    parts = loss.values if isinstance(loss, ast.Dict) else parts
    yield from (pastes.last_name(one) for one in parts)
