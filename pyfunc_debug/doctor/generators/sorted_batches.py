"""A generator for `fit` that goes through rows that stand class by class: each of its batches has one class."""

from __future__ import annotations

import ast
import itertools

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of, names
from pyfunc_debug.doctor.generators.batches import Batches, Seen
from pyfunc_debug.doctor.generators.endless_generators import made_by

_LEAST, _ROWS = 6, 4
"""Batches, and rows of each."""
_PURE = 0.9
_MOST = 4


def by_class(facts: Facts, batches: Batches) -> Seen | None:
    """The labels of nearly each batch are one number, and the next batch's mostly the same."""
    if not _trains(facts, batches) or any(len(one) != 2 for one in batches.each):
        return None
    labels = [one[1] for one in batches.each]
    whole = all(one.least is not None and one.least % 1 == 0 and len(one.shape) < 3 for one in labels)
    if len(labels) < _LEAST or not whole or any(not one.shape or one.shape[0] < _ROWS for one in labels):
        return None
    if any(len(one.shape) == 2 and one.shape[1] != 1 for one in labels):
        return None
    pure = [one.least == one.most for one in labels]
    classes = {one.least for one in labels if one.least == one.most}
    same = sum(a.least == b.least and a.most == b.most for a, b in itertools.pairwise(labels))
    if sum(pure) < _PURE * len(pure) or len(classes) < 2 or same * 2 < len(labels):
        return None
    shown = ", ".join(f"{one.least:g}" for one in labels[:_LEAST])
    name = batches.function.name
    return Seen(
        f"{sum(pure):,} of the {len(pure):,} batches that {name} gave fit hold one class each (of the first: {shown}). "
        "It goes through rows that stand class by class, and fit shuffles no generator: each step unlearns the others",
        _shuffled(facts, batches) or f"shuffle inputs and labels by one permutation, in each pass of {name}",
        batches.yields[0].lineno if batches.yields else batches.function.lineno, severity="warning",
    )  # fmt: skip


def _trains(facts: Facts, batches: Batches) -> bool:
    """Whether `fit` is given what the generator makes, and learns classes; none that also validates."""
    if batches.function.name == "__getitem__" or not any(
        "crossentropy" in one.lower() for one in facts.code(batches.file)
    ):
        return False
    tree = facts.tree(batches.file)
    given = [
        one.args[0] if one.args else next((word.value for word in one.keywords if word.arg == "x"), None)
        for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) == "fit"
    ]  # fmt: skip
    made = [made_by(tree, one) for one in given if one is not None]
    asked = [one for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) == batches.function.name]
    return len(asked) == 1 and batches.function in made


def _shuffled(facts: Facts, batches: Batches) -> str:
    """The slices in a random order of all rows, which is drawn above the loop over them."""
    own, np = pastes.source(facts, batches.file), pastes.module(facts, batches.file, "numpy")
    inside = list(code.own_nodes(batches.function))
    loops = [one for one in inside if isinstance(one, ast.For) and isinstance(one.target, ast.Name)]
    if np is None or len(loops) != 1 or not isinstance(loops[0].target, ast.Name):
        return ""
    counter = loops[0].target.id
    slices = [
        one for one in ast.walk(loops[0])
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice) and counter in names(one.slice)
    ]  # fmt: skip
    pieces: dict[ast.expr, str] = {
        one: f"{own.text(one.value)}[order[{own.text(one.slice)}]]" for one in slices
    }  # fmt: skip
    if not 2 <= len(pieces) <= _MOST or "order" in {one.id for one in inside if isinstance(one, ast.Name)}:
        return ""
    line = loops[0].lineno
    drawn = f"{indent_of(own.lines[line - 1])}order = {np}.random.permutation(len({own.text(slices[0].value)}))"
    return pastes.written(
        Edit(batches.file, line, line - 1, (drawn,)), *pastes.each_replaced(facts, batches.file, pieces)
    )
