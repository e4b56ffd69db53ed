"""`compile(loss=body)` of a body with a decorator: Keras makes the node, and `compile` is where its shape is said."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor.bodies.decorated import decorator
from pyfunc_debug.doctor.failures.models import keras_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import Node
from pyfunc_debug.doctor.failures.reading.shapes import Shape, written
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, keras_name

RULE = "unknown-shape"


def shaped(situation: Situation, node: Node, known: Sequence[Shape | None], said: str) -> Explanation | None:
    """The explanation for a node that Keras makes as it calls a decorated body, with a function that says its shape.

    Args:
      situation: The failure.
      node: The node, whose shape is lost.
      known: The shapes that its body returns, as far as they are known.
      said: How they are known, in a sentence.
    """
    function = node.function()
    if not isinstance(function, ast.FunctionDef) or decorator(function) is None or len(node.tout) != 1:
        return None
    for spot in reversed(situation.spots):
        given = [one for one in keras_calls.given(spot) if dotted(one).rpartition(".")[2] == function.name]
        if given:
            return _explained(spot, node, function, given, next(iter(known), None), said)
    return None


def _explained(
    spot: Spot, node: Node, function: ast.FunctionDef, given: list[ast.expr], shape: Shape | None, said: str
) -> Explanation:
    tf, inputs = alias(spot, "tensorflow"), ", ".join(parameters(function))
    new = {}
    for one in given:
        called = f"{spot.source.text(one)}({inputs})"
        whole = f"{tf}.reshape({called}, [-1])" if shape is None else f"{tf}.ensure_shape({called}, {written(shape)})"
        new[one] = f"lambda {inputs}: {whole}"
        if keras_calls.is_metric(one, spot):  # Keras wraps a metric so, with the name of its function
            new[one] = f'{keras_name(spot)}.metrics.MeanMetricWrapper({new[one]}, name="{function.name}")'
    said = said if shape is not None else " For a loss or metric a list of its values will do."
    cause = (
        f"{node.called} gave a tensor of unknown shape: at trace a {node.kind} knows its dtype only, as {node.called} "
        f"runs later. Keras needs the shape of a loss and of a metric at trace.{said}"
    )
    edit = edit_of(spot.file, spot.source.replaced(new))
    advice = "" if edit is not None else f"Give it a shape: lambda {inputs}: {tf}.ensure_shape(..., [...])."
    return Explanation(RULE, spot.file, given[0].lineno, cause, edit, advice, "likely")
