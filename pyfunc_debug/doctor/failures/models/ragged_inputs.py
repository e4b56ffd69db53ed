"""Rows of their own lengths, a RaggedTensor, for layers of Keras' that take rows of one: recurrent, convolutions.

Keras 3 hands a ragged tensor on to its layers, whose ops then fail on it in words of their own.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, lookup

RULE = "structure"
_SAID = re.compile(r"Cannot index into an inner ragged dimension|Failed to convert elements of tf\.RaggedTensor")
_PARTS = ("x", "y", "w")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `fit`, `evaluate` or `predict` got a ragged tensor, or a dataset of such."""
    if situation.body or not _SAID.search(situation.message):
        return None
    for spot, call in failed_fits(situation):
        nodes = [argument(call, 0, "x"), argument(call, 99, "validation_data")]
        pieces = {one: new for one in nodes if one is not None and (new := _padded(one, spot))}
        first = next(iter(pieces), None)
        if first is None:
            continue
        cause = (
            f"{short(spot.source.text(first), 30)} {'gives' if is_dataset(lookup(first, spot)) else 'has'} rows of "
            f"their own lengths (ragged), and this layer takes rows of one length. "
            "to_tensor() pads them with zeros."
        )
        embeddings = [one for one in calls(spot.source.tree) if dotted(one.func).rpartition(".")[2] == "Embedding"]
        if embeddings and not any(word.arg == "mask_zero" for one in embeddings for word in one.keywords):
            cause += " (An Embedding with mask_zero=True masks them.)"
        return Explanation(RULE, spot.file, first.lineno, cause, edit_of(spot.file, spot.source.replaced(pieces)))
    return None


def _padded(node: ast.expr, spot: Spot) -> str:
    """Data with rows of one length; "" where it has these."""
    value: Any = lookup(node, spot)
    text = spot.source.atom(node)
    if type(value).__name__ == "RaggedTensor":
        return f"{text}.to_tensor()"
    if not is_dataset(value):
        return ""
    spec: Any = value.element_spec
    parts = spec if isinstance(spec, tuple) else (spec,)
    ragged = [hasattr(one, "ragged_rank") for one in parts]
    if not ragged[0] or len(parts) > len(_PARTS):
        return ""
    names = _PARTS[: len(parts)]
    padded = [f"{name}.to_tensor()" if is_ragged else name for name, is_ragged in zip(names, ragged)]
    result = padded[0] if len(padded) == 1 else f"({', '.join(padded)})"
    return f"{text}.map(lambda {', '.join(names)}: {result})"
