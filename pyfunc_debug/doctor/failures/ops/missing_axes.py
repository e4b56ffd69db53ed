"""An axis that a tensor does not have: of one example for a batch, of a vector beside a matrix, of a mask."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each, shape_at
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, root_is, shape_of, sizes_of

_REDUCED = re.compile(
    r"Expected dimension in the range \[-(\d+), \d+\), but got (\d+)"
    r"|Invalid reduction dimension \(?(\d+) for input with (\d+) dim"
)
_SQUEEZED = re.compile(r"Can ?not squeeze dim\[(\d+)\], expected a dimension of 1, got (\d+)")
_JOINED = re.compile(r"Ranks of all input tensors should match|Shape must be rank \d but is rank \d for .*= ConcatV2\[")
_TURNED = re.compile(r"transpose expects a vector of size (\d+)\. But input\(1\) is a vector of size (\d+)|"
                     r"Dimension must be (\d+) but is (\d+) for .*= Transpose\[")  # fmt: skip
_FLAT = re.compile(
    r"convolution input must be 4-dimensional|Shape must be rank 4 but is rank 3 for .*= (?:Conv2D|MaxPool)"
)
_MASKED = re.compile(r"Shapes \((\d+),\) and \((\d+),\) are incompatible")
_REDUCES = ("argmax", "argmin", "reduce_mean", "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_any",
            "reduce_all", "softmax", "norm", "cumsum")  # fmt: skip
_PLANES = ("conv2d", "max_pool2d", "avg_pool2d", "max_pool", "avg_pool", "depthwise_conv2d")
_RANKS = (
    (
        r"logits should be a matrix, got shape \[\d+\]|Shape must be rank 2 but is rank 1 for .*= Multinomial\[",
        "categorical",
        0,
        1,
        "[None]",
        "a batch of them",
    ),
    (
        r"image must be 3-dimensional ?\[\d+,\d+\]|Shape must be rank 3 but is rank 2 for .*= Encode",
        "encode_",
        0,
        2,
        "[..., None]",
        "an axis for channels",
    ),
    (r"scores must be 1-D ?\[\d+,1\]", "non_max_suppression", 1, 2, "[:, 0]", "a vector of them"),
)
"""What is said, of which function, the place of its argument and its rank, the index that helps, and what is taken."""
_ORDERS = {(2, 0, 1): "[..., None]", (1, 2, 0): "[None]", (0, 3, 1, 2): "[None]", (0, 2, 3, 1): "[None]"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the shapes that the line has say which axis is missing, or is another."""
    message = situation.message
    if (said := _REDUCED.search(message)) is not None:
        rank, axis = (int(said[1]), int(said[2])) if said[1] else (int(said[4]), int(said[3]))
        return each(situation, _reduced, rank, axis)
    if (said := _SQUEEZED.search(message)) is not None:
        return each(situation, _squeezed, int(said[1]), int(said[2]))
    if _JOINED.search(message):
        return each(situation, _joined)
    if _TURNED.search(message):
        return each(situation, _turned)
    if _FLAT.search(message):
        return each(situation, _flat)
    if _MASKED.search(message):
        return each(situation, _masked)
    if "All input tensors must have the same rank" in message:
        return each(situation, _solved)
    for pattern, name, at, rank, index, what in _RANKS:
        if re.search(pattern, message):
            return each(situation, _ranked, name, at, rank, index, what)
    return None


def _reduced(place: Refused, rank: int, axis: int) -> Explanation | None:
    """`tf.argmax(scores, axis=1)` of the scores of one example."""
    found = [
        (one, given) for one in place.calls_of(*_REDUCES)
        if (given := argument(one, 1, "axis")) is not None and evaluation.computed(given, place.spot) == axis
    ]  # fmt: skip
    if len(found) != 1 or axis != rank or not found[0][0].args or rank < 1:
        return None
    tensor, given = found[0][0].args[0], found[0][1]
    shape = place.shape(tensor)
    if shape is not None and len(shape) != rank:
        return None
    name = short(place.text(tensor), 30)
    own = f", {sizes_of(shape)}" if shape is not None else ""
    cause = (
        f"{name} has {rank} ax{'is' if rank == 1 else 'es'}{own}: counted from 0, {axis} is none of them. -1 is the "
        "last one, with a batch's axis and without."
    )
    return place.told(cause, {given: "-1"})


def _squeezed(place: Refused, wrong: int, size: int) -> Explanation | None:
    """`tf.squeeze(x, axis=-1)` of an x without an axis of size 1 there."""
    found = place.calls_of("squeeze")
    call = found[0] if len(found) == 1 else None
    tensor, axis = (argument(call, 0, "input"), argument(call, 1, "axis")) if call is not None else (None, None)
    shape = place.shape(tensor) if tensor is not None else None
    if (
        tensor is None
        or axis is None
        or call is None
        or not shape
        or None in shape
        or isinstance(axis, (ast.List, ast.Tuple))
    ):
        return None
    ones = [at for at, one in enumerate(shape) if one == 1]
    name = short(place.text(tensor), 30)
    cause = f"{name} has the shape {sizes_of(shape)}, and squeeze takes axes of size 1 only: axis {wrong} has {size}."
    if len(ones) == 1:
        return place.told(f"{cause} Axis {ones[0]} has 1.", {axis: str(ones[0])})
    return (
        None if ones else place.told(f"{cause} No axis has, so there is nothing to take.", {call: place.text(tensor)})
    )


def _joined(place: Refused) -> Explanation | None:
    """`tf.concat([x, y], axis=1)` of [4, 3] and [4]."""
    found = place.calls_of("concat")
    values, given = (
        (argument(found[0], 0, "values"), argument(found[0], 1, "axis")) if len(found) == 1 else (None, None)
    )
    axis = evaluation.computed(given, place.spot) if given is not None else None
    if not isinstance(values, (ast.List, ast.Tuple)) or type(axis) is not int:
        return None
    inputs = list(place.op.inputs) if place.op is not None else []
    shapes = [shape_at(one, place.spot) for one in values.elts]
    if len(inputs) == len(shapes) + 1:
        shapes = [known if known is not None else shape_of(one) for known, one in zip(shapes, inputs)]
    known = [one for one in shapes if one is not None]
    if len(known) != len(shapes) or len({len(one) for one in known}) != 2:
        return None
    high = max(map(len, known))
    whole = next(one for one in known if len(one) == high)
    at, pieces = axis % high, {}
    for node, one in zip(values.elts, known):
        if len(one) == high:
            continue
        if len(one) != high - 1 or (*whole[:at], *whole[at + 1 :]) != one:
            return None
        index = (
            f"[{', '.join([*[':'] * at, 'None', *[':'] * (high - at - 1)])}]"
            if at < high - 1
            else f"[{', '.join([*[':'] * at, 'None'])}]"
        )
        index = "[None]" if at == 0 else index
        pieces[node] = f"{place.spot.source.atom(node)}{index}"
    cause = (
        f"the shapes are {' and '.join(map(sizes_of, known))}, and concat joins tensors with as many axes. None adds "
        f"axis {at}, of size 1."
    )
    return place.told(cause, pieces)


def _turned(place: Refused) -> Explanation | None:
    """`tf.transpose(x, [2, 0, 1])` of an image without an axis for its channels."""
    found = place.calls_of("transpose")
    tensor, given = (argument(found[0], 0, "a"), argument(found[0], 1, "perm")) if len(found) == 1 else (None, None)
    order = evaluation.computed(given, place.spot) if given is not None else None
    shape = place.shape(tensor) if tensor is not None else None
    added = _ORDERS.get(tuple(order)) if isinstance(order, (list, tuple)) else None
    if not isinstance(order, (list, tuple)):
        return None
    if tensor is None or shape is None or added is None or len(shape) != len(order) - 1:
        return None
    what = "channels" if len(shape) == 2 else "the batch"
    cause = (
        f"{short(place.text(tensor), 30)} has {len(shape)} axes, {sizes_of(shape)}, and the line orders {len(order)}. "
        f"None adds one for {what}."
    )
    return place.told(cause, {tensor: f"{place.spot.source.atom(tensor)}{added}"})


def _flat(place: Refused) -> Explanation | None:
    """`tf.nn.conv2d(image, ...)` of one image."""
    found = place.calls_of(*_PLANES)
    tensor = argument(found[0], 0, "input") if len(found) == 1 else None
    shape = place.shape(tensor) if tensor is not None else None
    if tensor is None or shape is None or len(shape) != 3:
        return None
    cause = (
        f"{short(place.text(tensor), 30)} is one image, {sizes_of(shape)}, and {dotted(found[0].func)} takes a batch "
        "of them. None adds the batch's axis, also to what comes out."
    )
    return place.told(cause, {tensor: f"{place.spot.source.atom(tensor)}[None]"})


def _masked(place: Refused) -> Explanation | None:
    """`tf.boolean_mask(x, mask)` with a mask of columns."""
    found = place.calls_of("boolean_mask")
    call = found[0] if len(found) == 1 and len(found[0].args) == 2 and not found[0].keywords else None
    if call is None:
        return None
    tensor, mask = (shape_at(one, place.spot) for one in call.args)
    if tensor is None or mask is None or len(mask) != 1 or tensor.count(mask[0]) != 1 or tensor[0] == mask[0]:
        return None
    at = tensor.index(mask[0])
    name, own = (short(place.text(one), 30) for one in call.args)
    cause = (
        f"{own} has {mask[0]} values, and {name} the shape {sizes_of(tensor)}: axis {at} has as many, and without axis "
        "it is the first."
    )
    return place.told(cause, {call.args[1]: f"{place.text(call.args[1])}, axis={at}"})


def _ranked(place: Refused, name: str, at: int, rank: int, index: str, what: str) -> Explanation | None:
    """`tf.random.categorical(logits, 1)` of a vector, and the like."""
    found = [
        one for one in calls(place.statement)
        if dotted(one.func).rpartition(".")[2].startswith(name) and root_is(one.func, place.spot, "tensorflow")
        and len(one.args) > at
    ]  # fmt: skip
    given = found[0].args[at] if len(found) == 1 else None
    shape = shape_at(given, place.spot) if given is not None else None
    if given is None or (shape is not None and len(shape) != rank):
        return None
    own = f" has the shape {sizes_of(shape)}" if shape is not None else f" has {rank} ax{'is' if rank == 1 else 'es'}"
    cause = f"{short(place.text(given), 30)}{own}, and {dotted(found[0].func)} takes {what}."
    return place.told(cause, {given: f"{place.spot.source.atom(given)}{index}"})


def _solved(place: Refused) -> Explanation | None:
    """`tf.linalg.solve(a, b)` of a vector b."""
    found = place.calls_of("solve", "lstsq", "triangular_solve", "cholesky_solve")
    given = argument(found[0], 1, "rhs") if len(found) == 1 else None
    shape = shape_at(given, place.spot) if given is not None else None
    if given is None or shape is None or len(shape) != 1:
        return None
    name = dotted(found[0].func)
    cause = f"{short(place.text(given), 30)} is a vector, {sizes_of(shape)}, and {name} takes columns, and gives some."
    new = place.spot.source.text_with(found[0], {given: f"{place.spot.source.atom(given)}[:, None]"})
    return place.told(cause, {found[0]: f"{new}[:, 0]"}, measured=True)
