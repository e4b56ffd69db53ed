"""`np.concatenate([gray, edges], axis=2)`: two images of rows and columns, that are to be the channels of one."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, method_calls, shape_of, sizes_of

_Shape = tuple[int | None, ...]
_LACKED = (
    re.compile(r"axis \d+ is out of bounds for array of dimension \d+"),
    re.compile(r"Expected concatenating dimensions in the range \[-\d+, \d+\), but got \d+"),
)
_UNLIKE = re.compile(r"all the input arrays must have same number of dimensions")
_IMAGES = re.compile(
    r"(?<![a-z])im(?:g|age)?s?(?![a-z])|gr[ae]y|mask|channel|band|edge|plane|spectrogram|heat", re.IGNORECASE
)
_PLANE = 2


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if arrays in the line of a body are joined along an axis that all, or some, of them lack."""
    spot, statement, message = situation.last, situation.statement, situation.message
    said = next((found for one in _LACKED if (found := one.search(message)) is not None), None)
    if spot is None or statement is None or not situation.data or (said is None and not _UNLIKE.search(message)):
        return None
    for call in calls(statement):
        joins = dotted(call.func).rpartition(".")[2] in ("concatenate", "concat")
        axis = argument(call, 1, "axis") if joins and call.args else None
        at = evaluation.computed(axis, spot) if axis is not None else 0
        if not joins or type(at) is not int:
            continue
        given = call.args[0]
        parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
        value = lookup(given, spot) if not parts else None
        values = list(value) if isinstance(value, (list, tuple)) else [lookup(one, spot) for one in parts]
        shapes = [shape for one in values if (shape := shape_of(one)) is not None]
        if not shapes or len(shapes) != len(values) or any(isinstance(one, ast.Starred) for one in parts):
            continue
        ranks = {len(one) for one in shapes}
        if parts and len(ranks) == 2 and max(ranks) == min(ranks) + 1:
            return _beside_an_image(spot, parts, shapes, at)
        if said is not None and ranks == {_PLANE} and at == _PLANE and len(set(shapes)) == 1:
            return _stacked(spot, call, shapes) if _are_channels(spot, given, shapes) else None
    return None


def _beside_an_image(spot: Spot, parts: list[ast.expr], shapes: list[_Shape], at: int) -> Explanation | None:
    """`np.concatenate([image, mask], axis=2)`: the image has channels, and the mask has no axis for its one."""
    rank = max(map(len, shapes))
    at = at % rank if -rank <= at < rank else rank
    known = {(*one[:at], *one[at + 1 :]) if len(one) == rank else one for one in shapes}
    if len(known) != 1 or at == rank:
        return None
    index = "[None]" if at == 0 else f"[{', '.join([':'] * at)}, None]" if at < rank - 1 else "[..., None]"
    names = " and ".join(f"{short(spot.source.text(one), 30)} {sizes_of(shape)}" for one, shape in zip(parts, shapes))
    cause = f"The shapes are {names}: what has an axis less has none to join along. None adds it, of size 1."
    new = {one: f"{spot.source.atom(one)}{index}" for one, shape in zip(parts, shapes) if len(shape) < rank}
    return Explanation(RULE, spot.file, spot.line, cause, edit_of(spot.file, spot.source.replaced({**new})))


def _stacked(spot: Spot, call: ast.Call, shapes: list[_Shape]) -> Explanation | None:
    """`np.stack` makes the axis that `np.concatenate` asks for."""
    made = (*shapes[0], len(shapes))
    cause = (
        f"The {len(shapes)} arrays are {sizes_of(shapes[0])} each, and {dotted(call.func)} joins along an axis that "
        f"they have: there is not an axis 2. stack makes it, {sizes_of(made)}."
    )
    assert isinstance(call.func, (ast.Attribute, ast.Name))
    if isinstance(call.func, ast.Name):
        return None
    edit = edit_of(spot.file, spot.source.replaced({call.func: f"{spot.source.text(call.func.value)}.stack"}))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")


def _are_channels(spot: Spot, given: ast.expr, shapes: list[_Shape]) -> bool:
    """Whether planes are to be channels of one image: by the shape that the file says, or by their names and sides."""
    said = [evaluation.computed(one.args[0], spot) for one in method_calls(spot.source.tree, "set_shape") if one.args]
    said += [
        evaluation.computed(size, spot) for one in spot.source.calls_of(frozenset({"TensorSpec"}))
        if (size := argument(one, 0, "shape")) is not None
    ]  # fmt: skip
    plane = shapes[0]
    told = [tuple(one) for one in said if isinstance(one, (list, tuple))]
    if (*plane, len(shapes)) in told:
        return True
    if any(one[:1] == plane[:1] and len(one) == _PLANE for one in told):
        return False  # rows that are joined along the axis that they have
    named = bool(_IMAGES.search(spot.source.text(given)))
    return named or (plane[0] == plane[1] and None not in plane)
