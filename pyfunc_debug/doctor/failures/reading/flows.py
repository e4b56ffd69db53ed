"""Iterators that Keras' ImageDataGenerator makes, `flow` and its like: what they give, and the calls that made them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import is_keras_class, lookup

METHODS = {
    "DirectoryIterator": "flow_from_directory", "DataFrameIterator": "flow_from_dataframe",
    "NumpyArrayIterator": "flow",
}  # fmt: skip
"""Keras' classes, and the methods that make them (keras/src/legacy/preprocessing/image.py)."""


@dataclass(frozen=True)
class Flow:
    """One of them.

    Attributes:
      node: The expression that stands for it: a name, or the call itself.
      call: The call that made it; None where several may have.
      held: Its attributes.
      method: "flow", "flow_from_directory" or "flow_from_dataframe".
    """

    node: ast.expr
    call: ast.Call | None
    held: dict[str, Any]
    method: str

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """Height, width and channels of the images that it gives."""
        shape = self.held.get("image_shape") or getattr(self.held.get("x"), "shape", (None,))[1:]
        whole = isinstance(shape, tuple) and len(shape) == 3 and all(type(one) is int for one in shape)
        return shape if whole else None

    @property
    def listed(self) -> bool:
        """Whether its inputs come as a list: `flow([x1, x2], y)`."""
        return bool(self.held.get("x_misc"))

    @property
    def parts(self) -> int:
        """How many parts a batch has: inputs, labels, weights."""
        labels = self.held.get("y" if self.method == "flow" else "class_mode")
        weights = [self.held.get(name) for name in ("sample_weight", "_sample_weight")]
        return 1 if labels is None else 2 + any(one is not None for one in weights)

    @property
    def classes(self) -> int | None:
        """How many numbers a one-hot label of it has; None where its labels are others."""
        found = self.held.get("num_classes", len(self.held.get("class_indices") or ()))
        return found if self.held.get("class_mode") == "categorical" and type(found) is int and found else None


def is_image_generator(value: object) -> bool:
    """Whether it is an ImageDataGenerator, which says how images are changed and has none itself."""
    return type(value).__name__ == "ImageDataGenerator" and is_keras_class(type(value))


def is_flow(value: object) -> bool:
    """Whether it is such an iterator."""
    return type(value).__name__ in METHODS and is_keras_class(type(value))


def flow_of(node: ast.expr, spot: Spot, value: object = None) -> Flow | None:
    """What an expression stands for, where that is such an iterator.

    Args:
      node: The expression.
      spot: The frame that it is in.
      value: What it stands for, where that is known: a call has no value of its own.
    """
    value = lookup(node, spot) if value is None else value
    if not is_flow(value):
        return None
    method = METHODS[type(value).__name__]
    made = [one for one in _assigned(spot, dotted(node)) if getattr(one.func, "attr", "") == method]
    return Flow(node, made[0] if len(made) == 1 else None, vars(value), method)


def _assigned(spot: Spot, name: str) -> Iterator[ast.Call]:
    """The calls whose results a name is given in its file."""
    for one in ast.walk(spot.source.tree):
        if isinstance(one, ast.Assign) and name in map(dotted, one.targets) and isinstance(one.value, ast.Call):
            yield one.value
