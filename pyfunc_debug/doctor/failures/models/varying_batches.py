"""Batches of another size than the first two: Keras takes what these have in common for the shape of all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup, of_keras, sizes_of
from pyfunc_debug.interception.names import private

RULE = "generator"
_SAID = re.compile(r"enerator`? yielded an element of shape \(([\d, ]*)\) where an element of shape \(([^)]*)\) was")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a generator or a PyDataset that Keras reads gave a batch of other sizes."""
    said = _SAID.search(situation.message)
    if said is None or "None" not in said[2]:
        return None
    for spot, fit in failed_fits(situation):
        given = argument(fit, 0, "x")
        value = lookup(given, spot) if isinstance(given, (ast.Name, ast.Attribute)) else None
        if given is None:
            continue
        made = lookup(given.func, spot) if isinstance(given, ast.Call) else type(value)
        indexed = isinstance(made, type) and of_keras(made, "PyDataset")
        if not indexed and not (isinstance(given, ast.Call) or type(value).__name__ == "generator"):
            continue
        got, wanted = _sizes(said[1]), _sizes(said[2])
        spec = _signature(situation)
        tf = alias(spot, "tensorflow")
        open_axes = [axis for axis, (one, other) in enumerate(zip(got, wanted)) if other is not None and one != other]
        cause = (
            f"Keras makes the signature of the first two batches, and these were alike: {sizes_of(wanted)}. A later "
            f"one is {sizes_of(got)}."
        )
        if len(got) != len(wanted) or not open_axes:
            advice = "It has no rows: let __len__ count the batches that have some." if got[:1] == [0] else ""
            advice = advice or f"Give each batch the {len(wanted)} axes of the others."
            return Explanation(RULE, spot.file, fit.lineno, cause, None, advice)
        cause += f" With a signature of your own axis {_listed(open_axes)} may vary."
        text = _text(spec, wanted, open_axes, tf) if spec is not None else ""
        source = _generator(spot, given, indexed)
        if not text or not source:
            advice = "Make the first two batches differ in it, or give fit a tf.data.Dataset.from_generator."
            return Explanation(RULE, spot.file, fit.lineno, cause, None, advice)
        new = f"{tf}.data.Dataset.from_generator({source}, output_signature={text})"
        first, last, lines = spot.source.kept_lines({given: new})
        if spot.value(tf) is None:
            lines = (f"{indent_of(spot.source.lines[first - 1])}import tensorflow as {tf}", *lines)
        return Explanation(RULE, spot.file, fit.lineno, cause, Edit(spot.file, first, last, lines), "", "likely")
    return None


def _sizes(text: str) -> list[int | None]:
    return [int(one) if one.strip().isdigit() else None for one in text.split(",") if one.strip()]


def _listed(axes: list[int]) -> str:
    return " and ".join(map(str, axes))


@dataclass(frozen=True)
class _Spec:
    """Sizes and dtype of one tensor of a batch."""

    sizes: list[int | None]
    dtype: str


def _signature(situation: Situation) -> Any:
    """What Keras took for the signature, with a _Spec for each tensor: the frames of what refused a batch have it."""
    for error in (situation.inner, situation.error):
        for frame in frames(error.__traceback__):
            known = frame.f_locals
            if frame.f_code.co_filename.endswith("from_generator_op.py") and "flattened_shapes" in known:
                return _packed(known.get("output_types"), iter(known["flattened_shapes"]))
            adapter = known.get("self") if "data_adapters" in frame.f_code.co_filename else None
            found = getattr(adapter, private.KERAS_SIGNATURE, None)
            if found is not None:
                return found
    return None


def _packed(types: Any, shapes: Iterator[Any]) -> Any:
    """Dtypes in a structure with their shapes, which TensorFlow lists with the keys of dicts in order."""
    if type(types) is tuple:
        return tuple(_packed(one, shapes) for one in types)
    if type(types) is dict:
        found = {key: _packed(types[key], shapes) for key in sorted(types)}
        return {key: found[key] for key in types}
    return _Spec(next(shapes).as_list(), types.name) if hasattr(types, "as_numpy_dtype") else None


def _text(spec: Any, wanted: list[int | None], axes: list[int], tf: str) -> str:
    """A signature as it is written, with more open axes in all specs of that shape; "" of other structures."""
    if type(spec) is tuple:
        parts = [_text(one, wanted, axes, tf) for one in spec]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})" if all(parts) else ""
    if type(spec) is dict:
        named = {key: _text(one, wanted, axes, tf) for key, one in spec.items()}
        return "{" + ", ".join(f'"{key}": {text}' for key, text in named.items()) + "}" if all(named.values()) else ""
    if type(spec).__name__ == "TensorSpec" and spec.shape.rank is not None:
        spec = _Spec(spec.shape.as_list(), spec.dtype.name)
    if not isinstance(spec, _Spec):
        return ""
    sizes = [None if spec.sizes == wanted and axis in axes else one for axis, one in enumerate(spec.sizes)]
    listed = ", ".join(map(str, sizes)) + ("," if len(sizes) == 1 else "")
    return f"{tf}.TensorSpec(({listed}), {tf}.{spec.dtype})"


def _generator(spot: Spot, given: ast.expr, indexed: bool) -> str:
    """What from_generator calls for an iterator."""
    text = spot.source.text(given)
    if indexed:
        name = "data" if isinstance(given, ast.Call) else text
        head = f"lambda data={text}" if isinstance(given, ast.Call) else "lambda"
        return f"{head}: ({name}[i] for i in range(len({name})))"
    if isinstance(given, ast.Call):
        plain = not given.args and not given.keywords and isinstance(given.func, (ast.Name, ast.Attribute))
        return spot.source.text(given.func) if plain else f"lambda: {text}"
    return f"lambda: {text}" if isinstance(given, ast.Name) else ""
