"""`tf.reshape` to sizes that do not hold what there is: one is another, rows are counted, or a batch is given."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from typing import TypeGuard

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import evaluation, symbols
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import RULE, Refused, Shape, each, shape_at
from pyfunc_debug.doctor.failures.reading.shapes import CHANNELS, refused_reshape, square_side
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import root_is, shape_of, sizes_of

_FARTHEST = 12
"""Lines from the first to the last that one paste changes."""
_ROWS = re.compile(r"Incompatible shapes: \[(\d+)[\d,]*\] vs\. \[(\d+)[\d,]*\]")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one change of the sizes that are written makes them hold what there is."""
    found = refused_reshape(situation.message)
    if found is None:
        rows = _ROWS.search(situation.message)
        return None if rows is None else each(situation, _smaller_batch, int(rows[1]), int(rows[2]))
    return each(situation, _told, *found)


def _smaller_batch(place: Refused, one: int, other: int) -> Explanation | None:
    """Rows that a function counts by a number, `tf.reshape(y_pred, [32, 4])`, where a batch has fewer."""
    rows, source = max(one, other), place.spot.source
    if place.spot.by != "tf.function" or one == other:
        return None
    own = place.spot.function  # none of the op of a gradient, whose line is that of fit
    every = (
        [own]
        if isinstance(own, ast.FunctionDef)
        else [part for part in ast.walk(source.tree) if isinstance(part, ast.FunctionDef)]
    )
    found = [(function, firsts) for function in every if (firsts := _counted_rows(place, function, rows))]
    if len(found) != 1:
        return None
    function, firsts = found[0]
    cause = (
        f"a batch has {min(one, other)} rows here, and {function.name} reshapes to {rows}: the last batch of a dataset "
        "is often smaller. -1 stands for as many rows as there are."
    )
    first, last, lines = source.kept_lines(dict.fromkeys(firsts, "-1"))
    if last - first > _FARTHEST:
        return Explanation(RULE, place.spot.file, first, cause, None, "Write -1 there, too.", "likely")
    return Explanation(RULE, place.spot.file, first, cause, Edit(place.spot.file, first, last, lines), "", "likely")


def _counted_rows(place: Refused, function: ast.FunctionDef, rows: int) -> list[ast.expr]:
    """The first sizes of a function's reshapes that are a number of rows."""
    shapes = [
        argument(one, 1, "shape") for one in symbols.calls(function)
        if dotted(one.func).rpartition(".")[2] == "reshape"
    ]  # fmt: skip
    return [
        shape.elts[0] for shape in shapes
        if isinstance(shape, (ast.Tuple, ast.List)) and len(shape.elts) > 1 and "-1" not in place.text(shape)
        and evaluation.computed(shape.elts[0], place.spot) == rows
    ]  # fmt: skip


def plainly(situation: Situation) -> Explanation | None:
    """What there is and what the line writes, where nobody knows how they fit."""
    found = refused_reshape(situation.message)
    return None if found is None else each(situation, _counted, *found)


def _counted(place: Refused, have: int, wanted: int) -> Explanation | None:
    calls = _reshapes(place)
    tensor = argument(calls[0], 0, "tensor") or argument(calls[0], 0, "x") if len(calls) == 1 else None
    shape = argument(calls[0], 1, "shape") if tensor is not None else None
    if tensor is None or not isinstance(shape, (ast.Tuple, ast.List)):
        return None
    written = [evaluation.computed(one, place.spot) for one in shape.elts]
    if not all(type(one) is int and one > 0 for one in written) or not any(have * one % wanted == 0 for one in written):
        return None
    name, sizes = short(place.text(tensor), 30), short(place.text(shape), 30)
    cause = f"{name} has {have:,} numbers in this run, and {sizes} holds {wanted:,}."
    return place.told(cause, {}, "Write -1 in the place of the size that varies: it is computed from the others.")


def _told(place: Refused, have: int, wanted: int) -> Explanation | None:
    calls = [one for one in _reshapes(place) if argument(one, 1, "shape") is not None]
    if len(calls) != 1:
        return None
    tensor = argument(calls[0], 0, "tensor") or argument(calls[0], 0, "x")
    shape = argument(calls[0], 1, "shape")
    if tensor is None or not isinstance(shape, (ast.Tuple, ast.List)):
        return None
    written = [evaluation.computed(one, place.spot) for one in shape.elts]
    whole = shape_of(place.op.inputs[0]) if place.op is not None else shape_at(tensor, place.spot)
    if not written or not all(type(one) is int and one > 0 for one in written) or math.prod(written) != wanted:
        return None
    name, rest = short(place.text(tensor), 30), math.prod(written[1:])
    own = sizes_of(whole) if whole is not None else ""
    if whole and len(whole) > 1 and _holds(whole, have // wanted if have % wanted == 0 else 0, wanted):
        cause = (
            f"{name} is a batch, {own}: {have // wanted} rows of {wanted:,} numbers here, and the line writes the "
            "shape of one. -1 stands for as many rows as there are."
        )
        return place.told(cause, {shape.elts[0]: f"-1, {place.text(shape.elts[0])}"})
    if whole is None and have > wanted and have % wanted == 0 and _in_layer(place):
        cause = (
            f"{name} is a batch, {have // wanted} rows of {wanted:,} numbers, and the line writes the shape of one. A "
            "layer is given batches; -1 stands for as many rows as there are."
        )
        return place.told(cause, {shape.elts[0]: f"-1, {place.text(shape.elts[0])}"})
    if whole and len(written) > 1 and _holds(whole, have // rest if have % rest == 0 else 0, rest):
        cause = (
            f"{name} has {have // rest} rows of {rest:,} numbers here, and the line writes {written[0]:,}"
            f"{': the last batch of a dataset is often smaller' if have // rest < written[0] else ''}. -1 stands for "
            "as many rows as there are."
        )
        return place.told(cause, {shape.elts[0]: "-1"})
    is_same = f"{name} {f'has the shape {own}: ' if own and None not in (whole or ()) else 'has '}{have:,} numbers"
    cause = f"{is_same}, and {sizes_of(written)} has {wanted:,}."
    fitting = [at for at in range(len(written)) if (have * written[at]) % wanted == 0]
    sides, side = square_side(have, wanted, written)
    known = whole is not None and None not in whole
    if fitting == [len(written) - 1] and len(written) > 2 and not known:
        channels = have * written[-1] // wanted
        if written[-1] in CHANNELS and channels in CHANNELS:
            cause += f" With {channels} for the channels it has as many."
            return place.told(cause, {shape.elts[-1]: str(channels)})
    if len(fitting) == 1 and known:
        size = have * written[fitting[0]] // wanted
        cause += f" With {size:,} for {place.text(shape.elts[fitting[0]])} it has as many; -1 computes it."
        return place.told(cause, {shape.elts[fitting[0]]: "-1"})
    if side:
        cause += f" It is {side} x {side}" + (f" x {have // side**2}." if have > side**2 else ".")
        return place.told(cause, {shape.elts[at]: str(side) for at in sides})
    return None


def _reshapes(place: Refused) -> list[ast.Call]:
    """The calls of TensorFlow's and of Keras' reshape in the line."""
    found = place.calls_of("reshape")
    return found or [
        one for one in symbols.calls(place.statement)
        if dotted(one.func).rpartition(".")[2] == "reshape" and root_is(one.func, place.spot, "keras")
    ]  # fmt: skip


def _in_layer(place: Refused) -> bool:
    """Whether the line is in a layer's `call`, or in a function that a Lambda is given."""
    source, function = place.spot.source, place.spot.function
    if function is None or isinstance(function, ast.Lambda):
        lambdas = (
            [one for one in ast.walk(place.statement) if isinstance(one, ast.Lambda)]
            if function is None
            else [function]
        )
        return any(_is_layer(source.parent(one)) for one in lambdas)
    if function.name == "call":
        return True
    return any(
        _is_layer(one) and any(dotted(given) == function.name for given in one.args)
        for one in symbols.calls(source.tree)
    )


def _is_layer(node: ast.AST | None) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "Lambda"


def _holds(whole: Shape, rows: int, row: int) -> bool:
    """Whether a shape is that of some rows of a length."""
    return rows > 0 and whole[0] in (None, rows) and None not in whole[1:] and math.prod(_known(whole[1:])) == row


def _known(shape: Sequence[int | None]) -> list[int]:
    return [one for one in shape if one is not None]
