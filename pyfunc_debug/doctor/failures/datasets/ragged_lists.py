"""Rows of different lengths, given to a dataset or made a tensor: ragged, or yielded one by one, they can be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup

RULE = "structure"
_SAID = re.compile(
    r"Can't convert non-rectangular Python sequence to Tensor|\(Unsupported object type (numpy.ndarray|list)\)"
)
_SLICES = ("from_tensor_slices", "from_tensors")
_TENSORS = ("constant", "convert_to_tensor")
_ARRAYS = ("array", "asarray", "list", "tuple")
_PADS = "padded_batch"
_LOOKED_AT = 100_000
_Shape = tuple[int, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line gives such rows away."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    pieces: dict[ast.expr, str] = {}
    shapes: tuple[_Shape, ...] = ()
    for call in calls(statement):
        last = dotted(call.func).rpartition(".")[2]
        if last not in (*_SLICES, *_TENSORS) or not call.args:
            continue
        parts = list(_parts(call.args[0])) if last in _SLICES else [call.args[0]]
        rows = {part: found for part in parts if (found := _shapes(_value(part, spot)))}
        if not rows:
            continue
        shapes = next(iter(rows.values()))
        if any(len(shape) > 1 for found in rows.values() for shape in found):
            made = _from_generator(call, parts, spot) if last == "from_tensor_slices" else ""
            pieces |= {call: made} if made else {}
            continue
        pieces |= _ragged(call, rows, spot)
    if not shapes:
        return None
    edit = edit_of(spot.file, spot.source.replaced(pieces)) if pieces else None
    if len(shapes[0]) == 1:
        cause = (
            f"the rows have different lengths ({shapes[0][0]} and {shapes[1][0]}): a tensor has rows of one length. A "
            "ragged tensor has rows of their own lengths; .to_tensor() of a batch pads them with 0."
        )
    else:
        shown = " and ".join(str(list(one)) for one in shapes[:2])
        cause = (
            f"the arrays have different shapes ({shown}): from_tensor_slices makes one tensor of all of them, which "
            "has one shape. A generator yields each with its own."
        )
    advice = "" if edit else f"Give it {next(iter(pieces.values()))}." if pieces else "Yield them by a generator."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _ragged(call: ast.Call, rows: dict[ast.expr, tuple[_Shape, ...]], spot: Spot) -> dict[ast.expr, str]:
    """A ragged tensor in the place of rows."""
    source, tf, given = spot.source, alias(spot, "tensorflow"), call.args[0]
    made = {part: f"{tf}.ragged.constant({source.text(part)})" for part in rows}
    if dotted(call.func).rpartition(".")[2] in _TENSORS:
        return {call: next(iter(made.values()))}
    if not any(isinstance(one.func, ast.Attribute) and one.func.attr == _PADS for one in calls(source.tree)):
        return dict(made)
    # `padded_batch` takes no ragged elements: what a mapped function returns of them are tensors
    whole = made.get(given) or source.text_with(given, made)
    names = "*parts" if isinstance(given, ast.Tuple) else "part"
    return {call: f"{source.text(call.func)}({whole}).map(lambda {names}: {names.strip('*')})"}


def _from_generator(call: ast.Call, parts: list[ast.expr], spot: Spot) -> str:
    """`Dataset.from_generator` of a dataset's parts; "" where one of them is of another kind, or they are named."""
    tf, specs = alias(spot, "tensorflow"), list[str]()
    if isinstance(call.args[0], ast.Dict) or len(call.args) + len(call.keywords) > 1:
        return ""
    for part in parts:
        kinds = [
            (array.dtype.name, array.shape) for array in map(_array, _rows(_value(part, spot))) if array is not None
        ]
        dtypes, ranks = {dtype for dtype, _ in kinds}, {len(shape) for _, shape in kinds}
        if len(dtypes) != 1 or len(ranks) != 1 or "object" in dtypes:
            return ""
        sizes = [
            str(one.pop()) if len(one := set(axis)) == 1 else "None" for axis in zip(*(shape for _, shape in kinds))
        ]
        dtype = dtypes.pop()
        specs.append(f"{tf}.TensorSpec([{', '.join(sizes)}], {tf}.{'string' if dtype.startswith('str') else dtype})")
    texts = [spot.source.text(part) for part in parts]
    given = texts[0] if len(parts) == 1 else f"zip({', '.join(texts)})"
    signature = specs[0] if len(parts) == 1 else f"({', '.join(specs)})"
    function = spot.source.text(call.func).removesuffix("from_tensor_slices")
    return f"{function}from_generator(lambda: {given}, output_signature={signature})"


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
    if isinstance(part, ast.Call) and dotted(part.func).rpartition(".")[2] in _ARRAYS and part.args:
        return _value(part.args[0], spot)  # np.array(rows, dtype=object)
    try:
        return ast.literal_eval(part)
    except (ValueError, TypeError):
        return None


def _rows(value: Any) -> list[Any]:
    """The rows of a list, or of an array; empty for any other value."""
    listed = type(value) is list or (is_ndarray(value) and value.ndim)
    return list(value) if listed and len(value) <= _LOOKED_AT else []


def _array(row: Any) -> Any:
    """A row as an array of the dtype that TensorFlow gives it; None for any other value."""
    import numpy as np

    if type(row) in (int, bool, float, str):
        return np.asarray(row, {int: "int32", float: "float32"}.get(type(row)))
    return row if isinstance(row, (np.ndarray, np.generic)) else None


def _shapes(value: Any) -> tuple[_Shape, ...]:
    """The different shapes of rows of numbers or texts that have one rank; empty for any other value."""
    found: list[_Shape] = []
    for row in _rows(value):
        if type(row) is list and all(type(one) in (int, float, str, bool) for one in row):
            found.append((len(row),))
        elif type(row) is not list and (array := _array(row)) is not None and array.dtype != object:
            found.append(array.shape)
        else:
            return ()
    several = tuple(dict.fromkeys(found))
    return several if len(several) > 1 and len({len(one) for one in several}) == 1 and several[0] else ()
