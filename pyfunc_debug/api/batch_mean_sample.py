"""Metric functions of Keras, asked once more as a recording ends: for the rows of several batches together.

Where that differs from the mean over these batches, what Keras shows is not the metric of an epoch. Only a body runs
that does nothing but compute. Where the inputs were not kept, others like them do: one example is enough to tell that a
metric is not a mean over rows.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pyfunc_debug.api.foreign_calls import foreign_calls
from pyfunc_debug.api.graph_code_sample import made
from pyfunc_debug.api.isolation import as_before
from pyfunc_debug.api.made_inputs import array_like
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.api.replay import whole_inputs
from pyfunc_debug.doctor.bodies.replacement import imports, obstacles
from pyfunc_debug.doctor.code import outside
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import read
from pyfunc_debug.doctor.rules.batch_means import metric_of
from pyfunc_debug.errors import PyfuncDebugError
from pyfunc_debug.interception.rerun import body_function, runner
from pyfunc_debug.records import Call, Node

_COMPUTES = ("tensorflow", "keras", "numpy", "math", "sklearn", "scipy")
_FEWEST, _MOST = 3, 64
_SIZE = 1_000_000
_BUDGET_NS = 1_000_000_000
"""All rows together may take this long, as far as the calls' times tell."""
_DIFFERS, _LEAST = 0.02, 1e-3


def batch_means(recording: Recording, facts: Facts) -> Iterator[tuple[Node, dict[str, Any]]]:
    """Nodes in metric functions whose mean over batches is not what all their rows have, with both numbers.

    Args:
      recording: It has ended as far as calls go.
      facts: The same, for the rules.
    """
    import tensorflow as tf

    if not tf.executing_eagerly():
        return
    seen: set[tuple[str, str]] = set()
    for node in facts.nodes.values():
        given = metric_of(facts, node) if node.origin == "user" and len(node.tout) == 1 else None
        if given is None or (given.file, given.name) in seen:
            continue
        function = _function(facts, node)
        if function is None:
            continue
        eager = node.kind == "py_function"
        with as_before(tf, function):
            found = _compared(recording, node, runner(function, [tf.as_dtype(node.tout[0])] if eager else None))
        if found is not None:
            seen.add((given.file, given.name))
            yield node, found


def _function(facts: Facts, node: Node) -> Any:
    """The body, if it does nothing else than compute; made from its source where the graph is gone, and its model."""
    definition = facts.function(node)
    if definition is None or node.file is None:
        return None
    nested = [one for one in ast.walk(definition) if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    for part in {id(one): one for one in (definition, *nested)}.values():
        for one in obstacles(node.file, part, _COMPUTES):
            if one.effect or "random" in one.why:
                return None
    live = body_function(node.token) if node.token else None
    if live is not None:
        return live[0] if all(_computes(node.file, text) for _, text in foreign_calls(live[0], definition)) else None
    tree = facts.tree(node.file)
    return made(tree, definition, node.file, _COMPUTES) if tree is not None and not outside(definition, tree) else None


def _computes(file: str, text: str) -> bool:
    head = text.partition(".")[0]
    return imports(read(file)).get(head, "").partition(".")[0] in _COMPUTES


def _compared(recording: Recording, node: Node, run: Callable[..., list[Any]]) -> dict[str, Any] | None:
    """The mean over batches and the value of their rows together; None where they are the same, or not known."""
    rows = recording.sql(
        f"SELECT id, end_ns - start_ns AS ns FROM call WHERE node = {node.id} AND kind = 'forward' AND status = 'ok' "
        f"ORDER BY id LIMIT {_MOST}"
    )
    if len(rows) < _FEWEST or sum(row["ns"] or 0 for row in rows) > _BUDGET_NS:
        return None
    calls = [recording.call(row["id"]) for row in rows]
    batches = list(_batches(_kept(one) for one in calls))
    recorded = len(batches) >= _FEWEST
    if not recorded:
        generator = np.random.default_rng(0)
        made = ([array_like(value, generator) for value in one.inputs] for one in calls)
        batches = list(_batches(one for one in made if all(part is not None for part in one)))
    if len(batches) < _FEWEST or sum(one.size for inputs in batches for one in inputs) > _SIZE:
        return None
    try:
        values = [_value(run(*inputs)) for inputs in batches]
        whole = _value(run(*(np.concatenate(column) for column in zip(*batches))))
    except Exception:  # the body's own: it does not take that number of rows, or such values
        return None
    mean = float(np.mean(values))
    differs = abs(whole - mean) > max(_LEAST, _DIFFERS * max(abs(whole), abs(mean)))
    found = {"batches": len(batches), "recorded": recorded, "mean": mean, "whole": whole}
    return found if differs and math.isfinite(whole) and math.isfinite(mean) else None


def _kept(call: Call) -> list[Any]:
    """The inputs of a call; none where they were not kept in full."""
    try:
        return list(whole_inputs(call))
    except PyfuncDebugError:
        return []


def _batches(given: Iterable[list[Any]]) -> Iterator[list[Any]]:
    """Those with as many rows as the first: the last batch of an epoch is a smaller one, and counts as much."""
    size = 0
    for inputs in given:
        size = size or _rows(inputs)
        if size > 1 and _rows(inputs) == size:
            yield inputs


def _rows(inputs: Sequence[Any]) -> int:
    """How many rows all inputs have; 0 where they have not the same number."""
    counts = {one.shape[0] if one.ndim else 0 for one in inputs}
    return counts.pop() if len(counts) == 1 and len(inputs) > 1 else 0


def _value(outputs: Sequence[Any]) -> float:
    """What a metric gave, if it is one number.

    Raises:
      ValueError: it is none; Keras takes the mean over the rows then.
    """
    return float(np.asarray(outputs[0]).reshape(()))


__all__ = ["batch_means"]
