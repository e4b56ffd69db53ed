"""A vector of indices where an op takes a list of them for each place: scatter_nd and gather_nd."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each, shape_at
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, sizes_of

_SCATTERED = re.compile(
    r"(?:Inner|Outer) dimensions of .*must match|index innermost dimension length must be <= |"
    r"Dimensions \[\d+,\d+\) of (?:input|indices)\[shape=",
)
_GATHERED = re.compile(
    r"index innermost dimension length must be <= params rank|indices\.shape\[-1\] must be <= params\.rank"
)
_SCATTERS = re.compile(r"(?:tensor_)?scatter_nd(?:_\w+)?|scatter_nd_\w+")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the shapes say that each index is meant for a row."""
    if _GATHERED.search(situation.message):
        return each(situation, _gathered)
    return each(situation, _scattered) if _SCATTERED.search(situation.message) else None


def _scattered(place: Refused) -> Explanation | None:
    """`tf.tensor_scatter_nd_update(x, [0, 2], rows)`."""
    found = [one for one in calls(place.statement) if _SCATTERS.fullmatch(dotted(one.func).rpartition(".")[2])]
    if len(found) != 1:
        return None
    name = dotted(found[0].func).rpartition(".")[2]
    at = 0 if not name.startswith("tensor_") else 1
    indices, updates = argument(found[0], at, "indices"), argument(found[0], at + 1, "updates")
    one = shape_at(indices, place.spot) if indices is not None else None
    other = shape_at(updates, place.spot) if updates is not None else None
    if indices is None or one is None or other is None or len(one) != 1 or not other or one[0] != other[0]:
        return None
    text = place.text(indices)
    cause = (
        f"{short(text, 30)} has the shape {sizes_of(one)}: together it is the index of one place. {name} takes a "
        f"list of indices for each of the {one[0]} updates."
    )
    if isinstance(indices, (ast.List, ast.Tuple)):
        return place.told(cause, {indices: f"[{', '.join(f'[{place.text(part)}]' for part in indices.elts)}]"})
    tensor = hasattr(place.spot.value(indices.id), "dtype") if isinstance(indices, ast.Name) else True
    new = f"{place.spot.source.atom(indices)}[:, None]"
    new = new if tensor else f"{alias(place.spot, 'tensorflow')}.expand_dims({text}, 1)"
    return place.told(cause, {indices: new})


def _gathered(place: Refused) -> Explanation | None:
    """`tf.gather_nd(q, actions)` with one action for each row."""
    found = place.calls_of("gather_nd")
    call = found[0] if len(found) == 1 and len(found[0].args) == 2 and not found[0].keywords else None
    if call is None:
        return None
    params, indices = call.args
    whole, one = shape_at(params, place.spot), shape_at(indices, place.spot)
    if whole is None or one is None or len(one) != 1:
        return None
    name, own, tf = short(place.text(params), 30), short(place.text(indices), 30), alias(place.spot, "tensorflow")
    cause = (
        f"{own} has the shape {sizes_of(one)}, and gather_nd takes that for one index into {name}, {sizes_of(whole)}. "
    )
    both = f"{place.text(params)}, {place.text(indices)}"
    if len(whole) == 2 and one[0] == whole[0]:
        cause += "With batch_dims=1 gather takes one of each row."
        return place.told(cause, {call: f"{tf}.gather({both}, batch_dims=1)"})
    return place.told(f"{cause}gather takes a row for each.", {call: f"{tf}.gather({both})"})
