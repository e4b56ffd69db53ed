"""Images that tf.image or tf.io refuses: smaller than a crop, without channels, or of floats where bytes belong."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.as_python import element_spec
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    lookup,
    method_calls,
    shape_of,
    sizes_of,
)

_SMALL = re.compile(r"Need value\.shape >= size, got \]? ?\[([\d ]+)\] \[([\d ]+)\]")
_FLOATS = re.compile(r"'image' has DataType (float\w+) not in list of allowed values")
_FLAT = "must have either 3 or 4 dimensions"
_CHANNELS = ("1", "3", "4")
_ENCODES = ("encode_png", "encode_jpeg")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing op is one of these."""
    if (said := _SMALL.search(situation.message)) is not None:
        return _small(situation, said[1].split(), said[2].split())
    spot, statement = situation.last, situation.statement
    if _FLAT in situation.message and spot is not None and statement is not None and not situation.body:
        return _flat(situation, spot, statement)
    if (said := _FLOATS.search(situation.message)) is None or spot is None or statement is None:
        return None
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in _ENCODES and one.args]
    if len(found) != 1:
        return None
    given, tf = found[0].args[0], alias(spot, "tensorflow")
    text = spot.source.text(given)
    kind = dtype_of(lookup(given, spot)) or said[1]
    cause = (
        f"{short(text, 30)} is {kind}, and {dotted(found[0].func).rpartition('.')[2]} takes bytes. convert_image_dtype "
        "makes them of numbers from 0 to 1; of 0 to 255 it is a cast."
    )
    edit = edit_of(spot.file, spot.source.replaced({given: f"{tf}.image.convert_image_dtype({text}, {tf}.uint8)"}))
    return Explanation("mixed-dtypes", spot.file, found[0].lineno, cause, edit, "", "likely")


def _flat(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`tf.image.resize(mask, ...)` of a mask without an axis for its channels."""
    spec = element_spec(situation, spot)
    for call in calls(statement):
        given = call.args[0] if call.args and ".image." in f".{dotted(call.func)}" else None
        shape = shape_of(lookup(given, spot)) if isinstance(given, ast.Name) else None
        if shape is None and isinstance(given, ast.Name) and shape_of(spec) is not None:
            shape = shape_of(spec)  # the lambda's one argument is the element
        if given is None or shape is None or len(shape) != 2:
            continue
        name = spot.source.text(given)
        cause = f"{name} has no axis for channels, {sizes_of(shape)}, and {dotted(call.func)} takes one. None adds it."
        edit = edit_of(spot.file, spot.source.replaced({given: f"{name}[..., None]"}))
        return Explanation("structure", spot.file, call.lineno, cause, edit)
    return None


def _small(situation: Situation, has: list[str], wanted: list[str]) -> Explanation | None:
    """`random_crop` of an image that is smaller than the crop."""
    for file, source in situation.sources():
        found = [one for one in calls(source.tree) if dotted(one.func).endswith("image.random_crop")]
        if len(found) != 1 or not found[0].args:
            continue
        cause = f"random_crop takes a piece of [{', '.join(wanted)}] of an image of [{', '.join(has)}], "
        short_of = [place for place, (one, other) in enumerate(zip(has, wanted)) if int(one) < int(other)]
        if not short_of or len(has) != len(wanted):
            return None
        if short_of == [len(has) - 1] and len(has) > 1:
            cause += f"which has {has[-1]} on the last axis, and the piece {wanted[-1]}."
            advice = (
                f"Make all elements have {wanted[-1]} there where they are read (np.repeat, or the channels that are "
                "wanted), or leave the others out by a filter before the crop."
            )
            return Explanation("structure", file, found[0].lineno, cause, None, advice)
        cause += "which is smaller."
        if has[-1] not in _CHANNELS or short_of[-1] > 1:
            advice = f"Make elements that have {wanted[short_of[0]]} on axis {short_of[0]}, or ask for a smaller piece."
            caches = [one for one in method_calls(source.tree, "cache") if one.args]
            if caches:
                advice += f" The cache file of line {caches[0].end_lineno} may be an older program's: then remove it."
            return Explanation("structure", file, found[0].lineno, cause, None, advice)
        given = found[0].args[0]
        tf = alias(situation.last, "tensorflow") if situation.last is not None else "tf"
        text = source.text(given)
        larger = [str(max(int(one), int(other))) for one, other in zip(has, wanted)][:2]
        same = len(has) == 3 and has[2] == wanted[2] and isinstance(given, ast.Name)
        if not same:
            return Explanation(
                "structure", file, found[0].lineno, cause, None, "Make the image larger first: resize it."
            )
        new = f"{tf}.image.resize({text}, [{', '.join(larger)}])"
        cause += " Resized first, it is as large."
        return Explanation(
            "structure", file, found[0].lineno, cause, edit_of(file, source.replaced({given: new})), "", "likely"
        )
    return None
