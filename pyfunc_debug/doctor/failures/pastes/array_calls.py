"""Calls into libraries that take arrays: an eager tensor is none to them, so that a value has to be given."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Function, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, root_is, symbolic_parts

_PACKAGES = ("cv2", "PIL", "skimage", "albumentations", "imgaug", "librosa")
_OF_KERAS = (
    "random_rotation", "random_shift", "random_shear", "random_zoom", "random_channel_shift", "random_brightness",
    "apply_affine_transform", "apply_channel_shift", "apply_brightness_shift",
)  # fmt: skip
"""NumPy functions of `tf.keras.preprocessing.image`."""


def takes_arrays(call: ast.Call, spot: Spot) -> bool:
    """Whether a call is of a function of such a library, or of Keras' old image functions."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in _OF_KERAS:
        value = spot.value(name) if isinstance(call.func, ast.Name) else None
        return value is None or "preprocessing" in str(getattr(value, "__module__", ""))
    return any(root_is(call.func, spot, one) for one in _PACKAGES)


def keeps_shape(part: ast.expr) -> ast.Name | None:
    """The image whose shape the result of one of Keras' old image functions has."""
    call = part if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) else None
    image = call.args[0] if call is not None and call.func.attr in _OF_KERAS and call.args else None  # type: ignore[attr-defined]
    return image if isinstance(image, ast.Name) else None


def given_tensors(function: Function, spot: Spot) -> list[ast.Call]:
    """Calls of a function that would be given eager tensors if it ran with values: what its ops made."""
    made = {
        target.id
        for one in ast.walk(function) if isinstance(one, ast.Assign)
        for target in one.targets if isinstance(target, ast.Name)
        if any(root_is(call.func, spot, "tensorflow") for call in calls(one.value))
    }  # fmt: skip
    kept = set(parameters(function)) - made
    return [one for one in calls(function) if takes_arrays(one, spot) and set(_tensors(one, spot)) - kept]


def _tensors(call: ast.Call, spot: Spot) -> list[str]:
    """The tensors that a call is given as they are, not their values."""
    given = (*call.args, *(word.value for word in call.keywords))
    asked = [
        one for one in given if any(isinstance(part, ast.Attribute) and part.attr == "numpy" for part in ast.walk(one))
    ]
    return [part for one in given if one not in asked for part in symbolic_parts(one, spot)]
