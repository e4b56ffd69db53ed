"""A mask of another size than the array it chooses of: `img[mask]`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import is_ndarray

_SAID = re.compile(r"boolean index did not match indexed array|too many indices for array: array is \d+-dimensional")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator chooses by such a mask."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data or not _SAID.search(situation.message):
        return None
    for one in ast.walk(statement):
        if isinstance(one, ast.Subscript):
            mask, array = origins.valued(one.slice, spot), origins.kept(one.value, spot)
            if is_ndarray(mask) and is_ndarray(array) and mask.dtype == bool and mask.ndim:
                return _told(spot, one, mask.shape, array.shape)
    return None


def _told(spot: Spot, asked: ast.Subscript, mask: tuple[int, ...], array: tuple[int, ...]) -> Explanation | None:
    text = spot.source.text
    name, owner = short(text(asked.slice), 30), short(text(asked.value), 30)
    cause = (
        f"{name} is {list(mask)}, and {owner} is {list(array)}: a mask has to have the sizes of the axes it chooses of."
    )
    if mask == array[:-1][::-1] or mask == array[::-1]:
        cause += " Its axes are in the other order: .T turns them."
        edit = in_place(spot, {asked.slice: f"{spot.source.atom(asked.slice)}.T"})
        return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    if len(mask) == len(array) + 1 and mask[-1] == 1 and mask[:-1] == array:
        edit = in_place(spot, {asked.slice: f"{spot.source.atom(asked.slice)}[..., 0]"})
        return Explanation(RULE, spot.file, spot.line, f"{cause} Its last axis of one is too much.", edit)
    advice = f"Make it of this array's size, as np.zeros({owner}.shape[:{len(mask)}], bool), or resize it to that."
    if len(mask) == len(array) == 1 or mask[:1] == array[:1]:
        advice = f"Make it of what it chooses of: a comparison of {owner}, or of an array of the same rows."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
