"""Datasets inside of a dataset that are taken for tensors: those of `window`, and of a `map` that returns datasets.

What batches, zips or fits them gets an object without a value. `flat_map` gives their elements, as tensors.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.datasets.dropped_rests import is_window, keeps_rest
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import datasets
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument, tail
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_dataset

RULE = "structure"
_SAID = re.compile(r"\b_NestedVariant\b|\b_\w+Dataset\b")
_FLAT = ("flat_map", "interleave")
_NO_DATASETS = ("get_single_element", "reduce", "cardinality", "as_numpy_iterator")
_NEAR = 8
"""Lines in which one paste changes several."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a dataset inside of a dataset was taken for a tensor."""
    if situation.kind not in ("ValueError", "TypeError", "AttributeError"):
        return None
    if not _SAID.search(situation.message):
        return None
    inside = _in_function(situation)
    if inside is not None:
        return inside
    nested = [one for one in datasets.held(situation) if datasets.has_datasets(one.element_spec)]
    return (_mapped(situation) or _windows(situation, nested)) if nested else None


def _in_function(situation: Situation) -> Explanation | None:
    """`x = window.batch(5)` in a mapped function, and `x` taken for the tensor that the window makes."""
    spot, statement = situation.last, situation.statement
    function = spot.function if spot is not None else None
    if spot is None or statement is None or function is None or isinstance(function, ast.Lambda):
        return None
    names = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and is_dataset(spot.value(one.id))}
    made = [
        one for one in own_nodes(function)
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and dotted(one.targets[0]) in names
        and isinstance(one.value, ast.Call) and getattr(one.value.func, "attr", "") in ("batch", "padded_batch")
        and dotted(getattr(one.value.func, "value", None)) in parameters(function) and one.lineno < spot.line
    ]  # fmt: skip
    if len(made) != 1:
        return None
    text = spot.source.text(made[0].value)
    edit = Edit(spot.file, *spot.source.kept_lines({made[0].value: f"{text}.get_single_element()"}))
    cause = (
        f"`{short(text, 40)}` is a dataset, of one batch, and line {spot.line} takes it for a tensor. "
        "get_single_element gives that batch."
    )
    return Explanation(RULE, spot.file, made[0].lineno, cause, edit)


def _mapped(situation: Situation) -> Explanation | None:
    """`map` of a function that returns a dataset for each element."""
    for file, source in situation.sources():
        found = [
            (call, function) for call in calls(source.tree)
            if isinstance(call.func, ast.Attribute) and call.func.attr == "map" and call.args
            and (function := _function(call.args[0], source)) is not None and _gives_dataset(function)
        ]  # fmt: skip
        if len(found) == 1:
            call, function = found[0]
            given = source.text(call.args[0])
            lines = source.kept_lines({tail(call): f".flat_map({given})"})
            name = getattr(function, "name", "the lambda")
            cause = (
                f"{name} returns a dataset, so that the elements behind this map are datasets, and no tensors. "
                "flat_map gives the elements of each."
            )
            return Explanation(RULE, file, call.func.end_lineno or call.lineno, cause, Edit(file, *lines))
    return None


def _function(given: ast.expr, source: Source) -> Function | None:
    if isinstance(given, ast.Lambda):
        return given
    found = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(given)]
    return found[0] if len(found) == 1 else None


def _gives_dataset(function: Function) -> bool:
    """Whether what a function returns is a dataset by its text."""
    values = [function.body] if isinstance(function, ast.Lambda) else [
        one.value for one in own_nodes(function) if isinstance(one, ast.Return)
    ]  # fmt: skip
    given = parameters(function)

    def is_one(node: ast.AST | None) -> bool:
        if not isinstance(node, ast.Call):
            return False
        if ".data." in f"{dotted(node.func)}." or "Dataset" in dotted(node.func):
            return dotted(node.func).rpartition(".")[2] not in _NO_DATASETS
        if not isinstance(node.func, ast.Attribute) or node.func.attr in _NO_DATASETS:
            return False
        batch = node.func.attr in ("batch", "padded_batch") and dotted(node.func.value) in given
        return batch or is_one(node.func.value)

    return len(values) == 1 and is_one(values[0])


def _windows(situation: Situation, nested: list[Any]) -> Explanation | None:
    """`window` without the flat_map that makes a tensor of each."""
    specs = [one.element_spec for one in nested if type(one).__name__ == "_WindowDataset"]
    for file, source in situation.sources():
        found = [one for one in calls(source.tree) if is_window(one) and not _is_flat(one, source)]
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        if not found or not specs or spot is None:
            continue
        line = found[0].func.end_lineno or found[0].lineno
        cause = (
            "window gives a dataset for each window"
            + (", one for each part of the elements" if isinstance(specs[0], (dict, tuple)) else "")
            + ", and no tensor. `batch` of its size, in a flat_map, makes one of it."
        )
        new = {one: _flat(one, source, specs[0], spot) for one in found}
        same = all(_shape_of_spec(one) == _shape_of_spec(specs[0]) for one in specs)
        near = max(one.lineno for one in found) - min(one.lineno for one in found) < _NEAR
        if not same or not near or None in new.values():
            return Explanation(RULE, file, line, cause, None, "Put .flat_map(lambda w: w.batch(size)) behind window.")
        batched = any(getattr(one.func, "attr", "") == "batch" for one in calls(source.tree))
        rests = [one for one in found if batched and keeps_rest(one, 3, spot)]
        pieces = {
            tail(one): f".window({source.arguments(one)}{', drop_remainder=True' * (one in rests)}){new[one]}"
            for one in found
        }
        if rests:
            cause += " Without drop_remainder the last windows are shorter, and fit into no batch."
        return Explanation(RULE, file, line, cause, Edit(file, *source.kept_lines(pieces)))
    return None


def _is_flat(call: ast.Call, source: Source) -> bool:
    """Whether a flat_map follows a window in its statement, or in one that reads the name it was given."""
    statement = next((one for one in source.around(call) if isinstance(one, ast.stmt)), None)
    names = [dotted(one) for one in statement.targets] if isinstance(statement, ast.Assign) else []
    for one in calls(source.tree):
        if not isinstance(one.func, ast.Attribute) or one.func.attr not in _FLAT:
            continue
        if any(part is call for part in ast.walk(one.func.value)):
            return True
        if one.lineno >= call.lineno and any(dotted(part) in names for part in ast.walk(one.func.value)):
            return True
    return False


def _shape_of_spec(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {key: _shape_of_spec(one) for key, one in spec.items()}
    return tuple(map(_shape_of_spec, spec)) if isinstance(spec, tuple) else None


def _flat(call: ast.Call, source: Source, spec: Any, spot: Spot) -> str | None:
    """The `.flat_map(...)` that makes tensors of windows of such elements."""
    size, tf = argument(call, 0, "size"), alias(spot, "tensorflow")
    if size is None:
        return None
    text = source.text(size)
    if not isinstance(spec, (dict, tuple)):
        return f".flat_map(lambda window: window.batch({text}))"
    parts = list(spec.values()) if isinstance(spec, dict) else list(spec)
    if any(isinstance(one, (dict, tuple)) for one in parts) or type(spec) not in (dict, tuple):
        return None
    if isinstance(spec, dict):
        each = f"{{key: part.batch({text}) for key, part in window.items()}}"
        return f".flat_map(lambda window: {tf}.data.Dataset.zip({each}))"
    names = [("x", "y", "w")[place] for place in range(len(parts))] if len(parts) <= 3 else []
    if not names:
        return f".flat_map(lambda *parts: {tf}.data.Dataset.zip(tuple(part.batch({text}) for part in parts)))"
    each = ", ".join(f"{one}.batch({text})" for one in names)
    each = f"({each},)" if len(names) == 1 else f"({each})"
    return f".flat_map(lambda {', '.join(names)}: {tf}.data.Dataset.zip({each}))"
