"""Labels of another kind than a loss of tf.nn takes: numbers of classes for one-hot rows, rows for numbers."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each, shape_at, value_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, lookup, sizes_of

_DENSE = re.compile(
    r"logits and labels must be broadcastable|Both labels and logits must be broadcast|labels must be 2"
)
_SPARSE = re.compile(r"`labels\.shape\.rank` must equal `logits\.shape\.rank - 1`|Rank mismatch: Rank of labels")
_COLUMN = re.compile(r"`logits` and `labels` must have the same shape")
_SOFTMAX, _NUMBERS, _SIGMOID = (
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "sigmoid_cross_entropy_with_logits",
)  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the shapes of labels and logits say which loss or which shape is meant."""
    for pattern, told in ((_SPARSE, _rows), (_COLUMN, _column), (_DENSE, _numbers)):
        if pattern.search(situation.message):
            return each(situation, told)
    return None


def _given(place: Refused, name: str) -> tuple[ast.Call, ast.expr, ast.expr] | None:
    found = [one for one in place.calls_of(name) if not one.args]
    if len(found) != 1:
        return None
    labels, logits = argument(found[0], 0, "labels"), argument(found[0], 1, "logits")
    return (found[0], labels, logits) if labels is not None and logits is not None else None


def _numbers(place: Refused) -> Explanation | None:
    """Whole numbers where softmax_cross_entropy takes a row for each."""
    given = _given(place, _SOFTMAX)
    if given is None:
        return None
    call, labels, logits = given
    one, other = shape_at(labels, place.spot), shape_at(logits, place.spot)
    value = value_of(labels, place.spot)
    whole = "int" in dtype_of(value if value is not None else lookup(labels, place.spot))
    if one is None or other is None or not whole or len(one) != len(other) - 1 or one != other[:-1]:
        return None
    cause = f"{_both(place, labels, logits, one, other)}: numbers of classes. The sparse loss takes these."
    return place.told(cause, {call.func: f"{dotted(call.func).rpartition('.')[0]}.{_NUMBERS}"}, measured=True)


def _rows(place: Refused) -> Explanation | None:
    """One-hot rows, or a column, where the sparse loss takes numbers."""
    given = _given(place, _NUMBERS)
    if given is None:
        return None
    call, labels, logits = given
    one, other = shape_at(labels, place.spot), shape_at(logits, place.spot)
    if one is None or other is None or len(one) != len(other):
        return None
    both = _both(place, labels, logits, one, other)
    if one[-1] == 1 and other[-1] != 1:
        cause = f"{both}: a column, and the sparse loss takes a vector of classes."
        return place.told(cause, {labels: f"{place.spot.source.atom(labels)}[..., 0]"}, measured=True)
    if one == other and other[-1] != 1:
        cause = f"{both}: a row for each, as one-hot labels have. The loss without sparse takes these."
        return place.told(cause, {call.func: f"{dotted(call.func).rpartition('.')[0]}.{_SOFTMAX}"})
    return None


def _column(place: Refused) -> Explanation | None:
    """Labels `[n]` beside logits `[n, 1]`."""
    given = _given(place, _SIGMOID)
    if given is None:
        return None
    _, labels, logits = given
    one, other = shape_at(labels, place.spot), shape_at(logits, place.spot)
    if one is None or other is None or (*one, 1) != other:
        return None
    value, tf = value_of(labels, place.spot), alias(place.spot, "tensorflow")
    kind = dtype_of(value if value is not None else lookup(labels, place.spot))
    new = f"{place.spot.source.atom(labels)}[..., None]"
    cause = f"{_both(place, labels, logits, one, other)}. None adds the axis of the column."
    if "float" not in kind:
        new = f"{tf}.cast({new}, {tf}.float32)"
        cause += f" The labels are {kind}, and become floats." if kind else ""
    return place.told(cause, {labels: new})


def _both(
    place: Refused, labels: ast.expr, logits: ast.expr, one: tuple[int | None, ...], other: tuple[int | None, ...]
) -> str:
    names = short(place.text(labels), 30), short(place.text(logits), 30)
    return f"{names[1]} has the shape {sizes_of(other)}, and {names[0]} {sizes_of(one)}"
