"""`ImageDataGenerator.fit` of images without channels, one image, images of several sizes, or a dataset."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.flows import is_image_generator
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    is_dataset,
    is_ndarray,
    lookup,
    method_calls,
    sizes_of,
)

RULE = "structure"
_RANK = re.compile(r"^Input to `\.fit\(\)` should have rank 4\. Got array with shape: \(([\d, ]+)\)")
_RAGGED = "inhomogeneous shape"
_NO_NUMBER = re.compile(r"^float\(\) argument must be a string or a (?:real )?number, not '\w*Dataset")
_CHANNELS = (1, 3, 4)
_MOST = 1_000
"""Images of which the sizes are read."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the statistics of such were asked for."""
    spot, statement, said = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    rank = _RANK.search(said)
    if rank is None and _RAGGED not in said and not _NO_NUMBER.search(said):
        return None
    found = [one for one in method_calls(statement, "fit") if _is_generator(one, spot)]
    node = argument(found[0], 0, "x") if len(found) == 1 else None
    if node is None:
        return None
    if rank is not None:
        return _ranked(spot, node, [int(one) for one in rank[1].split(",") if one.strip()])
    value = lookup(node, spot)
    return _dataset(spot, node, value) if is_dataset(value) else _ragged(spot, node, value)


def _is_generator(call: ast.Call, spot: Spot) -> bool:
    owner = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    return is_image_generator(owner)


def _ranked(spot: Spot, node: ast.expr, shape: list[int]) -> Explanation | None:
    text, shown = spot.source.atom(node), short(spot.source.text(node), 40)
    if not shape:
        return None
    cause = f"fit of an ImageDataGenerator takes [images, height, width, channels], and {shown} is {sizes_of(shape)}"
    if len(shape) != 3:
        advice = "Give it the images as one array of four axes."
        return Explanation(RULE, spot.file, node.lineno, f"{cause}.", None, advice)
    single = shape[-1] in _CHANNELS
    np = alias(spot, "numpy")
    value = lookup(node, spot)
    if not (hasattr(value, "shape") and type(value).__module__ == "numpy"):
        text = f"{np}.array({spot.source.text(node)})"
    cause += ": one image, without the axis of the images." if single else ": it has no axis for the channels."
    if not single:
        cause += " flow wants it, too."
    new = f"{text}[None]" if single else f"{text}[..., None]"
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "" if edit else f"Give it {new}.")


def _ragged(spot: Spot, node: ast.expr, value: Any) -> Explanation | None:
    """A list of images of several sizes."""
    held = value[:_MOST] if type(value) in (list, tuple) else ()
    shapes = {one.shape for one in held if is_ndarray(one)}
    if len(shapes) < 2 or not all(is_ndarray(one) and one.ndim in (2, 3) for one in held):
        return None
    sizes = " and ".join(sizes_of(one) for one in sorted(shapes, key=str)[:2])
    cause = f"fit of an ImageDataGenerator makes one array of {short(spot.source.text(node), 30)}, whose images have "
    cause += f"several shapes: {sizes}{', ...' * (len(shapes) > 2)}."
    advice = "Resize them to one, as tf.image.resize(image, (height, width)).numpy() does."
    return Explanation(RULE, spot.file, node.lineno, cause, None, advice)


def _dataset(spot: Spot, node: ast.expr, value: Any) -> Explanation | None:
    spec: Any = value.element_spec
    images = spec[0] if isinstance(spec, tuple) else spec
    rank: Any = getattr(getattr(images, "shape", None), "rank", None)
    text = spot.source.atom(node)
    cause = f"fit of an ImageDataGenerator takes an array of images, and {short(text, 40)} is a dataset."
    pick = "x for x, *_ in" if isinstance(spec, tuple) else "x for x in"
    np = alias(spot, "numpy")
    join = {4: "concatenate", 3: "stack"}.get(rank)
    if join is None or value.cardinality().numpy() == -1:
        return Explanation(RULE, spot.file, node.lineno, cause, None, "Give it an array of some images.")
    new = f"{np}.{join}([{pick} {text}.as_numpy_iterator()])"
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "" if edit else f"Give it {new}.")
