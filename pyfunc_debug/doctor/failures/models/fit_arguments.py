"""Arguments of `fit` that do not go with its data: a dataset, weights of another shape, a small last batch."""

from __future__ import annotations

import ast
import math
import re
from types import ModuleType
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.flows import flow_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    is_dataset,
    lookup,
    method_calls,
    root_is,
    shape_of,
)
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.interception.names.private import dataset_inputs

RULE = "structure"
_BESIDE = re.compile(r"When providing `x` as a (tf\.data\.Dataset|[\w ]+), `(y|sample_weights?)` should not be passed")
_WHOLE = re.compile(
    r"'(?:numpy\.)?float\d*' object cannot be interpreted as an integer"
    r"|Expected int(?:32|64), but got [\d.]+ of type 'float"
)
_ROUND = ("ceil", "floor", "rint", "round", "trunc", "fix")
_COUNTS = {
    "fit": ("steps_per_epoch", "epochs", "validation_steps", "initial_epoch", "batch_size"),
    "evaluate": ("steps", "batch_size"), "predict": ("steps", "batch_size"),
}  # fmt: skip
"""Arguments that are whole numbers, by the method."""
_SPLIT = "Argument `validation_split` is only supported for"
_SIZES = re.compile(r"Incompatible shapes: \[(\d+)[,\d]*\] vs\. \[(\d+)[,\d]*\]")
_FARTHEST = 12
"""Lines between two places that one paste changes."""
_WEIGHED = "reduce_weighted_values"
"""Keras' function that multiplies the losses of rows by their weights (keras/src/losses/loss.py)."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `fit` did not take one of its arguments."""
    said = situation.message
    for spot, call in failed_fits(situation):
        given = argument(call, 0, "x")
        if _WHOLE.search(said) and (counted := _counts(spot, call)) is not None:
            return counted
        if given is None:
            continue
        data, beside, sizes = lookup(given, spot), _BESIDE.search(said), _SIZES.search(said)
        found = None
        if is_dataset(data) and beside is not None:
            found = _labels(spot, call, given) if beside[2] == "y" else _weights(spot, call, given, data)
        elif beside is not None:
            found = _beside(spot, call, given, beside[1], "y" if beside[2] == "y" else "sample_weight")
        elif is_dataset(data) and _SPLIT in said:
            found = _split(spot, call, given, data)
        elif sizes is not None and (rows := _rows_of_model(call, spot)) is not None and rows == int(sizes[2]):
            found = _last_batch(spot, call, given, data, rows, int(sizes[1]))
        elif any(one.f_code.co_name == _WEIGHED for one in frames(situation.inner.__traceback__)):
            found = _shaped_weights(spot, call)
        if found is not None:
            return found
    return None


def _labels(spot: Spot, call: ast.Call, given: ast.expr) -> Explanation | None:
    """`fit(inputs, labels)` of two datasets."""
    labels = argument(call, 1, "y")
    if labels is None or not is_dataset(lookup(labels, spot)):
        return None
    text = spot.source.text
    zipped = f"{alias(spot, 'tensorflow')}.data.Dataset.zip(({text(given)}, {text(labels)}))"
    cause = f"{text(given)} and {text(labels)} are two datasets, and fit takes one whose elements are (x, y)."
    return _told(spot, call, cause, _without(spot, call, {given: zipped}, "y", 1))


def _beside(spot: Spot, call: ast.Call, given: ast.expr, kind: str, name: str) -> Explanation | None:
    """`fit(generator, labels)`: each batch of a generator has its labels, or weights, with it."""
    place = 1 if name == "y" else 99
    node = argument(call, place, name)
    if node is None:
        return None
    text, what = spot.source.text, "labels" if name == "y" else "weights"
    flow = flow_of(given, spot)
    own = short(text(given), 40)
    cause = f"{own} is a {kind}: its batches are (inputs, labels), and fit takes no {name} beside it."
    if flow is not None and flow.method == "flow" and flow.held.get(name) is None:  # flow(x) without labels
        cause += f" {own} was made without {what}."
        if flow.call is None:
            return Explanation(RULE, spot.file, call.lineno, cause, None, f"Give {text(node)} to flow(...).")
        first = spot.source.with_argument(flow.call, f"{name}={text(node)}")
        return _told(spot, flow.call, cause, {flow.call: first, **_without(spot, call, {}, name, place)})
    return _told(spot, call, cause, _without(spot, call, {}, name, place))


def _counts(spot: Spot, call: ast.Call) -> Explanation | None:
    """`steps_per_epoch=len(x) / 32`: a float where a number is counted."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = {one.arg: one.value for one in call.keywords if one.arg in _COUNTS.get(method, ())}
    found = {name: node for name, node in given.items() if _is_float(node, spot)}
    if not found:
        return None
    pieces: dict[ast.expr, str] = {}
    for node in found.values():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            pieces[node] = f"{spot.source.operand(node.left)} // {spot.source.operand(node.right)}"
        else:
            pieces[node] = f"int({spot.source.text(node)})"
    shown = [f"`{short(spot.source.text(node), 30)}`" for node in found.values()]
    cause = (
        f"{listed(list(found))} of {method} {'is a whole number' if len(found) == 1 else 'are whole numbers'}, and "
        f"{listed(shown)} {'is a float' if len(found) == 1 else 'are floats'}."
    )
    return _told(spot, call, cause, pieces)


def _is_float(node: ast.expr, spot: Spot) -> bool:
    """Whether an expression gives a float: by its value, by a `/`, or as NumPy's roundings do."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return True
    if isinstance(node, ast.Call):
        return dotted(node.func).rpartition(".")[2] in _ROUND and root_is(node.func, spot, "numpy")
    value = node.value if isinstance(node, ast.Constant) else lookup(node, spot)
    return type(value).__name__.startswith("float")


def _weights(spot: Spot, call: ast.Call, given: ast.expr, data: Any) -> Explanation | None:
    """Weights in an array beside a dataset: its elements take them as a third part."""
    weights = argument(call, 99, "sample_weight")
    spec = data.element_spec
    if weights is None or not isinstance(spec, tuple) or len(spec) != 2:
        return None
    text, tf = spot.source.text, alias(spot, "tensorflow")
    cause = f"Beside a dataset, fit takes no weights: they are the third part of its elements, {text(weights)} too."
    removed = _without(spot, call, {}, "sample_weight")
    made = [one.args[0] for one in method_calls(spot.source.tree, "from_tensor_slices") if one.args]
    near = (
        len(made) == 1 and 0 <= call.lineno - made[0].lineno <= _FARTHEST and not method_calls(spot.source.tree, "map")
    )
    if near and isinstance(made[0], ast.Tuple) and len(made[0].elts) == 2 and _defined_before(spot, weights, made[0]):
        parts = ", ".join(map(text, (*made[0].elts, weights)))
        return _told(spot, call, cause, {made[0]: f"({parts})", **removed})
    size = _batch_size(spot, spec)
    if _shuffles(data) or not size:
        advice = f"Put them in where it is made, before a shuffle: from_tensor_slices((x, y, {text(weights)}))."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    rows = f"{tf}.data.Dataset.zip(({text(given)}.unbatch(), {tf}.data.Dataset.from_tensor_slices({text(weights)})))"
    new = f"{rows}.map(lambda row, weight: (*row, weight)).batch({size})"
    return _told(spot, call, cause, _without(spot, call, {given: new}, "sample_weight"))


def _defined_before(spot: Spot, node: ast.expr, place: ast.expr) -> bool:
    """Whether a name, or each name of an expression, is given its value above a line; packages are there."""
    parts = [node] if isinstance(node, (ast.Name, ast.Attribute)) else [
        ast.Name(one, ast.Load()) for one in names(node) if not isinstance(spot.value(one), ModuleType)
    ]  # fmt: skip
    written = {one.id if isinstance(one, ast.Name) else spot.source.text(one) for one in parts}
    lines: dict[str, list[int]] = {}
    for one in ast.walk(spot.source.tree):
        if isinstance(one, ast.Assign):
            for text in map(spot.source.text, one.targets):
                lines.setdefault(text, []).append(one.lineno)
    return all(one in lines and max(lines[one]) < place.lineno for one in written)


def _batch_size(spot: Spot, spec: Any) -> str:
    """The size of a dataset's batches, as it is written in the file's one `.batch(...)`."""
    found = [one.args[0] for one in method_calls(spot.source.tree, "batch") if one.args]
    shape = shape_of(spec[0]) or ()
    return spot.source.text(found[0]) if len(found) == 1 else str(shape[0]) if shape and shape[0] else ""


def _shuffles(data: Any) -> bool:
    return "Shuffle" in type(data).__name__ or any(map(_shuffles, dataset_inputs(data)))


def _split(spot: Spot, call: ast.Call, given: ast.expr, data: Any) -> Explanation | None:
    """`validation_split` of a dataset."""
    share = argument(call, 99, "validation_split")
    try:
        count = len(data)
    except TypeError:
        count = 0
    if share is None:
        return None
    text = spot.source.text
    cause = f"validation_split takes the last rows of arrays, and {text(given)} is a dataset, which is read in order."
    if not count or _shuffles(data):
        why = "that is shuffled with reshuffle_each_iteration=False" if count else "whose number of elements you know"
        advice = f"Split it by hand: take(n) and skip(n) of a dataset {why}, as validation_data and x."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    held = f"int(len({text(given)}) * {text(share)})"
    pieces: dict[ast.expr, str] = {given: f"{text(given)}.skip({held})"}
    edits = _without(spot, call, pieces, "validation_split", new=f"validation_data={text(given)}.take({held})")
    return _told(spot, call, cause, edits)


def _rows_of_model(call: ast.Call, spot: Spot) -> int | None:
    """The size of a batch that a model's input fixes."""
    model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    inputs: Any = getattr(model, "inputs", None) or ()
    shape = shape_of(inputs[0]) if len(inputs) else None
    return next(iter(shape or ()), None)


def _last_batch(spot: Spot, call: ast.Call, given: ast.expr, data: Any, rows: int, left: int) -> Explanation | None:
    """A batch of another size than the model's input fixes, the last one or each."""
    if left > rows:
        return _larger(spot, call, given, data, rows, left)
    cause = f"The model's input fixes the size of a batch, {rows}, and the last batch has {left} rows."
    if is_dataset(data):
        batches = [one for one in method_calls(spot.source.tree, "batch") if one.args and not one.keywords]
        new: dict[ast.expr, str] = {one: spot.source.with_argument(one, "drop_remainder=True") for one in batches}
        if len(batches) != 1:
            advice = "Batch it with drop_remainder=True."
            return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
        return _told(spot, call, cause, new)
    shape = shape_of(data)
    if not shape or shape[0] is None or shape[0] % rows != left:
        return None
    parts = [given, argument(call, 1, "y"), argument(call, 99, "sample_weight")]
    pieces: dict[ast.expr, str] = {}
    for one in parts:
        if one is not None and isinstance(one, (ast.Name, ast.Attribute)):
            pieces[one] = f"{spot.source.text(one)}[:{shape[0] - left}]"
        elif one is not None:
            return None
    return _told(spot, call, f"{cause} {shape[0] - left} of the {shape[0]} rows make whole batches.", pieces)


def _larger(spot: Spot, call: ast.Call, given: ast.expr, data: Any, rows: int, size: int) -> Explanation | None:
    """Batches that are larger than the size which the model's input fixes: of 32 rows, where `fit` is given none."""
    cause = f"The model's input fixes the size of a batch, {rows}, and a batch has {size} rows."
    pieces: dict[ast.expr, str] = {}
    if is_dataset(data):
        batches = [one for one in method_calls(spot.source.tree, "batch") if one.args]
        if len(batches) != 1:
            return Explanation(RULE, spot.file, call.lineno, cause, None, f"Make batches of {rows}.")
        return _told(spot, call, cause, {batches[0].args[0]: str(rows)})
    named = next((one.value for one in call.keywords if one.arg == "batch_size"), None)
    shape = shape_of(data)
    if not shape or shape[0] is None or len(call.args) > 2 or any(one.arg is None for one in call.keywords):
        return None
    if named is not None:
        return _told(spot, call, cause, {named: str(rows)})
    if shape[0] % rows == 0:
        pieces[call] = spot.source.with_argument(call, f"batch_size={rows}")
        return _told(spot, call, f"{cause} fit and evaluate make batches of 32 where batch_size is not given.", pieces)
    return Explanation(RULE, spot.file, call.lineno, cause, None, f"Give it batch_size={rows}, and whole batches.")


def _shaped_weights(spot: Spot, call: ast.Call) -> Explanation | None:
    """Weights of rows, or of places in them, that have the number of the labels and not their shape."""
    weights, labels = argument(call, 99, "sample_weight"), argument(call, 1, "y")
    own = shape_of(lookup(weights, spot)) if weights is not None else None
    shape = shape_of(lookup(labels, spot)) if labels is not None else None
    if weights is None or labels is None or own is None or shape is None or len(shape) < 2 or None in (*own, *shape):
        return None
    wanted = shape[:-1]
    if own == wanted or math.prod(one or 0 for one in own) != math.prod(one or 0 for one in wanted):
        return None
    text = spot.source.text
    cause = (
        f"{text(weights)} is {list(own)}, and the loss has a number for each place of {text(labels)}, {list(wanted)}: "
        "the weights need that shape."
    )
    return _told(spot, call, cause, {weights: f"{text(weights)}.reshape({text(labels)}.shape[:-1])"})


def _without(
    spot: Spot, call: ast.Call, pieces: dict[ast.expr, str], name: str, place: int = 99, new: str = ""
) -> dict[ast.expr, str]:
    """The whole call, with new texts and without one of its arguments, or with another in its place."""
    texts = []
    for number, one in enumerate(call.args):
        if number != place:
            texts.append(pieces.get(one) or spot.source.text(one))
    for word in call.keywords:
        text = f"{word.arg}={pieces.get(word.value) or spot.source.text(word.value)}"
        texts += [new] * bool(new) if word.arg == name else [text if word.arg else text.removeprefix("None=")]
    return {call: f"{spot.source.text(call.func)}({', '.join(texts)})"}


def _told(spot: Spot, call: ast.Call, cause: str, pieces: dict[ast.expr, str]) -> Explanation:
    return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, *spot.source.kept_lines(pieces)))
