"""Indices beyond the rows that are there: numbers from 1 on, a loop that goes on too far, a part that a path lacks."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.datasets.broken_images import file_names
from pyfunc_debug.doctor.failures.ops.few_columns import with_columns
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import datasets, evaluation
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each, numbers_of, shape_at, value_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup

_GATHERED = re.compile(r"indices(?:\[[\d,]+\])? = (-?\d+) is not in \[0, (\d+)\)")
_LABELED = re.compile(
    r"Received a label value of -?\d+ which is outside the valid range of \[0, (\d+)\)\.\s+Label values: ([-\d ]+)"
)
_SLICED = re.compile(r"slice index (-?\d+) of dimension (\d+) out of bounds")
_LOSS = "sparse_softmax_cross_entropy_with_logits"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if it is known which indices the line uses, and why they are too large."""
    if (said := _GATHERED.search(situation.message)) is not None:
        return each(situation, _gathered, int(said[1]), int(said[2]))
    if (said := _LABELED.search(situation.message)) is not None:
        return each(situation, _labeled, int(said[1]), [int(one) for one in said[2].split()])
    if (said := _SLICED.search(situation.message)) is not None:
        return each(situation, _sliced, situation, int(said[1]), int(said[2]))
    return None


def _gathered(place: Refused, wrong: int, rows: int) -> Explanation | None:
    found = place.calls_of("gather", "embedding_lookup")
    table = argument(found[0], 0, "params") if len(found) == 1 else None
    indices = argument(found[0], 1, "indices" if dotted(found[0].func).endswith("gather") else "ids") if found else None
    value = _all_of(place, indices) if indices is not None else None
    known = numbers_of(value)
    if table is None or indices is None:
        return None
    name, own = short(place.text(table), 30), short(place.text(indices), 30)
    if wrong == -1 and isinstance(indices, (ast.Constant, ast.UnaryOp)):
        cause = f"gather does not count from the end, as Python does: {name} has no row -1. [-1] is its last one."
        whole = len(found[0].args) + len(found[0].keywords) == 2
        return place.told(cause, {found[0]: f"{place.spot.source.atom(table)}[-1]"}) if whole else None
    if known is None or any(one.arg in ("axis", "batch_dims") for one in found[0].keywords) or len(found[0].args) > 2:
        return None
    low, high = int(known.min()), int(known.max())
    cause = f"{name} has {rows:,} rows, numbered 0 to {rows - 1:,}, and {own} goes from {low:,} to {high:,}."
    if low == 1 and high == rows and hasattr(value, "dtype"):
        return place.told(f"{cause} It counts from 1.", {indices: f"{place.spot.source.atom(indices)} - 1"})
    if low < 0:
        advice = "A table of words gives -1 for a word that it does not have: take its size for that, and one row more."
        return place.told(cause, {}, advice) if low == -1 else None
    return place.told(
        cause, {}, f"Make {name} with {high + 1:,} rows or more, or number what it is asked for from 0 on."
    )


def _labeled(place: Refused, classes: int, seen: list[int]) -> Explanation | None:
    found = place.calls_of(_LOSS)
    labels = argument(found[0], 0, "labels") if len(found) == 1 else None
    value = value_of(labels, place.spot) if labels is not None else None
    known = numbers_of(value) if value is not None else numbers_of(seen)
    if labels is None or known is None:
        return None
    low, high, name = int(known.min()), int(known.max()), short(place.text(labels), 30)
    cause = f"{name} goes from {low} to {high}, and logits of {classes} columns have the classes 0 to {classes - 1}."
    if low == 1 and high == classes and (value is None or hasattr(value, "dtype")):
        return place.told(f"{cause} It counts from 1.", {labels: f"{place.spot.source.atom(labels)} - 1"})
    return with_columns(place.spot, cause, argument(found[0], 1, "logits"), classes, high + 1) if low >= 0 else None


def _sliced(place: Refused, situation: Situation, wrong: int, axis: int) -> Explanation | None:
    for one in ast.walk(place.statement):
        if not isinstance(one, ast.Subscript):
            continue
        parts = one.slice.elts if isinstance(one.slice, ast.Tuple) else [one.slice]
        index = parts[axis] if axis < len(parts) else None
        if index is None or (any(isinstance(part, (ast.Slice, ast.Starred)) for part in parts[:axis]) and axis == 0):
            continue
        value = one.value
        if isinstance(value, ast.Name) and place.spot.function is not None:
            value = assignments(place.spot.function).get(value.id, value)
        if isinstance(value, ast.Call) and dotted(value.func).endswith("strings.split"):
            return _split(place, value, index, wrong, situation)
        found = _in_loop(place, one.value, index, wrong, axis) or _element(place, one.value, index, axis)
        if found is not None:
            return found
    return None


def _all_of(place: Refused, node: ast.expr) -> Any:
    """The indices of a line; in a mapped function those of all elements, where the dataset slices a tensor of them."""
    known = place.elements.get(node.id) if isinstance(node, ast.Name) else None
    return value_of(node, place.spot) if known is None else known


def _element(place: Refused, tensor: ast.expr, index: ast.expr, axis: int) -> Explanation | None:
    """`names[i]` of a map over numbers that begin at 1."""
    known = numbers_of(place.elements.get(index.id)) if isinstance(index, ast.Name) else None
    shape = shape_at(tensor, place.spot)
    if known is None or not shape or axis >= len(shape) or int(known.min()) != 1 or int(known.max()) != shape[axis]:
        return None
    name, own, size = short(place.text(tensor), 30), place.text(index), int(known.max())
    cause = f"{own} goes from 1 to {size:,}, and the {size:,} places of {name} are numbered 0 to {size - 1:,}."
    return place.told(cause, {index: f"{own} - 1"})


def _in_loop(place: Refused, tensor: ast.expr, index: ast.expr, wrong: int, axis: int) -> Explanation | None:
    """`x[i]`, or `x[i + 1]`, in `for i in range(...)`, which goes on too far."""
    shape = shape_at(tensor, place.spot)
    size = shape[axis] if shape is not None and axis < len(shape) else None
    around = [one for one in place.spot.source.around(place.statement) if isinstance(one, ast.For)]
    loops = [one for one in around if isinstance(one.target, ast.Name) and one.target.id in names(index)]
    given = loops[0].iter if loops else None
    if size is None or wrong < size or not isinstance(given, ast.Call) or dotted(given.func) != "range":
        return None
    if given.keywords or len(given.args) > 2 or lookup(loops[0].target, place.spot) is None:
        return None
    more = _more(index)
    end, text = evaluation.computed(given.args[-1], place.spot), place.text
    if more is None or type(end) is not int or end + more <= size:
        return None
    name = short(text(tensor), 30)
    rows = "rows" if axis == 0 else f"places in axis {axis}"
    cause = f"{name} has {size:,} {rows}, numbered 0 to {size - 1:,}, and {short(text(index), 20)} is {wrong:,} here."
    count = f"len({text(tensor)})" if axis == 0 else f"{text(tensor)}.shape[{axis}]"
    count = f"{count} - {more}" if more else count
    return place.told(cause, {given.args[-1]: f"min({text(given.args[-1])}, {count})"})


def _more(index: ast.expr) -> int | None:
    """0 of `i`, and 1 of `i + 1`."""
    if isinstance(index, ast.Name):
        return 0
    plus = isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add) and isinstance(index.left, ast.Name)
    right = index.right if plus and isinstance(index, ast.BinOp) else None
    return right.value if isinstance(right, ast.Constant) and type(right.value) is int and right.value > 0 else None


def _split(place: Refused, call: ast.Call, index: ast.expr, wrong: int, situation: Situation) -> Explanation | None:
    """`tf.strings.split(path, "/")[-2]` of a path with fewer parts."""
    at, given = evaluation.computed(index, place.spot), argument(call, 1, "sep")
    separator = evaluation.computed(given, place.spot) if given is not None else None
    if type(at) is not int or not isinstance(separator, str):
        return None
    for name in file_names(situation, datasets.gone_over(situation)):
        parts = name.split(separator)
        if len(parts) > at >= -len(parts) or (at < 0 and len(parts) != wrong - at):
            continue
        count = f"{len(parts)} part{'s' * (len(parts) > 1)}"
        cause = f"{short(repr(name), 40)} has {count} between {separator!r}, and [{at}] is none of them."
        advice = "Count from the end: [-1] is the file, [-2] its folder."
        if separator not in name and len(parts) == 1:
            advice = "Write the separator that these texts have, or take the part that is there."
        return place.told(cause, {}, advice)
    return None
