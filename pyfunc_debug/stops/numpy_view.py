"""Tensors as conditions see them: NumPy arrays that read the tensor's memory, and still answer as the tensor does.

A body of tf.py_function gets EagerTensors, which have no `max` and no `any`. TensorFlow's functions take these views as
they take arrays.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_MOST_ITEMS = 1000
"""Longer lists are passed as they are."""


class NumpyView(np.ndarray):
    """A read-only array over a tensor's elements; what an array lacks (`numpy()`, `device`) the tensor answers.

    Attributes:
      tensor: The tensor; None for an array that was computed from a view.
    """

    tensor: Any

    def __array_finalize__(self, obj: Any) -> None:
        self.tensor = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Results without dimensions stay views: they have `numpy()`, as a tensor's would."""
        return np.asarray(array).view(NumpyView)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return np.asarray(found).view(NumpyView) if isinstance(found, np.generic) else found

    def __hash__(self) -> int:  # type: ignore[override]  # ndarray says that it has none
        if self.ndim:
            raise TypeError("unhashable type: an array with dimensions")
        return hash(self.item())

    def __getattr__(self, name: str) -> Any:
        tensor = self.__dict__.get("tensor")
        if tensor is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(tensor, name)

    def numpy(self) -> Any:
        """What the tensor's own method gives: a plain array, or a scalar where there are no dimensions."""
        return np.asarray(self)[()] if self.tensor is None else self.tensor.numpy()


def numpy_view(value: Any, containers: bool = True) -> Any:
    """A view of an eager tensor, or of each in a list, tuple or dict; everything else as it is.

    Variants, resources, ragged and sparse tensors have no array and stay what they are.

    Args:
      value: Anything.
      containers: Whether to look into lists, tuples and dicts.
    """
    kind = type(value)
    if containers and kind in (list, tuple):
        return kind(map(numpy_view, value)) if len(value) <= _MOST_ITEMS else value
    if containers and kind is dict:
        return {key: numpy_view(one) for key, one in value.items()} if len(value) <= _MOST_ITEMS else value
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not isinstance(value, tensorflow.Tensor) or not hasattr(value, "numpy"):
        return value
    if value.dtype in (tensorflow.variant, tensorflow.resource):
        return value
    try:
        array = np.asarray(value)
    except Exception:  # a tensor whose computation failed, a type that NumPy does not have
        return value
    view = array.view(NumpyView)
    if view.flags.writeable:  # strings are copied: others share the tensor's memory, and cannot be written
        view.flags.writeable = False
    view.tensor = value
    return view
