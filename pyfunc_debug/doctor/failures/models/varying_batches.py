"""Batches of another size than the first two: Keras takes what these have in common for the shape of all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.datasets import yielded_shapes
from pyfunc_debug.doctor.failures.models import open_axes
from pyfunc_debug.doctor.failures.models.batch_makers import batch_maker
from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup, of_keras, sizes_of
from pyfunc_debug.doctor.generators.used_counters import never_set_back
from pyfunc_debug.interception.names import private

RULE = "generator"
_SAID = re.compile(r"enerator`? yielded an element of shape \(([\d, ]*)\) where an element of shape \(([^)]*)\) was")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a generator or a PyDataset that Keras reads gave a batch of other sizes."""
    said = _SAID.search(situation.message)
    if said is None or "None" not in said[2] or open_axes.gives_own_dataset(situation):
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
        differing = _differing(got, wanted)
        cause = (
            f"Keras makes the signature of the first two batches, and these were alike: {sizes_of(wanted)}. A later "
            f"one is {sizes_of(got)}."
        )
        if len(got) != len(wanted) or not differing:
            if got[:1] == [0]:
                return _empty(spot, fit, cause, given)
            advice = f"Give each batch the {len(wanted)} axes of the others."
            return Explanation(RULE, spot.file, fit.lineno, cause, None, advice)
        axes = _opened(situation, differing, wanted)
        what = f"axis {axes[0]}" if len(axes) == 1 else f"axes {_listed(axes)}"
        cause += f" With a signature of your own {what} may vary."
        text = _text(spec, _Opens(wanted, axes, situation), tf) if spec is not None else ""
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


def _empty(spot: Spot, fit: ast.Call, cause: str, given: ast.expr) -> Explanation:
    """A batch without rows: of a counter that nothing sets back, or of a `__len__` that counts too many."""
    maker = batch_maker(given, spot)
    if maker is None or maker.verb == "returns":
        advice = "It has no rows: let __len__ count the batches that have some."
        return Explanation(RULE, spot.file, fit.lineno, cause, None, advice)
    own, file = maker.spot.source, maker.spot.file
    counter = never_set_back(own, maker.function)
    if counter is None:
        return Explanation(RULE, spot.file, fit.lineno, cause, None, "It has no rows: yield those that have some only.")
    cause = (
        f"{maker.function.name} yields a batch without rows: {own.text(counter.part)} is empty behind the last row, "
        f"and nothing sets {counter.name} back."
    )
    advice = f"Set {counter.name} back to {counter.begin} where the rows are over."
    edit = counter.edit(own, file, whole=False)
    return Explanation(RULE, file, counter.step.lineno, cause, edit, "" if edit is not None else advice)


def _sizes(text: str) -> list[int | None]:
    return [int(one) if one.strip().isdigit() else None for one in text.split(",") if one.strip()]


def _differing(got: Sequence[int | None], wanted: Sequence[int | None]) -> list[int]:
    return [axis for axis, (one, other) in enumerate(zip(got, wanted)) if other is not None and one != other]


def _opened(situation: Situation, differing: list[int], wanted: list[int | None]) -> list[int]:
    """The axes that may vary: those that differ in what was refused so far, and those that the model leaves open."""
    for one in yielded_shapes.refused(situation, tuple(wanted)):
        differing = sorted({*differing, *_differing(one, wanted)})
    shape = open_axes.opened(tuple(wanted), situation)
    if shape == tuple(wanted):
        return open_axes.with_sides(differing, shape)
    return sorted({*differing, *(axis for axis, size in enumerate(shape) if size is None and wanted[axis] is not None)})


def _listed(axes: list[int]) -> str:
    return f"{', '.join(map(str, axes[:-1]))} and {axes[-1]}"


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


@dataclass(frozen=True)
class _Opens:
    """Which axes of parts of a batch are left open: `axes` where a part has the shape that was refused a batch."""

    wanted: list[int | None]
    axes: list[int]
    situation: Situation

    def sizes(self, sizes: list[int | None]) -> list[int | None]:
        known = open_axes.opened(tuple(sizes), self.situation)
        return [None if sizes == self.wanted and axis in self.axes else one for axis, one in enumerate(known)]


def _text(spec: Any, opens: _Opens, tf: str) -> str:
    """A signature as it is written, with more open axes in all specs of that shape; "" of other structures."""
    if type(spec) is tuple:
        parts = [_text(one, opens, tf) for one in spec]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})" if all(parts) else ""
    if type(spec) is dict:
        named = {key: _text(one, opens, tf) for key, one in spec.items()}
        return "{" + ", ".join(f'"{key}": {text}' for key, text in named.items()) + "}" if all(named.values()) else ""
    if type(spec).__name__ == "TensorSpec" and spec.shape.rank is not None:
        spec = _Spec(spec.shape.as_list(), spec.dtype.name)
    if not isinstance(spec, _Spec):
        return ""
    sizes = opens.sizes(spec.sizes)
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
