"""Axes that the model which `fit` was called of leaves open: batches and elements of any size there are taken."""

from __future__ import annotations

from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import keras_given
from pyfunc_debug.doctor.failures.reading.datasets import leaves
from pyfunc_debug.doctor.failures.reading.shapes import Shape
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, shape_of

_IMAGE = 4
"""Axes of a batch of images."""
_CHANNELS = 4


def gives_own_dataset(situation: Situation) -> bool:
    """Whether Keras was given a dataset, whose signature is the program's own."""
    return is_dataset(keras_given(situation).get("x"))


def declared(shape: Shape, situation: Situation) -> Shape:
    """A shape of a signature with None where the model leaves an axis open, if its data have that shape there.

    Args:
      shape: What a generator's signature says of a part, with or without the axis of the batch.
      situation: The failure.
    """
    data = keras_given(situation).get("x")
    spec = data.element_spec if data is not None and is_dataset(data) else ()
    specs = [shape_of(one) for one in leaves(spec)]
    if shape in specs:
        return opened(shape, situation)
    batched = [one for one in specs if one is not None and one[1:] == shape]
    return opened((None, *shape), situation)[1:] if batched else shape


def opened(shape: Shape, situation: Situation) -> Shape:
    """The shape of a part of a batch with None where each input and output that takes it has None."""
    model = keras_given(situation).get("self")
    fitting = [one for one in _shapes(model) if len(one) == len(shape) and _takes(one, shape)]
    return tuple(
        None if place and fitting and all(one[place] is None for one in fitting) else size
        for place, size in enumerate(shape)
    )


def with_sides(axes: list[int], shape: Shape) -> list[int]:
    """Axes of a batch that differ; of images both height and width."""
    if len(shape) != _IMAGE:
        return axes
    first = (shape[1] or 0) in range(1, _CHANNELS + 1) and (shape[3] or 0) not in range(1, _CHANNELS + 1)
    sides = {2, 3} if first or 3 in axes else {1, 2}
    return sorted({*axes, *sides}) if axes and set(axes) <= sides else axes


def _takes(one: Shape, shape: Shape) -> bool:
    return all(open_ is None or size in (None, open_) for open_, size in zip(one, shape))


def _shapes(model: Any) -> list[Shape]:
    """Those of its inputs and outputs; of the outputs also without the last axis, as labels that are indices."""
    try:
        inputs, outputs = list(model.inputs), list(model.outputs)
    except (AttributeError, TypeError, ValueError):  # a subclassed one, or one that is not built
        return []
    found = [shape_of(one) for one in [*inputs, *outputs]]
    found += [one[:-1] for one in map(shape_of, outputs) if one is not None]
    return [one for one in found if one is not None]
