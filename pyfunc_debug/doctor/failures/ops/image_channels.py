"""Images with other channels than an op of tf.image or tf.io takes: gray, with alpha, or without an axis for them."""

from __future__ import annotations

import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each, shape_at
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, sizes_of

_JPEG = re.compile(r"JPEG does not support 4 channels")
_COLORS = re.compile(r"input must have 3 channels but instead has (\d+) channels")
_GRAY = re.compile(r"Last dimension of a grayscale image should be size 1")
_DECODES = ("decode_jpeg", "decode_image", "decode_png")
_OF_COLORS = ("random_hue", "random_saturation", "adjust_hue", "adjust_saturation", "stateless_random_hue",
              "stateless_random_saturation", "rgb_to_hsv")  # fmt: skip
_ALPHA = 4


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the channels say what the image is."""
    if _JPEG.search(situation.message):
        return each(situation, _decoded)
    if (said := _COLORS.search(situation.message)) is not None:
        return each(situation, _colored, int(said[1]))
    return each(situation, _grayed) if _GRAY.search(situation.message) else None


def _decoded(place: Refused) -> Explanation | None:
    found = place.calls_of(*_DECODES)
    given = argument(found[0], 1, "channels") if len(found) == 1 else None
    if given is None or evaluation.computed(given, place.spot) != _ALPHA:
        return None
    cause = "the file is a JPEG, which has no alpha channel. With 3 a PNG and a JPEG both give colors."
    return place.told(cause, {given: "3"})


def _colored(place: Refused, channels: int) -> Explanation | None:
    found = place.calls_of(*_OF_COLORS)
    image = found[0].args[0] if len(found) == 1 and found[0].args else None
    if image is None:
        return None
    name, op, tf = short(place.text(image), 30), dotted(found[0].func), alias(place.spot, "tensorflow")
    if channels == _ALPHA:
        cause = f"{name} has 4 channels, and {op} takes the three of colors. The fourth is alpha; it is left out here."
        return place.told(cause, {image: f"{place.spot.source.atom(image)}[..., :3]"})
    if channels != 1:
        return None
    cause = f"{name} has one channel: a gray image has neither hue nor saturation."
    return place.told(cause, {}, f"Leave {op} out, or make three channels first: {tf}.image.grayscale_to_rgb({name}).")


def _grayed(place: Refused) -> Explanation | None:
    found = place.calls_of("grayscale_to_rgb")
    image = argument(found[0], 0, "images") if len(found) == 1 else None
    shape = shape_at(image, place.spot) if image is not None else None
    if image is None or not shape:
        return None
    text = place.text(image)
    if shape[-1] == 3:
        cause = f"{short(text, 30)} has the shape {sizes_of(shape)}: it has three channels already."
        return place.told(cause, {found[0]: text}, measured=True)
    if len(shape) == 2:
        cause = f"{short(text, 30)} has the shape {sizes_of(shape)}, without an axis for its channel. None adds it."
        return place.told(cause, {image: f"{place.spot.source.atom(image)}[..., None]"})
    return None
