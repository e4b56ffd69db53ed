"""Images of one channel for a model that takes three: MNIST for a pretrained base."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_single_inputs
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    is_ndarray,
    lookup,
    shape_of,
    sizes_of,
)

RULE = "structure"
_SAID = re.compile(
    r"Invalid input shape for input |is incompatible with the layer: expected (?:shape|axis|min_ndim|ndim)"
)
_COLOURS = 3


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if arrays of grey images are given to a model of colours."""
    if situation.body or not _SAID.search(situation.message):
        return None
    for spot, call, model, node in failed_single_inputs(situation):
        wanted = shape_of(model.inputs[0]) or ()
        text = _coloured(node, spot, wanted)
        if not text:
            continue
        pieces = {node: text}
        also = argument(call, 99, "validation_data")
        if isinstance(also, (ast.Tuple, ast.List)) and also.elts and (other := _coloured(also.elts[0], spot, wanted)):
            pieces[also.elts[0]] = other
        given = shape_of(lookup(node, spot)) or ()
        has = "images of one channel" if len(given) == 4 else "images without an axis of channels"
        cause = (
            f"{spot.source.text(node)} is {sizes_of(given)}: {has}, and {spot.source.text(call.func.value)} "  # type: ignore[attr-defined]
            f"takes {_COLOURS} channels, {sizes_of(wanted)}. Three times the same channel is a grey image in colours."
        )
        edit = edit_of(spot.file, spot.source.replaced(pieces))
        return Explanation(RULE, spot.file, node.lineno, cause, edit, "", "likely")
    return None


def _coloured(node: ast.expr, spot: Spot, wanted: tuple[int | None, ...]) -> str:
    """The array with its channel three times; "" where that is not what the model takes."""
    value: Any = lookup(node, spot)
    if not is_ndarray(value) or len(wanted) != 4 or wanted[-1] != _COLOURS:
        return ""
    shape, text = value.shape, spot.source.atom(node)
    if len(shape) == 3:
        shape, text = (*shape, 1), f"{text}[..., None]"
    fit = len(shape) == 4 and shape[-1] == 1
    if not fit or any(None not in pair and pair[0] != pair[1] for pair in zip(shape[1:3], wanted[1:3])):
        return ""
    return f"{alias(spot, 'numpy')}.repeat({text}, {_COLOURS}, axis=-1)"
