"""Reshape and Permute: as many numbers as there are, axes without the batch and counted from 1."""

from __future__ import annotations

import ast
import math
import re

from pyfunc_debug.doctor.failures.models.step_axes import shape_maker
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.failed_layers import FailedLayer, failed_layer
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray, sizes_of

RULE = "structure"
_TOTAL = re.compile(r"total size of the (?:tensor|array) must be unchanged")
_DIMS = re.compile(r"Invalid permutation argument `dims` for Permute Layer")
_RANK = re.compile(r"expected ndim=(\d+), found ndim=(\d+)")
_KERNEL = re.compile(r"Kernel shape must have the same length as input, but received kernel of shape \(([\d, ]+)\)")
_INPUTS = frozenset({"Input", "InputLayer"})


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a Reshape or Permute, or the shape of an Input, counts other axes than there are."""
    if _DIMS.search(situation.message):
        return _counted(situation)
    total, rank = _TOTAL.search(situation.message), _RANK.search(situation.message)
    kernel = _KERNEL.search(situation.message)
    failed = failed_layer(situation) if total or rank or kernel else None
    if failed is None or len(failed.shapes) != 1:
        return None
    if total is not None and failed.kind == "Reshape":
        return _numbers(failed)
    if rank is not None and failed.kind == "Permute" and int(rank[2]) > int(rank[1]):
        return _axes_left_out(failed)
    wanted = len(kernel[1].split(",")) if kernel is not None else int(rank[1]) if rank is not None else 0
    if len(failed.shapes[0]) == wanted + 1:
        return _batch_in_reshape(failed, wanted) or _batch_in_input(failed)
    return None


def _numbers(failed: FailedLayer) -> Explanation | None:
    """A Reshape to more or fewer numbers than an example has."""
    made, shape = failed.made(failed.layer), failed.shapes[0][1:]
    target = argument(made.call, 0, "target_shape") if made is not None else None
    sizes = vars(failed.layer).get("target_shape")
    if made is None or not isinstance(target, ast.Tuple) or not isinstance(sizes, tuple) or None in shape:
        return None
    if len(target.elts) != len(sizes) or any(isinstance(one, ast.Starred) for one in target.elts):
        return None
    have, source = math.prod(size or 0 for size in shape), made.source
    wish = " x ".join(map(str, sizes))
    dense = shape_maker(failed)
    units = failed.made(dense) if type(dense).__name__ == "Dense" and len(shape) == 1 and min(sizes) > 0 else None
    if units is not None:
        text = " * ".join(
            source.text(one) if isinstance(one, ast.Constant) else source.atom(one) for one in target.elts
        )
        cause = (
            f"Dense (line {units.call.lineno}) gives {have} numbers for an example, and Reshape (line "
            f"{made.call.lineno}) makes {wish} of them: that takes {math.prod(sizes)}."
        )
        edit = units.edit(units.with_arguments(units=text))
        return Explanation(RULE, units.spot.file, units.call.lineno, cause, edit, "", "likely")
    for at in reversed(range(len(sizes))):
        rest = math.prod(size for place, size in enumerate(sizes) if place != at)
        if rest > 0 and have % rest == 0:
            cause = (
                f"An example has {have} numbers, {sizes_of(shape)}, and no {wish}: with {have // rest} in place of "
                f"{source.text(target.elts[at])} it is as many."
            )
            new = source.text_with(made.call, {target.elts[at]: str(have // rest)})
            return Explanation(RULE, made.spot.file, made.call.lineno, cause, made.edit(new), "", "likely")
    return None


def _counted(situation: Situation) -> Explanation | None:
    """Axes of a Permute that count the batch, or from 0."""
    spot, statement = situation.last, situation.statement
    found = [
        (one, dims) for one in calls(statement or ast.Pass())
        if dotted(one.func).rpartition(".")[2] == "Permute" and (dims := argument(one, 0, "dims")) is not None
    ]  # fmt: skip
    sizes = computed(found[0][1], spot) if len(found) == 1 and spot is not None else None
    if spot is None or not isinstance(sizes, (tuple, list)) or sorted(sizes) != list(range(len(sizes))):
        return None
    batch = sizes[0] == 0
    new = tuple(sizes[1:]) if batch else tuple(one + 1 for one in sizes)
    cause = "Permute counts the axes of an example from 1, without the batch"
    cause += f": the 0 in {spot.source.text(found[0][1])} is the batch, which stays where it is." if batch else "."
    edit = Edit(spot.file, *spot.source.kept_lines({found[0][1]: str(new)}))
    return Explanation(RULE, spot.file, found[0][0].lineno, cause, edit, "", "measured" if batch else "likely")


def _axes_left_out(failed: FailedLayer) -> Explanation | None:
    """A Permute that names fewer axes than an example has."""
    made, dims = failed.made(failed.layer), vars(failed.layer).get("dims")
    if made is None or not isinstance(dims, tuple):
        return None
    axes = len(failed.shapes[0]) - 1
    cause = (
        f"An example has {axes} axes, {sizes_of(failed.shapes[0][1:])}, and Permute says where {len(dims)} of them go: "
        "it takes all, also those that stay."
    )
    new = (*dims, *range(len(dims) + 1, axes + 1))
    return Explanation(
        RULE, made.spot.file, made.call.lineno, cause, made.edit(made.with_arguments(dims=str(new))), "", "likely"
    )


def _batch_in_reshape(failed: FailedLayer, wanted: int) -> Explanation | None:
    """A Reshape whose shape has an axis for the batch."""
    layer = shape_maker(failed)
    made = failed.made(layer) if type(layer).__name__ == "Reshape" else None
    target = argument(made.call, 0, "target_shape") if made is not None else None
    if made is None or not isinstance(target, ast.Tuple) or len(target.elts) != wanted:
        return None
    first = vars(layer).get("target_shape", (0,))[0]
    if failed.shapes[0][1] != 1 or first not in (-1, 1):
        return None
    rest = ", ".join(made.source.text(one) for one in target.elts[1:])
    cause = (
        f"Reshape keeps the batch, and its shape is that of one example: the {made.source.text(target.elts[0])} makes "
        f"one axis more, {sizes_of(failed.shapes[0])}, than {failed.kind} takes."
    )
    new = made.source.text_with(made.call, {target: f"({rest}{',' * (wanted == 2)})"})
    return Explanation(RULE, made.spot.file, made.call.lineno, cause, made.edit(new))


def _batch_in_input(failed: FailedLayer) -> Explanation | None:
    """An Input whose shape has the number of examples in it."""
    if [type(one).__name__ for one in failed.before] != ["InputLayer"]:
        return None
    spot, shape = failed.spot, failed.shapes[0][1:]
    given = [
        node for file, source in failed.situation.sources() if file == spot.file for one in calls(source.tree)
        for node in [
            next((word.value for word in one.keywords if word.arg in ("shape", "input_shape")), None)
            or (one.args[0] if one.args and dotted(one.func).rpartition(".")[2] in _INPUTS else None)
        ]
        if node is not None and computed(node, spot) == shape
    ]  # fmt: skip
    given = given or [
        word.value for one in calls(spot.source.tree) for word in one.keywords
        if word.arg in ("shape", "input_shape") and _is_shape(word.value)
    ]  # fmt: skip
    if len(given) != 1:
        return None
    node = given[0]
    arrays = [name for name, one in {**spot.module, **spot.variables}.items() if is_ndarray(one) and one.shape == shape]
    if not _is_shape(node) and not arrays:
        return None
    whose = spot.source.text(node).removesuffix(".shape") if _is_shape(node) else arrays[0] if arrays else ""
    cause = (
        f"The shape of an Input is that of one example, without the batch. {shape[0]} is "
        f"{f'the number of examples in {whose}' if whose else 'the batch'}, and makes one axis more than "
        f"{failed.kind} takes."
    )
    new = f"{spot.source.text(node)}[1:]"
    if isinstance(node, (ast.Tuple, ast.List)):
        rest = ", ".join(spot.source.text(one) for one in node.elts[1:])
        new = f"({rest}{',' * (len(node.elts) == 2)})"
    return Explanation(RULE, spot.file, node.lineno, cause, Edit(spot.file, *spot.source.kept_lines({node: new})))


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"
