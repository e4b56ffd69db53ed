"""Arrays of as many numbers as a model takes, in another shape: images of 28 x 28 for rows of 784."""

from __future__ import annotations

import ast
import math
import re
from typing import Any, TypeAlias

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_dataset, is_ndarray, lookup, shape_of, sizes_of

RULE = "structure"
_SAID = re.compile(
    r"Invalid input shape for input |is incompatible with the layer: expected (?:shape|axis|min_ndim|ndim)"
)
_Shape: TypeAlias = "tuple[int | None, ...]"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what `fit`, `evaluate` or `predict` gets has the numbers of the model's one input."""
    if situation.body or not _SAID.search(situation.message):
        return None
    for spot, call in failed_fits(situation):
        model: Any = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        inputs: Any = getattr(model, "inputs", None) or ()
        wanted = shape_of(inputs[0]) if len(inputs) == 1 else None
        given = argument(call, 0, "x")
        if wanted is None or given is None or None in wanted[1:]:
            continue
        held: Any = lookup(given, spot)
        pieces: dict[ast.expr, str] = {}
        if is_ndarray(held) and _reshaped(held.shape, wanted):
            shape = f"{spot.source.text(given)} has the shape {[*held.shape]}"
            pieces[given] = _array(given, held.shape, wanted, spot)
            pieces |= _validation(call, wanted, spot)
        elif is_dataset(held) and (spec := _inputs(held)) is not None and _reshaped(spec, wanted):
            shape = f"what {spot.source.text(given)} gives has the shape {sizes_of(spec)}"
            pieces[given] = _mapped(given, held, spec, wanted, spot)
        else:
            continue
        cause = f"{shape}, and the model takes {sizes_of(wanted)}: as many numbers for each example, in another shape."
        edit = edit_of(spot.file, spot.source.replaced(pieces))
        return Explanation(RULE, spot.file, given.lineno, cause, edit)
    return None


def _reshaped(given: _Shape, wanted: _Shape) -> bool:
    """Whether an example has as many numbers as is wanted, in another shape."""
    one, other = given[1:], wanted[1:]
    if not given or not one or None in one or one == other:
        return False
    plain = one == other[:-1] or one[:-1] == other or 1 in (len(one), len(other))
    return plain and math.prod(size or 0 for size in one) == math.prod(size or 0 for size in other)


def _array(node: ast.expr, given: _Shape, wanted: _Shape, spot: Spot) -> str:
    if given[1:] == wanted[1:-1]:
        return f"{spot.source.atom(node)}[..., {alias(spot, 'numpy')}.newaxis]"
    return f"{spot.source.atom(node)}.reshape(-1, {', '.join(map(str, wanted[1:]))})"


def _validation(call: ast.Call, wanted: _Shape, spot: Spot) -> dict[ast.expr, str]:
    """The arrays of validation_data, likewise."""
    given = next((one.value for one in call.keywords if one.arg == "validation_data"), None)
    if not isinstance(given, (ast.Tuple, ast.List)) or not given.elts:
        return {}
    held: Any = lookup(given.elts[0], spot)
    fits = is_ndarray(held) and _reshaped(held.shape, wanted)
    return {given.elts[0]: _array(given.elts[0], held.shape, wanted, spot)} if fits else {}


def _inputs(dataset: Any) -> _Shape | None:
    spec = dataset.element_spec
    return shape_of(spec[0] if isinstance(spec, tuple) else spec)


def _mapped(node: ast.expr, dataset: Any, given: _Shape, wanted: _Shape, spot: Spot) -> str:
    tf, spec = alias(spot, "tensorflow"), dataset.element_spec
    new = f"{tf}.reshape(x, [-1, {', '.join(map(str, wanted[1:]))}])"
    if given[1:] == wanted[1:-1]:
        new = f"{tf}.expand_dims(x, -1)"
    if not isinstance(spec, tuple):
        return f"{spot.source.atom(node)}.map(lambda x: {new})"
    rest = ", ".join(["y", "w"][: len(spec) - 1])
    return f"{spot.source.atom(node)}.map(lambda x, {rest}: ({new}, {rest}))"
