"""`input_shape=(X.shape[0], ...)`: the number of examples where a layer's shape leaves the batch out."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray

RULE = "structure"
_SAID = re.compile(
    r"Invalid input shape for input |is incompatible with the layer|Dimensions must be equal|Matrix size-incompatible"
)
_RANKS = {
    "LSTM": 2, "GRU": 2, "SimpleRNN": 2, "Conv1D": 2, "Conv2D": 3, "Dense": 1, "ConvLSTM1D": 3, "ConvLSTM2D": 4,
    "Conv3D": 4,
}  # fmt: skip
"""Axes of one example that a layer takes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the shape of a model's input is made of the number of rows of what it is given."""
    if situation.body or not _SAID.search(situation.message):
        return None
    for spot, fit in failed_fits(situation):
        given = argument(fit, 0, "x")
        found = [one for one in _shapes(spot) if _is_of_batch(one[1])]
        if isinstance(given, ast.Name) and len(found) == 1:
            return _told(spot, fit, given, *found[0])
    return None


def _shapes(spot: Spot) -> list[tuple[ast.Call, ast.expr]]:
    """The layers that are given an input_shape, and what that is."""
    found = [(one, word.value) for one in calls(spot.source.tree) for word in one.keywords if word.arg == "input_shape"]
    return [one for one in found if dotted(one[0].func).rpartition(".")[2] in _RANKS]


def _is_of_batch(shape: ast.expr) -> bool:
    """`(X.shape[0], n)`, `X.shape`."""
    if isinstance(shape, ast.Attribute):
        return shape.attr == "shape"
    return isinstance(shape, ast.Tuple) and any(_first_of(one) for one in shape.elts)


def _first_of(node: ast.expr) -> str:
    """`X` for `X.shape[0]`."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    whole = node.value if isinstance(node, ast.Subscript) else None
    first = isinstance(index, ast.Constant) and index.value == 0
    return dotted(whole.value) if first and isinstance(whole, ast.Attribute) and whole.attr == "shape" else ""


def _told(spot: Spot, fit: ast.Call, given: ast.Name, layer: ast.Call, shape: ast.expr) -> Explanation | None:
    source, kind = spot.source, dotted(layer.func).rpartition(".")[2]
    parts = shape.elts if isinstance(shape, ast.Tuple) else [shape]
    read = [dotted(shape.value)] if isinstance(shape, ast.Attribute) else [_first_of(one) for one in parts]
    name = next((one for one in filter(None, read) if one == given.id or _unpacked(spot, one, given.id)), "")
    value: Any = spot.value(name) if name else None
    if not is_ndarray(value) or value.ndim < 2 or _RANKS[kind] not in (value.ndim - 1, value.ndim):
        return None
    sizes, short_of = list(value.shape), value.ndim == _RANKS[kind]
    rows = "the number of its rows" if name == given.id else "a batch size"
    begins = isinstance(shape, ast.Attribute) or bool(read[0])
    what = f"{short(source.text(shape), 44)} {f'begins with {rows}' if begins else f'has {rows} in it'}"
    each = "each example" if name == given.id else "each example of a batch"
    cause = (
        f"{name} is {sizes}, and input_shape={what}. It is to be the shape of one example, without the batch. "
        f"{each[:1].upper()}{each[1:]} has {sizes[1:]}"
    )
    if not short_of:
        new = f"{name}.shape[1:]"
        cause += "."
    else:
        new = f"({name}.shape[1], 1)" if value.ndim == 2 else f"(*{name}.shape[1:], 1)"
        plain = kind in ("LSTM", "GRU", "SimpleRNN", "Conv1D")
        cause += (
            f": {f'{sizes[1]} steps of one number' if plain else 'one channel'}. Keras adds that last axis to the data."
        )
    edit = edit_of(spot.file, source.replaced({shape: new}))
    return Explanation(RULE, spot.file, shape.lineno, cause, edit, "", "likely" if short_of else "measured")


def _unpacked(spot: Spot, name: str, batches: str) -> bool:
    """Whether a name is the inputs of one batch of what `fit` is given: `x, y = batches[0]`."""
    for one in ast.walk(spot.source.tree):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Tuple):
            value, first = one.value, one.targets[0].elts[0]
            if isinstance(value, ast.Call) and dotted(value.func) == "next" and len(value.args) == 1:
                value = value.args[0]
            if isinstance(value, ast.Subscript):
                value = value.value
            if isinstance(value, ast.Call) and dotted(value.func) == "iter" and len(value.args) == 1:
                value = value.args[0]
            if dotted(first) == name and dotted(value) == batches:
                return True
    return False
