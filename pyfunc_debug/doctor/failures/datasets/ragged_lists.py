"""Python lists of rows of different lengths, given to a dataset or made a tensor: a ragged tensor holds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup

RULE = "structure"
_SAID = "Can't convert non-rectangular Python sequence to Tensor"
_SLICES = ("from_tensor_slices", "from_tensors")
_TENSORS = ("constant", "convert_to_tensor")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line gives such a list away."""
    spot = situation.last
    statement = spot.source.statement(spot.line) if spot is not None else None
    if spot is None or statement is None or situation.body or _SAID not in situation.message:
        return None
    source, tf = spot.source, alias(spot, "tensorflow")
    pieces: dict[ast.expr, str] = {}
    lengths: list[int] = []
    for call in calls(statement):
        last = dotted(call.func).rpartition(".")[2]
        if last not in (*_SLICES, *_TENSORS) or not call.args:
            continue
        for part in _parts(call.args[0]) if last in _SLICES else [call.args[0]]:
            found = _lengths(_value(part, spot))
            if len(found) > 1:
                text, lengths = source.text(part), found
                pieces[call if last in _TENSORS else part] = f"{tf}.ragged.constant({text})"
    if not pieces:
        return None
    edit = edit_of(spot.file, source.replaced(pieces))
    cause = (
        f"the rows have different lengths ({lengths[0]} and {lengths[1]}): a tensor has rows of one length. A ragged "
        "tensor has rows of their own lengths; .to_tensor() of a batch pads them with 0."
    )
    return Explanation(
        RULE, spot.file, spot.line, cause, edit, "" if edit else f"Give it {next(iter(pieces.values()))}."
    )


def _parts(given: ast.expr) -> Iterator[ast.expr]:
    if isinstance(given, (ast.Tuple, ast.Dict)):
        for one in given.elts if isinstance(given, ast.Tuple) else given.values:
            yield from _parts(one)
    else:
        yield given


def _value(part: ast.expr, spot: Spot) -> Any:
    if isinstance(part, (ast.Name, ast.Attribute)):
        return lookup(part, spot)
    if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
        holder = _value(part.value, spot)
        return holder.get(part.slice.value) if type(holder) is dict else None
    try:
        return ast.literal_eval(part)
    except (ValueError, TypeError):
        return None


def _lengths(rows: Any) -> list[int]:
    """The different lengths of a list's rows of numbers or texts; empty for any other value."""
    if type(rows) is not list or not rows or not all(type(row) is list for row in rows):
        return []
    plain = all(type(one) in (int, float, str, bool) for row in rows for one in row)
    return list(dict.fromkeys(map(len, rows))) if plain else []
