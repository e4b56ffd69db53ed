"""Which loss goes with a model's last layer and the labels that it is trained with."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.symbols import (
    dtype_of,
    is_keras_class,
    is_ndarray,
    is_tensor,
    keras_name,
    lookup,
    shape_of,
    sizes_of,
)
from pyfunc_debug.interception.names.private import keras_layers

_ACTIVATIONS = ("linear", "softmax", "sigmoid")


def fitting(situation: Situation, spot: Spot, fit: ast.Call, model: Any) -> tuple[str, str] | None:
    """A loss as text, and why it is likely; None where labels or outputs are not known, or go with several.

    Args:
      situation: The failure: Keras' own frame has the labels and predictions of a batch.
      spot: The frame of `fit`.
      fit: The call.
      model: The model.
    """
    labels, outputs = _given(situation)
    activation = _activation(model)
    shapes = shape_of(labels), shape_of(outputs)
    if None in shapes or activation not in _ACTIVATIONS:
        return None
    wanted, made = tuple(shapes[0] or ()), tuple(shapes[1] or ())
    dtype, units = str(dtype_of(labels)), made[-1] if made else None
    name = _name(dtype, wanted, made, activation, _values(fit, spot)) if units is not None else ""
    if not name:
        return None
    after = {"linear": "no activation", "softmax": "softmax", "sigmoid": "sigmoid"}[activation]
    why = (
        f"Likely the one below: the labels are {dtype} {sizes_of(wanted)}, and the last layer gives {sizes_of(made)} "
        f"with {after}."
    )
    return (f"{keras_name(spot)}.losses.{name}" if name[0].isupper() else f'"{name}"'), why


def _name(
    dtype: str, labels: tuple[int | None, ...], outputs: tuple[int | None, ...], activation: str, values: Any
) -> str:
    """The loss; "" where more than one would do."""
    whole, units = "int" in dtype or dtype == "bool", outputs[-1]
    alone = len(labels) == len(outputs) - 1 or (len(labels) == len(outputs) and labels[-1] == 1)
    alike = len(labels) == len(outputs) and labels[-1] == units
    if alone and units != 1:
        names = {
            "linear": "SparseCategoricalCrossentropy(from_logits=True)",
            "softmax": "sparse_categorical_crossentropy",
        }
        return names.get(activation, "") if whole else ""
    if activation == "softmax":
        return "categorical_crossentropy" if alike and units != 1 else ""
    if not (alike or alone):
        return ""
    if activation == "sigmoid":
        shares = values is None or bool(((values >= 0) & (values <= 1)).all())
        return "binary_crossentropy" if shares else ""
    yes = values is not None and bool(((values == 0) | (values == 1)).all())
    if units == 1:
        if yes:
            return "BinaryCrossentropy(from_logits=True)"
        return "mse" if not whole else ""
    if yes and bool((values.sum(axis=-1) == 1).all()):
        return "CategoricalCrossentropy(from_logits=True)"
    return "mse" if values is not None and not whole and not yes else ""


def _given(situation: Situation) -> tuple[Any, Any]:
    """One tensor of labels and one of predictions, as Keras compares them."""
    for frame in frames(situation.inner.__traceback__):
        if frame.f_code.co_name == "compute_loss":
            found = frame.f_locals.get("y"), frame.f_locals.get("y_pred")
            if all(is_tensor(one) for one in found):
                return found
    return None, None


def _activation(model: Any) -> str:
    """The name of what a model's last layer does to its numbers; "" where that is not known."""
    layers = (keras_layers(model) or []) if model is not None and is_keras_class(type(model)) else []
    if not layers or not is_keras_class(type(layers[-1])):
        return ""
    if type(layers[-1]).__name__ == "Softmax":
        return "softmax"
    return getattr(vars(layers[-1]).get("activation"), "__name__", "")


def _values(fit: ast.Call, spot: Spot) -> Any:
    """The labels, where they are an array of NumPy's."""
    node = argument(fit, 1, "y")
    value = lookup(node, spot) if node is not None else None
    value = computed(node, spot) if node is not None and not is_ndarray(value) else value
    if value is None or not is_ndarray(value) or value.dtype.kind not in "biuf" or value.ndim == 0:
        return None
    return value
