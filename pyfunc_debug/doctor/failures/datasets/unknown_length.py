"""`len(ds)` of a dataset whose number of elements only Python knows: one of a generator, or with a filter."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import user_generators
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, lookup
from pyfunc_debug.doctor.generators.generator_source import is_endless
from pyfunc_debug.interception.names import private

RULE = "unknown-length"
_UNKNOWN = re.compile(r"^The dataset length is unknown")
_STAGES = {
    "_FlatMapDataset": "flat_map", "_FilterDataset": "filter", "_InterleaveDataset": "interleave",
    "_ParallelInterleaveDataset": "interleave", "_TakeWhileDataset": "take_while", "_UnbatchDataset": "unbatch",
    "_IgnoreErrorsDataset": "ignore_errors",
}  # fmt: skip
_STEPS = ("steps_per_epoch", "validation_steps", "steps")
"""Arguments of fit, evaluate and predict."""
_DEEPEST = 50


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a program asked such a dataset for its length."""
    spot = situation.last
    if spot is None or situation.kind != "TypeError" or not _UNKNOWN.search(situation.message):
        return None
    statement = spot.statement
    asked = [
        one for one in calls(statement) if dotted(one.func) == "len" and len(one.args) == 1
        and is_dataset(lookup(one.args[0], spot))
    ] if statement is not None else []  # fmt: skip
    if len({spot.source.text(one) for one in asked}) != 1:
        return None
    dataset, text = lookup(asked[0].args[0], spot), spot.source.text(asked[0].args[0])
    generators = user_generators(situation)
    stage = _stage(dataset, bool(generators))
    who = (
        f"{generators[0].called}, a Python generator, and TensorFlow knows its end only once it is there"
        if stage == "generator" and len({one.called for one in generators}) == 1
        else "a Python generator, and TensorFlow knows its end only once it is there"
        if stage == "generator"
        else f"{stage}, and how many it gives is known only once it ran"
    )
    cause = f"{short(text, 30)} has no length: its elements come from {who}."
    if stage == "" or any(is_endless(one.function()) for one in generators):
        return None
    pieces, rest = _for_keras(statement, asked, spot)
    found = spot.source.replaced({**pieces, **dict.fromkeys(rest, f"sum(1 for _ in {text})")})
    if found is None:
        return None
    counts = "The paste counts them, by one pass over the data."
    cause += f" {counts if rest else 'Without a number, Keras takes them all.'}"
    return Explanation(RULE, spot.file, asked[0].lineno, cause, Edit(spot.file, found[0], found[1], (found[2],)))


def _for_keras(
    statement: ast.stmt | None, asked: list[ast.Call], spot: Spot
) -> tuple[dict[ast.expr, str], list[ast.Call]]:
    """What Keras needs no length for: there None, with which an epoch is one pass; and the lengths that are left.

    With the true number of steps, the second epoch would find the iterator of the first at its end.
    """
    assert statement is not None
    source = spot.source
    steps = [one.value for call in calls(statement) for one in call.keywords if one.arg in _STEPS]
    pieces: dict[ast.expr, str] = {one: "None" for one in asked if one in steps}
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if isinstance(statement, ast.Assign) and statement.value in asked and isinstance(target, ast.Name):
        name = target.id
        reads = [
            one for one in all_nodes(source.tree)
            if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        ]  # fmt: skip
        if reads and all(isinstance(up := source.parent(one), ast.keyword) and up.arg in _STEPS for one in reads):
            pieces[statement.value] = "None"
    return pieces, [one for one in asked if one not in pieces]


def _stage(dataset: object, generators: bool) -> str:
    """What makes a dataset's length unknown: "generator", or the method; "" where that is not found, or it never ends.

    A dataset of a generator is a flat_map over one element.
    """
    waiting, found = [dataset], ""
    for _ in range(_DEEPEST):
        if not waiting:
            break
        one = waiting.pop()
        count = getattr(one, "cardinality", None)
        if count is None or int(count()) != -2:
            continue
        inputs = private.dataset_inputs(one)
        name = type(one).__name__
        if name in _STAGES and not any(int(each.cardinality()) == -2 for each in inputs):
            alone = [type(each).__name__ for each in inputs] == ["_TensorDataset"]  # as from_generator makes it
            found = "generator" if alone and generators and name == "_FlatMapDataset" else _STAGES[name]
        waiting += inputs
    return found
