"""A layer's weights are made for a number of inputs that the data does not fix: ragged rows, padding by batch.

Keras 3 says it of the variable (`keras/src/backend/common/variables.py`, `_validate_shape`), without the data.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.batch_makers import batch_maker
from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes import learned_shapes
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.datasets import stacks
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import alias, described, is_dataset, lookup, shape_of

RULE = "unknown-shape"
_SAID = re.compile(
    r"initialize variables must be fully-defined.*Received: shape=\(None,.*for variable path='(?:.*/)?(\w+)/kernel'"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `fit` was given samples of any size in front of a layer that needs one."""
    spot, said = situation.last, _SAID.search(situation.message)
    statement = situation.statement
    if spot is None or said is None or statement is None:
        return None
    for call in fits(statement):
        given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "x"), None)
        what = None if given is None else _of_dataset(given, spot) or _of_batches(given, spot)
        if what is None:
            continue
        cause = f"{said[1]} makes its weights for a fixed number of inputs, but {what}."
        tf = alias(spot, "tensorflow")
        advice = (
            "Give all samples one length N that you choose: x.to_tensor(shape=[None, N]) of a ragged x, padded_batch "
            f"with padded_shapes, or {tf}.ensure_shape where they have it already."
        )
        edit = learned_shapes.shaped(situation) if _stacked(given, spot) else None
        if edit is not None:
            cause = cause.replace(": samples of any length", "")
            cause += " batch() stacks samples of one size: if all have that of the first one, this says it."
            return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice, "likely")
    return None


def _stacked(given: ast.expr | None, spot: Spot) -> bool:
    """Whether it is a dataset whose samples a batch stacked as they are."""
    value = lookup(given, spot) if given is not None else None
    return is_dataset(value) and stacks(value) is not None


def _of_dataset(given: ast.expr, spot: Spot) -> str | None:
    """What a dataset says of its first part, where that leaves the size of a sample open."""
    value = lookup(given, spot)
    spec: Any = value.element_spec if is_dataset(value) else None
    first = spec[0] if isinstance(spec, tuple) and spec else spec
    shape = shape_of(first)
    if shape is None or None not in shape[1:]:
        return None
    rows = "ragged rows" if hasattr(first, "ragged_rank") else described(first)
    return f"{spot.source.text(given)} gives it {rows}: samples of any length"


def _of_batches(given: ast.expr, spot: Spot) -> str | None:
    """A PyDataset or a generator whose first part is written as a ragged tensor."""
    maker = batch_maker(given, spot)
    if maker is None or not maker.values:
        return None
    value = maker.made(maker.values[-1])
    first = maker.made(value.elts[0]) if isinstance(value, ast.Tuple) and value.elts else value
    if "ragged" not in maker.source.text(first).lower():
        return None
    return f"{maker.name} (line {first.lineno}) gives it ragged rows: samples of any length"
