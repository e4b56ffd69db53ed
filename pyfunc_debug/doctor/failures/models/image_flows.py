"""What an ImageDataGenerator's `flow` gives beside what a model takes: images of another size, of no channel, labels.

Keras says shapes, of layers inside of the model, and neither whose they are nor that a size is an argument of the flow.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.flows import Flow, flow_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import (
    is_keras_class,
    keras_name,
    lookup,
    method_calls,
    shape_of,
    sizes_of,
)

RULE = "structure"
_RANK = re.compile(
    r"^Input data in `NumpyArrayIterator` should have rank 4\. You passed an array with shape \(([\d, ]+)\)"
)
_SHAPES = re.compile(r"is incompatible with the layer|incompatible shape|found shape=")
_LABELS = re.compile(r"must have the same shape\. Received: target\.shape=\(\w+, (\d+)\), output\.shape=\(\w+, (\d+)\)")
_PLACES = {
    "flow_from_directory": {"target_size": 1, "color_mode": 2},
    "flow_from_dataframe": {"target_size": 5, "color_mode": 6},
}
"""Where these arguments stand, by position (keras/src/legacy/preprocessing/image.py)."""
_CHANNELS = {1: "grayscale", 3: "rgb", 4: "rgba"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a flow gives what the model does not take."""
    spot, statement, said = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    if (rank := _RANK.search(said)) is not None:
        return _ranked(spot, statement, [int(one) for one in rank[1].split(",") if one.strip()])
    labels = _LABELS.search(said)
    if labels is None and not _SHAPES.search(said):
        return None
    for fit_spot, call in failed_fits(situation):
        model: Any = lookup(call.func.value, fit_spot) if isinstance(call.func, ast.Attribute) else None
        nodes = [argument(call, 0, "x"), argument(call, 99, "validation_data")]
        flows = [flow for one in nodes if one is not None and (flow := flow_of(one, fit_spot)) is not None]
        if model is None or not flows or not is_keras_class(type(model)):
            continue
        if labels is not None:
            return _classes(fit_spot, call, flows, int(labels[1]), int(labels[2]))
        found = [one for flow in flows if (one := _sized(fit_spot, flow, model)) is not None]
        return found[0] if found else None
    return None


def _ranked(spot: Spot, statement: ast.stmt, shape: list[int]) -> Explanation | None:
    """`flow(x)` of images without an axis for channels, or of one image."""
    found = [one for one in method_calls(statement, "flow") if argument(one, 0, "x") is not None]
    node = argument(found[0], 0, "x") if len(found) == 1 else None
    if node is None or len(shape) != 3:
        return None
    labels = argument(found[0], 1, "y")
    rows = (shape_of(lookup(labels, spot)) or (None,))[0] if labels is not None else None
    single = shape[-1] in _CHANNELS and rows != shape[0]
    if single and labels is not None and rows is None:
        return None  # it may be rows without channels, of which the last size says nothing
    text = spot.source.atom(node)
    cause = f"flow takes [images, height, width, channels], and {spot.source.text(node)} is {shape}: " + (
        "one image, without the axis of the images." if single else "it has no axis for the channels."
    )
    new = f"{text}[None]" if single else f"{text}[..., None]"
    return Explanation(RULE, spot.file, node.lineno, cause, edit_of(spot.file, spot.source.replaced({node: new})))


def _sized(spot: Spot, flow: Flow, model: Any) -> Explanation | None:
    """Images of another height, width or number of channels than the model was built for."""
    inputs: Any = getattr(model, "inputs", None)
    wanted = (shape_of(inputs[0]) or ())[1:] if inputs and len(inputs) == 1 else ()
    got = flow.image_shape
    if got is None or len(wanted) != 3 or all(a in (None, b) for a, b in zip(wanted, got)):
        return None
    name = spot.source.text(flow.node)
    size, channels = tuple(wanted[:2]), wanted[2]
    shown = sizes_of(wanted)
    cause = f"{name} gives images of {list(got)}, and the model takes {shown}."
    if flow.method == "flow" or flow.call is None or flow.held.get("data_format") == "channels_first":
        advice = f"Give it images of {shown}: tf.image.resize makes the size, and the model's Input says what it takes."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    places = _PLACES.get(flow.method, {})
    texts = {}
    if None not in size and size != got[:2]:
        texts["target_size"] = str(size)
        if argument(flow.call, places.get("target_size", 99), "target_size") is None:
            cause += f" Without a target_size, {flow.method} makes them {got[0]} x {got[1]}."
    if channels not in (None, got[2]) and channels in _CHANNELS:
        texts["color_mode"] = f'"{_CHANNELS[channels]}"'
        cause += f" {channels} channel{'s' * (channels != 1)}: that is its color_mode."
    return _with(spot, flow.call, texts, cause, places) if texts else None


def _with(
    spot: Spot, call: ast.Call, texts: dict[str, str], cause: str, places: Mapping[str, int] = MappingProxyType({})
) -> Explanation:
    """The call with other arguments, or more of them."""
    given = {one: node for one in texts if (node := argument(call, places.get(one, 99), one)) is not None}
    pieces = {given[name]: text for name, text in texts.items() if name in given}
    more = ", ".join(f"{name}={text}" for name, text in texts.items() if name not in given)
    lines = spot.source.ended(call, more, pieces=pieces) if more else None
    first, last = call.lineno, call.end_lineno or call.lineno
    edit = edit_of(spot.file, (first, last, "\n".join(lines)) if lines else spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, call.lineno, cause, edit)


def _classes(spot: Spot, fit: ast.Call, flows: list[Flow], labels: int, outputs: int) -> Explanation | None:
    """One of Keras' applications with all of its classes, and labels of the flow's."""
    flow = next((one for one in flows if one.classes == labels), None)
    owner = dotted(fit.func).rpartition(".")[0]
    made = [
        one.value for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and owner in map(dotted, one.targets) and isinstance(one.value, ast.Call)
    ]  # fmt: skip
    if flow is None or len(made) != 1:
        return None
    call, function = made[0], lookup(made[0].func, spot)
    keywords = {one.arg: one.value for one in call.keywords}
    top = keywords.get("include_top")
    if "applications" not in getattr(function, "__module__", "") or "classes" in keywords or None in keywords:
        return None
    if isinstance(top, ast.Constant) and top.value is False:
        return None
    weights = keywords.get("weights")
    given = weights.value if isinstance(weights, ast.Constant) else lookup(weights, spot) if weights else "imagenet"
    trained = given == "imagenet" if isinstance(given, str) else False
    if isinstance(given, str) and not trained:
        return None  # the user's own, of a model with that top
    name = dotted(call.func).rpartition(".")[2]
    cause = (
        f"{name} has an output for each of the {outputs:,} classes of ImageNet, and {spot.source.text(flow.node)} "
        f"has {labels} classes."
    )
    if not trained:
        return _with(spot, call, {"classes": str(labels)}, cause)
    cause += " With trained weights its top cannot change: a Dense of your classes takes its place."
    return _with_top(spot, call, labels, cause)


def _with_top(spot: Spot, call: ast.Call, labels: int, cause: str) -> Explanation | None:
    """A trained application without its top, and a Dense behind it, on the lines of its call."""
    keras = keras_name(spot)
    keywords = {one.arg: one.value for one in call.keywords}
    top = keywords.get("include_top")
    base = (
        spot.source.text_with(call, {top: "False"}) if top is not None
        else spot.source.with_argument(call, "include_top=False")
    )  # fmt: skip
    base = base if "pooling" in keywords else f'{base[:-1].rstrip(", ")}, pooling="avg")'
    new = f'{keras}.Sequential([{base}, {keras}.layers.Dense({labels}, activation="softmax")])'
    return Explanation(RULE, spot.file, call.lineno, cause, edit_of(spot.file, spot.source.replaced({call: new})))
