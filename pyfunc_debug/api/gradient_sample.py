"""Gradients of the user's own, `@tf.custom_gradient`, checked as a recording ends: a few calls, by finite differences.

TensorFlow derives all other gradients. A body runs again for it, some dozen times; one that does anything outside of
itself, draws random numbers or is slow is left alone, and so is a gradient that is meant to be another one: of a
function that gives back its input (clipped or reversed gradients), or whose value does not change (rounding).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pyfunc_debug.analysis.groups import same_line
from pyfunc_debug.api import graph_code
from pyfunc_debug.api.foreign_calls import foreign_calls
from pyfunc_debug.api.gradient_check import GradientCheck, check
from pyfunc_debug.api.isolation import as_before
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.api.replay import whole_inputs
from pyfunc_debug.doctor.bodies.replacement import definition_of, obstacles
from pyfunc_debug.doctor.code import own_gradients
from pyfunc_debug.doctor.failures.reading.source import Function, read
from pyfunc_debug.errors import PyfuncDebugError
from pyfunc_debug.records import Call, Node

_CALLS = 3
_ELEMENTS = 8
_SIZE = 100_000
_BUDGET_NS = 2_000_000_000
"""A body for which all its runs would take longer than this, each as long as its shortest call, is left alone."""


def wrong_gradients(recording: Recording) -> Iterator[tuple[Node, list[GradientCheck]]]:
    """Nodes all of whose sampled gradients differ from finite differences, with what was found.

    Args:
      recording: It has ended as far as calls go. Only calls that were kept in full can be checked.
    """
    import tensorflow as tf

    if not tf.executing_eagerly():
        return
    from pyfunc_debug.interception.rerun import body_function, body_runner

    for group in same_line((one for one in recording.nodes() if one.origin == "user"), recording.functions()):
        for node in group:
            live = body_function(node.token) if node.kind == "py_function" and node.token else None
            definition = None if live is None else _definition(live[0], node)
            if live is None or definition is None or not _may_run(live[0], definition, node):
                continue
            runner = body_runner(node.token or "")
            with as_before(tf, live[0]):
                found = [] if runner is None else list(_checked(recording, node, runner))
            if len(found) > 1 and all(map(_wrong, found)):
                yield node, found
                break


def _definition(function: Any, node: Node) -> Function | None:
    made_of = graph_code.code_of(function)
    if made_of is None or node.file is None or node.line is None:
        return None
    return definition_of(made_of, node.file, node.line)


def _may_run(function: Any, definition: Function, node: Node) -> bool:
    """Whether a body has a gradient of the user's own, and does nothing else than compute."""
    file = node.file or ""
    tree = read(file).tree
    custom = own_gradients(definition, tree)
    if not custom:
        return False
    parts = [definition, *custom]
    parts += [one for part in parts for one in ast.walk(part) if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    for part in {id(one): one for one in parts}.values():
        for one in obstacles(file, part, ("numpy", "math")):
            if one.effect or "random" in one.why:
                return False
    names = {one.name for one in custom if isinstance(one, ast.FunctionDef)}
    return all(text in names for _, text in foreign_calls(function, definition))


def _checked(recording: Recording, node: Node, runner: Callable[..., list[Any]]) -> Iterator[GradientCheck]:
    """What can be checked of a node's gradient calls, evenly spread."""
    shortest = recording.sql(f"SELECT min(end_ns - start_ns) AS ns FROM call WHERE node = {node.id} AND status = 'ok'")
    rows = recording.sql(
        "SELECT id, forward FROM call WHERE kind = 'gradient' AND status = 'ok' AND forward IN "
        f"(SELECT id FROM call WHERE node = {node.id} AND status = 'ok') AND (tape IS NULL OR tape = forward) "
        "ORDER BY id"
    )
    step = max(1, len(rows) // _CALLS)
    for row in rows[::step][:_CALLS]:
        gradient, forward = recording.call(row["id"]), recording.call(row["forward"])
        try:
            inputs = whole_inputs(forward)
            runs = _CALLS * (2 + 2 * _ELEMENTS * len(inputs))
            slow = (shortest[0]["ns"] or 0) * runs > _BUDGET_NS
            if slow or sum(one.size for one in inputs) > _SIZE or _gives_back(forward, inputs):
                return
            yield check(forward, gradient, runner, _ELEMENTS)
        except PyfuncDebugError:  # not kept, or not the same twice: nothing is known
            return


def _gives_back(call: Call, inputs: Sequence[Any]) -> bool:
    """Whether a call returned one of its inputs: then only the gradient is what the function is there for."""
    outputs = [value.array() for value in call.outputs if value.kept == "full"]
    return not outputs or any(np.array_equal(one, other) for one in outputs for other in inputs)


def _wrong(one: GradientCheck) -> bool:
    return any(not part.flat and 2 * part.wrong > part.checked for part in one.inputs)
