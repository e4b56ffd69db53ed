"""Arrays in a body whose sizes are others than its line takes: reshape, resize, crop, transpose, broadcast."""

from __future__ import annotations

import ast
import math
import re

import numpy as np

from pyfunc_debug.doctor.failures.bodies import asked_sizes
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.callables import called
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.shapes import CHANNELS, square_side
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray, lookup

_RESHAPED = re.compile(r"cannot reshape array of size (\d+) into shape (\([\d, ]*\))")
_LONGER = re.compile(r"Can't parse 'dsize'\. Expected sequence length 2, got \d")
_WRONG_TYPE = re.compile(r"Can't parse 'dsize'\. Sequence item with index \d has a wrong type")
_NO_RANGE = re.compile(r"(?:high <= 0|low >= high|empty range (?:for|in) rand\w+)")
_AXES = "axes don't match array"
_BROADCAST = re.compile(r"could not be broadcast together with shapes (\([\d,]+\)) (\([\d,]+\))")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if NumPy or OpenCV refused the sizes of an array in the line of a body or a generator."""
    spot, statement = situation.last, situation.statement
    if not situation.data or spot is None or statement is None:
        return None
    text = situation.message
    if (said := _RESHAPED.search(text)) is not None:
        return _reshaped(spot, statement, int(said[1]), ast.literal_eval(said[2]))
    if _LONGER.search(text) or _WRONG_TYPE.search(text):
        return _resized(spot, statement, longer=_LONGER.search(text) is not None)
    if _NO_RANGE.search(text):
        return _no_range(spot, statement)
    if _AXES in text:
        return _transposed(spot, statement)
    if (said := _BROADCAST.search(text)) is not None:
        return _broadcast(spot, statement, ast.literal_eval(said[1]), ast.literal_eval(said[2]))
    return None


def _edited(spot: Spot, pieces: dict[ast.expr, str], cause: str) -> Explanation | None:
    edit = edit_of(spot.file, spot.source.replaced(pieces)) if pieces else None
    return None if edit is None else Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")


def _named(statement: ast.stmt, *names: str) -> list[ast.Call]:
    return [one for one in calls(statement) if called(one) in names]


def _reshaped(spot: Spot, statement: ast.stmt, size: int, shape: tuple[int, ...]) -> Explanation | None:
    """`x.reshape(32, 32, 1)` of 784 numbers: the two equal sizes of an image of these."""
    found = _named(statement, "reshape")
    if len(found) != 1 or len(shape) < 2:
        return None
    wanted = math.prod(shape)
    cause = f"the array has {size:,} numbers, and {shape} has {wanted:,}."
    given = found[0].args[-1:] if found[0].args and isinstance(found[0].args[-1], (ast.Tuple, ast.List)) else []
    parts = given[0].elts if given else found[0].args  # type: ignore[attr-defined]
    sizes = [one.value if isinstance(one, ast.Constant) and type(one.value) is int else None for one in parts]
    sides, side = square_side(size, wanted, sizes)
    if side:
        rest = size // side**2
        cause += f" It is {side} x {side}" + (f" x {rest}." if rest > 1 else ".")
        return _edited(spot, {parts[at]: str(side) for at in sides}, cause)
    channels = size * shape[-1] // wanted if wanted else 0
    if len(shape) > 2 and {channels, shape[-1]} <= {*CHANNELS} and channels * wanted == size * shape[-1]:
        return _of_channels(spot, found[0], parts[-1], cause, channels, shape)
    if (known := asked_sizes.of_array(spot, found[0], parts, shape)) is not None:
        return known
    return Explanation(RULE, spot.file, spot.line, cause, None, f"Write sizes whose product is {size:,}.")


def _of_channels(
    spot: Spot, call: ast.Call, part: ast.expr, cause: str, channels: int, shape: tuple[int, ...]
) -> Explanation:
    """An image of 4 channels, or of 1, where the last size says 3: that size, and behind it what makes 3 of them."""
    wanted, source = shape[-1], spot.source
    few = "is 1 channel" if channels == 1 else f"are {channels} channels"
    cause += f" It is {' x '.join(map(str, (*shape[:-1], channels)))}: there {few}, not {wanted}."
    advice = f"Write {channels} in the place of {wanted}"
    if (channels, wanted) != (4, 3):
        return Explanation(RULE, spot.file, spot.line, cause, None, f"{advice}.")
    advice += ", and behind it [..., :3] where they are R, G, B, A, or [..., 1:] where they are A, R, G, B."
    text = source.code_of(spot.function if spot.function is not None else source.tree).lower()
    last = [one for one in ast.walk(part) if isinstance(one, ast.Constant) and one.value == wanted]
    if len(last) != 1 or ("argb" in text) == ("rgba" in text) or isinstance(source.parent(call), ast.Subscript):
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    chosen, which = ("[..., 1:]", "first") if "argb" in text else ("[..., :3]", "last")
    new = f"{source.text_with(call, {last[0]: str(channels)})}{chosen}"
    told = _edited(spot, {call: new}, f"{cause} {chosen} leaves out A, the {which}.")
    return told or Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _resized(spot: Spot, statement: ast.stmt, longer: bool) -> Explanation | None:
    """`cv2.resize(x, (w * 0.5, h * 0.5))`: its size is (width, height), two whole numbers."""
    pieces: dict[ast.expr, str] = {}
    for call in _named(statement, "resize"):
        size, text = argument(call, 1, "dsize"), spot.source.text
        if isinstance(size, ast.Tuple) and longer and len(size.elts) == 3:
            pieces[size] = f"({', '.join(map(text, size.elts[:2]))})"
        elif isinstance(size, ast.Tuple) and len(size.elts) == 2:
            pieces[size] = f"({', '.join(f'int({text(one)})' for one in size.elts)})"
        elif size is not None and longer:
            pieces[size] = f"{text(size)}[:2]"
        elif size is not None:
            pieces[size] = f"tuple(map(int, {text(size)}))"
    why = "the channels stay as they are" if longer else "a float or a tensor is none"
    return _edited(spot, pieces, f"cv2.resize takes the size as two whole numbers, (width, height): {why}.")


def _no_range(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`randint(0, h - size)` where both are equal: its end is left out, and a crop may begin at the last place."""
    for call in _named(statement, "randint", "randrange", "integers"):
        inclusive = dotted(call.func) in ("random.randint", "randint")
        end = call.args[-1] if call.args and not inclusive else None
        value = evaluation.computed(end, spot) if end is not None else None
        if end is None or not isinstance(value, (int, np.integer)):
            continue
        if value == 0 and isinstance(end, ast.BinOp) and isinstance(end.op, ast.Sub):
            cause = (
                f"{spot.source.text(end)} is 0: the array is just as large as the crop, and {dotted(call.func)} leaves "
                "its end out. With + 1 it gives 0 here, and the last place elsewhere."
            )
            return _edited(spot, {end: f"{spot.source.text(end)} + 1"}, cause)
        cause = f"{spot.source.text(end)} is {value}: there is nothing to draw from."
        return Explanation(
            RULE, spot.file, spot.line, cause, None, "Make what is cropped at least as large as the crop."
        )
    return None


def _transposed(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`np.transpose(x, (1, 2, 0))` of an image without an axis for its channels."""
    for call in _named(statement, "transpose"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        is_method = owner is not None and is_ndarray(lookup(owner, spot))
        array = owner if is_method else call.args[0] if call.args else None
        given = call.args if is_method else call.args[1:]
        axes = evaluation.computed(given[0] if len(given) == 1 else ast.Tuple(list(given), ast.Load()), spot)
        value = lookup(array, spot) if array is not None else None
        if array is None or not is_ndarray(value) or not isinstance(axes, (tuple, list)):
            continue
        rank = value.ndim  # type: ignore[union-attr]
        name = spot.source.text(array)
        cause = f"{short(name, 30)} has {rank} axes, {value.shape}, and the line orders {len(axes)}."  # type: ignore[union-attr]
        added = {(2, 0, 1): "[..., None]", (1, 2, 0): "[None]"}.get(tuple(axes))
        if rank == 2 and added is not None:
            cause += " An image of one channel has no axis for it: None adds one."
            return _edited(spot, {array: f"{name}{added}"}, cause)
    return None


def _broadcast(spot: Spot, statement: ast.stmt, one: tuple[int, ...], other: tuple[int, ...]) -> Explanation | None:
    """`x - mean` of an image whose channels stand first, and a number for each channel."""
    flat, full = (one, other) if len(one) == 1 else (other, one)
    if len(flat) != 1 or len(full) < 2 or full[-1] == flat[0]:
        return None
    cause = (
        f"NumPy pairs axes from the last one on, and {flat[0]} numbers meet an axis of {full[-1]}: {full} and {flat}."
    )
    if full.count(flat[0]) != 1:
        return Explanation(RULE, spot.file, spot.line, cause, None, "Give both the same sizes.")
    behind = len(full) - 1 - full.index(flat[0])
    index = f"[:, {', '.join(['None'] * behind)}]"
    found = [part for part in ast.walk(statement) if isinstance(part, (ast.Name, ast.Attribute))
             and getattr(lookup(part, spot), "shape", None) == flat]  # fmt: skip
    cause += f" Axis {full.index(flat[0])} of the other has {flat[0]}."
    return _edited(spot, {found[0]: f"{spot.source.text(found[0])}{index}"}, cause) if len(found) == 1 else None
