"""A layer that takes another number of axes than the layer in front of it gives: steps, rows and images.

Keras says both numbers, and not which of the user's layers gives such a shape, nor why.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.failed_layers import FailedLayer, Made, Shape, arguments, failed_layer
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import shape_of, sizes_of

RULE = "structure"
_SAID = re.compile(r"is incompatible with the layer: expected (?:min_)?ndim=(\d+), found ndim=(\d+)")
_STEPS = re.compile(r"`TimeDistributed` Layer should be passed an `input_shape` with at least 3 dimensions")
_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "RNN", "Bidirectional", "ConvLSTM2D")
_CHANNELS = (1, 3, 4)
"""Of an image."""
_PLANES = re.compile(r"(.*)([12])D")
_SERIES = (
    *_RECURRENT, "TimeDistributed", "Conv1D", "Conv1DTranspose", "SeparableConv1D", "MaxPooling1D", "AveragePooling1D",
    "GlobalMaxPooling1D", "GlobalAveragePooling1D", "UpSampling1D", "ZeroPadding1D",
)  # fmt: skip
_KEEPS = ("Dropout", "Dense", "BatchNormalization", "LayerNormalization", "Activation", "ReLU", "LeakyReLU")
"""Layers that give as many axes as they get."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a layer got one axis more or less than it takes."""
    said, steps = _SAID.search(situation.message), _STEPS.search(situation.message)
    failed = failed_layer(situation) if said is not None or steps is not None else None
    if failed is None or len(failed.shapes) != 1:
        return None
    wanted, got = (int(said[1]), int(said[2])) if said is not None else (3, len(failed.shapes[0]))
    if wanted == 3 and got == 2 and failed.kind in _SERIES:
        return _last_step(failed)
    if wanted == 2 and got == 3 and failed.kind == "RepeatVector":
        return _all_steps(failed)
    if wanted == 3 and got == 4 and failed.kind in (*_RECURRENT, "Conv1D"):
        plain = failed.kind == "Conv1D" and failed.shapes[0][-1] in _CHANNELS
        return _dimensions(failed, got) if plain else _image(failed, failed.shapes[0])
    if failed.kind == "ConvLSTM2D" and (wanted, got) == (5, 4):
        return _last_step(failed) or _film(failed)
    if got == 2 and wanted > 3:
        return _rows(failed, wanted)
    return _dimensions(failed, got) if got == wanted + 1 else None


def _recurrent(failed: FailedLayer) -> Any:
    """The recurrent layer whose result it gets, perhaps through layers that keep the axes."""
    return next((one for one in failed.before if type(one).__name__ not in _KEEPS), None)


def shape_maker(failed: FailedLayer) -> Any:
    """The layer that gives the shape that a failed one gets: those behind it keep that."""
    kept = set(_KEEPS) - {"Dense"}
    return next((one for one in failed.before if type(one).__name__ not in kept), None)


def _last_step(failed: FailedLayer) -> Explanation | None:
    layer = _recurrent(failed)
    if type(layer).__name__ not in _RECURRENT or vars(layer).get("return_sequences") is not False:
        return None
    made = failed.made(layer)
    inner = _inner(made) if made is not None else None
    if made is None or inner is None:
        return None
    kind = inner.call.func.attr if isinstance(inner.call.func, ast.Attribute) else ast.unparse(inner.call.func)
    cause = (
        f"{kind} (line {inner.call.lineno}) gives its last step only{_given(failed, layer)}, "
        f"and the {failed.kind} behind it takes all steps."
    )
    new = inner.with_arguments(return_sequences="True")
    return Explanation(RULE, made.spot.file, inner.call.lineno, cause, inner.edit(new))


def _given(failed: FailedLayer, layer: Any) -> str:
    """The shape of what a layer gives, behind a comma, where the failed one gets just that."""
    return f", {_sizes(failed.shapes[0])}" if failed.before[:1] == [layer] else ""


def _all_steps(failed: FailedLayer) -> Explanation | None:
    layer = _recurrent(failed)
    made = failed.made(layer) if type(layer).__name__ in _RECURRENT else None
    inner = _inner(made) if made is not None else None
    given = argument(inner.call, len(inner.call.args), "return_sequences") if inner is not None else None
    if made is None or inner is None or given is None:
        return None
    cause = (
        f"return_sequences=True (line {given.lineno}) gives all steps{_given(failed, layer)}, and RepeatVector "
        "repeats one row: the last step."
    )
    return Explanation(
        RULE, made.spot.file, given.lineno, cause, inner.edit(inner.with_arguments(return_sequences="False"))
    )


def _film(failed: FailedLayer) -> Explanation | None:
    """Images for a layer of films."""
    shape = failed.shapes[0]
    if [type(one).__name__ for one in failed.before] != ["InputLayer"] or shape[-1] not in _CHANNELS:
        return None
    made = failed.made(failed.layer)
    if made is None:
        return None
    cause = (
        f"ConvLSTM2D takes films, [batch, frames, height, width, channels], and the input is images, {_sizes(shape)}."
    )
    advice = f"Give the Input the number of frames in front: (frames, {', '.join(map(str, shape[1:]))})."
    return Explanation(RULE, made.spot.file, made.call.lineno, cause, None, advice)


def _dimensions(failed: FailedLayer, got: int) -> Explanation | None:
    """`GlobalAveragePooling1D` of images."""
    named, made = _PLANES.fullmatch(failed.kind), failed.made(failed.layer)
    if named is None or made is None or isinstance(made.call.func, ast.Call):
        return None
    if any(
        isinstance(computed(one, made.spot), (tuple, list)) for one in arguments(made.call, type(failed.layer)).values()
    ):
        return None
    new = f"{named[1]}{got - 2}D"
    what = "a series" if got == 3 else "an image" if got == 4 else "a volume"
    cause = f"{failed.kind} takes other axes: {_sizes(failed.shapes[0])} are those of {what}, for which there is {new}."
    text = made.source.text_with(made.call, {made.call.func: made.other(new)})
    return Explanation(RULE, made.spot.file, made.call.lineno, cause, made.edit(text), "", "likely")


def _inner(made: Made) -> Made | None:
    """The recurrent layer that a Bidirectional goes around; of another layer itself."""
    if type(made.layer).__name__ != "Bidirectional":
        return made
    first = argument(made.call, 0, "layer")
    inner = vars(made.layer).get("forward_layer")
    alone = argument(made.call, 9, "backward_layer") is None
    return Made(made.spot, first, inner) if isinstance(first, ast.Call) and inner is not None and alone else None


def _image(failed: FailedLayer, shape: Shape) -> Explanation | None:
    """An image, or what a convolution made of one, for a layer of a series: its rows are the steps."""
    _, height, width, channels = shape
    if height is None or width is None or channels is None:
        return None
    edit = failed.with_layer(f"Reshape(({height}, {width * channels}))")
    if edit is None:
        return None
    cause = (
        f"{failed.kind} takes a series, [batch, steps, features], and gets an axis more, {_sizes(shape)}. "
        f"With its {height} rows as steps, a step has {width} x {channels} features."
    )
    return Explanation(RULE, failed.spot.file, edit.first, cause, edit, "", "likely")


def _rows(failed: FailedLayer, wanted: int) -> Explanation | None:
    """What a Dense of `7 * 7 * 256` units gives, for a layer of images."""
    layer = shape_maker(failed)
    made = failed.made(layer) if type(layer).__name__ == "Dense" else None
    units = argument(made.call, 0, "units") if made is not None else None
    if made is not None and units is not None:
        factors = _factors(units)
        texts = list(map(made.source.text, factors))
        if len(texts) == 3 and texts[0] != texts[1] == texts[2]:  # channels were written in front of the pixels
            texts = [*texts[1:], texts[0]]
        edit = failed.with_layer(f"Reshape(({', '.join(texts)}))")
        if len(factors) == wanted - 1 and edit is not None:
            cause = (
                f"Dense (line {made.call.lineno}) gives a row of {shape_of(failed.given[0])[-1]} numbers, "  # type: ignore[index]
                f"and {failed.kind} takes an image: a Reshape makes one of them."
            )
            return Explanation(RULE, failed.spot.file, edit.first, cause, edit)
    kind = type(layer).__name__
    if kind != "Flatten" and not kind.startswith("Global"):
        return None
    made = failed.made(layer)
    if made is None:
        return None
    cause = (
        f"{kind} (line {made.call.lineno}) makes a row of each example, {_sizes(failed.shapes[0])}, and {failed.kind} "
        "behind it takes images."
    )
    return Explanation(
        RULE, made.spot.file, made.call.lineno, cause, None, f"Put {kind} behind the last {failed.kind}."
    )


def _factors(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


def _sizes(shape: Shape) -> str:
    return sizes_of(shape).replace("[?", "[batch", 1)
