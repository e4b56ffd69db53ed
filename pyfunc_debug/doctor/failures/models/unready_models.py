"""Models that Keras cannot train yet: no loss, not compiled, a sequence without a batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.models import missing_losses
from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import (
    calls,
    extends_keras,
    lookup,
    of_keras,
)

RULE = "structure"
_NO_LOSS = "No loss to compute. Provide a `loss` argument in `compile()`"
_UNCOMPILED = re.compile(
    r"'(?P<kind>\w+)' object has no attribute '(?P<attribute>optimizer|loss)'|^You must call `compile\(\)` before"
)
_EMPTY = "The PyDataset has length 0"
_DATASETS = {"Sequence", "PyDataset"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a model lacks what training needs."""
    spot, message = situation.last, situation.message
    if spot is None or situation.body:
        return None
    if _NO_LOSS in message:
        return _without_loss(situation, spot)
    if (said := _UNCOMPILED.search(message)) is not None:
        return _uncompiled(situation, spot, said["attribute"], said["kind"])
    return _without_batches(situation) if message == _EMPTY else None


def _without_loss(situation: Situation, spot: Spot) -> Explanation | None:
    """`compile` without a loss."""
    for at, fit in failed_fits(situation):
        owner = dotted(fit.func).rpartition(".")[0]
        made = [
            one for one in calls(at.source.tree)
            if isinstance(one.func, ast.Attribute) and one.func.attr == "compile" and dotted(one.func.value) == owner
        ]  # fmt: skip
        model = lookup(fit.func.value, at) if isinstance(fit.func, ast.Attribute) else None
        if len(made) != 1 or extends_keras(type(model)):
            continue
        cause = f"compile of {owner} was given no loss: there is nothing to make smaller."
        fitting = missing_losses.fitting(situation, at, fit, model)
        if fitting is None:
            return Explanation(RULE, at.file, made[0].lineno, cause, None, "Give it one: loss=...")
        loss, why = fitting
        edit = edit_of(at.file, at.source.replaced({made[0]: at.source.with_argument(made[0], f"loss={loss}")}))
        return Explanation(RULE, at.file, made[0].lineno, f"{cause} {why}", edit, "", "likely")
    return None


def _uncompiled(situation: Situation, spot: Spot, attribute: str | None, kind: str | None) -> Explanation | None:
    """A model whose optimizer is asked for, or that is trained, before `compile`."""
    statement = situation.statement
    for one in ast.walk(statement) if statement is not None else ():
        if not isinstance(one, ast.Attribute):
            continue
        model = lookup(one.value, spot)
        named = attribute is None or (one.attr == attribute and type(model).__name__ == kind)
        if named and model is not None and of_keras(type(model), "Model") and not vars(model).get("compiled", True):
            name = spot.source.text(one.value)
            later = [
                call for call in calls(spot.source.tree)
                if dotted(call.func) == f"{name}.compile" and call.lineno > spot.line
            ]  # fmt: skip
            cause = f"{name} is not compiled yet: it has its optimizer and its loss by compile."
            cause += f" That stands in line {later[0].lineno}." if later else ""
            advice = f'Call {name}.compile(optimizer="adam", loss=...) above this line.'
            return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None


def _without_batches(situation: Situation) -> Explanation | None:
    """A PyDataset whose `__len__` rounds down to 0."""
    found = [
        (file, source, method, one) for file, source in situation.sources() for method in _lengths(source.tree)
        for one in ast.walk(method) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.FloorDiv)
    ]  # fmt: skip
    if len(found) != 1:
        return None
    file, source, method, division = found[0]
    value = next((one.value for one in ast.walk(method) if isinstance(one, ast.Return)), None)
    if value is None:
        return None
    rows, batch = source.text(division.left), source.atom(division.right)
    edit = edit_of(file, source.replaced({value: f"({rows} + {batch} - 1) // {batch}"}))
    cause = (
        f"`{source.text(division)}` is 0: there are fewer rows than one batch has, or none. Rounded up, the last batch "
        "is a smaller one."
    )
    return Explanation(RULE, file, division.lineno, cause, edit)


def _lengths(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The `__len__` of classes that are Keras' datasets by their bases."""
    for one in ast.walk(tree):
        if isinstance(one, ast.ClassDef) and {dotted(base).rpartition(".")[2] for base in one.bases} & _DATASETS:
            yield from (part for part in one.body if isinstance(part, ast.FunctionDef) and part.name == "__len__")
