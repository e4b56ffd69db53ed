"""Arrays with one axis less than a model's first layer takes: features, or channels."""

from __future__ import annotations

import ast
import itertools
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup, shape_of

RULE = "structure"
_RANK = re.compile(
    r"of layer '(\w+?)(?:_\d+)?' is incompatible with the layer: expected (?:min_)?ndim=(\d+), found ndim=(\d+)\."
    r" Full shape received: \(([^)]*)\)"
)
_LAST = {
    "lstm": "features of a step", "gru": "features of a step", "simple_rnn": "features of a step",
    "bidirectional": "features of a step", "conv1d": "channels", "conv2d": "channels", "conv3d": "channels",
    "conv_lstm2d": "channels", "max_pooling1d": "channels", "max_pooling2d": "channels",
    "average_pooling2d": "channels", "zero_padding2d": "channels", "separable_conv2d": "channels",
    "depthwise_conv2d": "channels",
}  # fmt: skip
"""Layers that want an axis more, and what their last one is."""
_CHANNELS = (1, 3, 4)
_SERIES = ("LSTM", "GRU", "SimpleRNN", "Conv1D")
"""Layers that take a series."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if data has one axis less than a layer takes."""
    spot, rank = situation.last, _RANK.search(situation.message)
    statement = situation.statement
    if spot is None or statement is None or rank is None:
        return None
    if rank[1] in _LAST and (found := _whole_series(spot, sizes(rank[4]))) is not None:
        return found
    for call in fits(statement):
        given = argument(call, 0, "x")
        if given is None:
            continue
        if int(rank[2]) == int(rank[3]) + 1 and rank[1] in _LAST:
            return _last_axis(spot, call, given, rank[1], sizes(rank[4]))
    if int(rank[2]) == int(rank[3]) + 1 and rank[1] in _LAST:
        return _declared(spot, rank[1], sizes(rank[4]))
    return None


def _whole_series(spot: Spot, got: list[str]) -> Explanation | None:
    """A recurrent layer that gives its last step only, in front of one that takes a whole series."""
    every = sorted(
        (one for one in ast.walk(spot.source.tree) if isinstance(one, ast.Call) and _name(one) in _SERIES),
        key=lambda one: (one.lineno, one.col_offset),
    )
    for one, following in itertools.pairwise(every):
        units = argument(one, 0, "units")
        size = spot.source.text(units) if units is not None else ""
        whole = next((word.value for word in one.keywords if word.arg == "return_sequences"), None)
        if _name(one) == "Conv1D" or spot.source.text(whole or one) == "True" or len(got) != 2:
            continue
        if (size.isdigit() and size != got[-1]) or spot.source.function(one.lineno) is not spot.source.function(
            following.lineno
        ):
            continue
        new = spot.source.with_argument(one, "return_sequences=True")
        if whole is not None:
            new = spot.source.text_with(one, {whole: "True"})
        cause = (
            f"{_name(one)} (line {one.lineno}) gives its last step only, [batch, {got[-1]}], and the "
            f"{_name(following)} behind it (line {following.lineno}) takes all steps."
        )
        return Explanation(RULE, spot.file, one.lineno, cause, Edit(spot.file, *spot.source.kept_lines({one: new})))
    return None


def _name(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2]


def _last_axis(spot: Spot, call: ast.Call, given: ast.expr, layer: str, got: list[str]) -> Explanation | None:
    """An array, or a dataset, without the axis that a layer's weights are for."""
    value, text = lookup(given, spot), spot.source.text(given)
    sizes = ", ".join(["batch", *got[1:]])
    cause = (
        f"The first layer, {layer}, takes an axis more than {text} has, [{sizes}]: its last one is the {_LAST[layer]}."
    )
    if dotted(call.func).endswith("predict") and len(got) == 3 and got[-1].isdigit() and int(got[-1]) in _CHANNELS:
        return None  # one image, or rows without channels
    if is_dataset(value):
        spec: Any = value.element_spec
        parts = len(spec) if isinstance(spec, tuple) else 1
        shape = shape_of(spec[0] if isinstance(spec, tuple) else spec)
        if shape is None or len(shape) != len(got):
            return None
        if parts == 2 and shape_of(spec[1]) == () and None not in shape:
            return None  # single examples: the axis that lacks is the first
        row = ", ".join(["x", "y", "w"][:parts])
        new = f"{text}.map(lambda {row}: ({row.replace('x', 'x[..., None]', 1)}))"
        return _told(spot, call, cause, {given: new}) if parts <= 3 else None
    shape = shape_of(value)
    if shape is not None and [str(one) for one in shape[1:]] != got[1:]:
        return None
    text = f"{spot.source.atom(given)}.values" if hasattr(value, "iloc") else spot.source.atom(given)
    pieces = {given: f"{text}[..., None]"}
    validation = next((one.value for one in call.keywords if one.arg == "validation_data"), None)
    if isinstance(validation, ast.Tuple) and validation.elts:
        first = validation.elts[0]
        pieces[first] = f"{spot.source.atom(first)}[..., None]"
    return _told(spot, call, cause, pieces)


def _declared(spot: Spot, layer: str, got: list[str]) -> Explanation | None:
    """`Input((10,))` in front of such a layer: an axis of one more, which Keras adds to the data by itself."""
    shapes = [
        found for one in spot.source.calls_of(frozenset({"Input", "InputLayer"}))
        if (found := argument(one, 0, "shape")) is not None
    ]  # fmt: skip
    shapes += [
        word.value for one in ast.walk(spot.source.tree) if isinstance(one, ast.Call)
        for word in one.keywords if word.arg == "input_shape"
    ]  # fmt: skip
    own = [
        one for one in shapes
        if isinstance(one, ast.Tuple) and [spot.source.text(part) for part in one.elts] == got[1:]
    ] or [
        one for one in shapes
        if isinstance(one, ast.Tuple) and [str(size) for size in computed(one, spot) or ()] == got[1:]
    ]  # fmt: skip
    if len(own) != 1:
        return None
    new = "(" + ", ".join([*(spot.source.text(part) for part in own[0].elts), "1"]) + ")"
    cause = (
        f"{layer} takes an axis more than the declared input, [batch, {', '.join(got[1:])}]: its last one is the "
        f"{_LAST[layer]}, 1 where a row has one number. fit adds such an axis to the data by itself."
    )
    edit = edit_of(spot.file, spot.source.replaced({own[0]: new}))
    return Explanation(RULE, spot.file, own[0].lineno, cause, edit)


def _told(spot: Spot, call: ast.Call, cause: str, pieces: dict[ast.expr, str]) -> Explanation:
    return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, *spot.source.kept_lines(pieces)))


def sizes(text: str) -> list[str]:
    """The sizes of a shape in a message of Keras': `None`, `2`."""
    return [part.strip() for part in text.split(",") if part.strip()]
