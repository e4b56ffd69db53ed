"""`y_true[2]` in a loss or metric: the third row of the batch, and not the third number of each row."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import parameters

RULE = "array-index"
_BEYOND = re.compile(r"slice index (\d+) of dimension 0 out of bounds")
_NODE = re.compile(r"\{\{node (?:[\w.]+/)*?(\w+)/strided_slice")
_FARTHEST = 12
"""Lines between two places that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a function that Keras gives batches takes rows of them by their numbers."""
    said, node, spot = _BEYOND.search(situation.message), _NODE.search(situation.message), situation.last
    traced = getattr(spot.function, "name", None) if spot is not None and spot.by == "Keras" else None
    name = node[1] if node is not None else traced  # it fails as it runs, or as Keras traces it
    if said is None or spot is None or name is None:
        return None
    source = spot.source
    for function in (one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name):
        names = set(parameters(function))
        taken = [
            one for one in ast.walk(function)
            if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name) and one.value.id in names
            and isinstance(one.slice, ast.Constant) and type(one.slice.value) is int
        ]  # fmt: skip
        if int(said[1]) not in [one.slice.value for one in taken if isinstance(one.slice, ast.Constant)]:
            continue
        new: dict[ast.expr, str] = {
            one: f"{source.text(one.value)}[:, {source.text(one.slice)}]" for one in taken
        }  # fmt: skip
        first, last, lines = source.kept_lines(new)
        edit = Edit(spot.file, first, last, lines) if last - first < _FARTHEST else None
        at = next(one for one in taken if isinstance(one.slice, ast.Constant) and one.slice.value == int(said[1]))
        cause = (
            f"`{source.text(at)}` of {function.name} is row {said[1]} of the batch, and this batch has no such row. "
            "Keras gives batches: the first axis is the rows."
        )
        return Explanation(
            RULE, spot.file, at.lineno, cause, edit, "" if edit else f"Index the second axis: [:, {said[1]}]."
        )
    return None
