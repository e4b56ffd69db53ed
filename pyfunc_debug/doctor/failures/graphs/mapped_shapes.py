"""`tf.map_fn` over a function that gives tensors of different shapes: it stacks them, eagerly or in a graph."""

from __future__ import annotations

import ast
import json
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import shapes
from pyfunc_debug.doctor.failures.reading.nodes import argument, local_function, return_values, user_nodes
from pyfunc_debug.doctor.failures.reading.refused_ops import Shape, refused, sizes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup, sizes_of

RULE = "ragged-batch"
_SHAPES = r"([\[(][\d, ]*[\])])"
_SAID = (
    re.compile(rf"Incompatible shape for value \({_SHAPES}\), expected \({_SHAPES}\)"),
    re.compile(rf"Incompatible shapes during merge: {_SHAPES} vs\. {_SHAPES}"),
    re.compile(rf"incompatible shape at a list index\. Item element shape: {_SHAPES} list shape: {_SHAPES}"),
    re.compile(rf"the value shape is {_SHAPES} which is incompatible with the TensorArray's .*shape: {_SHAPES}"),
    re.compile(rf"Index \d+ has shape: {_SHAPES} but index \d+ has shape: {_SHAPES}"),
)
_OF_MAP = re.compile(r"\bmap(?:_\d+)?/TensorArray")
"""An op of map_fn's own, by the name that it gives to its part of the graph."""
_RESULTS = (
    "SELECT DISTINCT v.shape FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND c.kind = 'forward' "
    "AND v.role = 'output' AND v.position = 0 AND v.shape IS NOT NULL"
)
_FARTHEST = 10
"""Lines from the function to the call that one paste changes."""
_IMAGE, _CHANNELS = 3, (1, 3, 4)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a map_fn of the program could not stack what its function gave."""
    said = next((found for one in _SAID if (found := one.search(situation.text))), None)
    if said is None or situation.body:
        return None
    place = _place(situation)
    if place is None:
        return None
    spot, call = place
    function = local_function(argument(call, 0, "fn"), spot)
    two = {sizes(said[1]), sizes(said[2])}
    name, seen = _recorded(situation, spot, call, function, two)
    shown = " and ".join(sizes_of(one) for one in sorted(two, key=str))
    cause = f"map_fn stacks what its function gives, which takes one shape, and {name} {shown}."
    open_ones = _opened(sorted(seen, key=str))
    edit = None if open_ones is None or function is None else _ragged(spot, call, function, open_ones)
    image = open_ones is not None and len(open_ones) == _IMAGE and open_ones[-1] in _CHANNELS
    resized = f"{alias(spot, 'tensorflow')}.image.resize" if image else "padding"
    if edit is not None:
        cause += f" With a ragged signature they become one ragged tensor; {resized} in the function gives them one "
        cause += "size instead."
    advice = f"Give them one shape in the function, as by {resized}."
    if open_ones is None:
        advice = "Give them as many axes as the others have, and one shape, in the function."
    advice = "" if edit else advice
    return Explanation(RULE, spot.file, call.lineno, cause, edit, advice, "likely")


def _place(situation: Situation) -> tuple[Spot, ast.Call] | None:
    """The map_fn that failed: that of the line, or the program's one."""
    for place in refused(situation):
        found = [one for one in calls(place.statement) if _is_map_fn(one)]
        if found:
            return (place.spot, found[0]) if len(found) == 1 else None
    every = [
        (file, one) for file, source in situation.sources() for one in calls(source.tree) if _is_map_fn(one)
    ]  # fmt: skip
    if len(every) != 1 or situation.last is None or not _OF_MAP.search(situation.text):
        return None
    file, call = every[0]
    spot = next((one for one in situation.spots if one.file == file), situation.last)
    return Spot(file, call.lineno, {}, spot.module, ""), call


def _is_map_fn(call: ast.Call) -> bool:
    return dotted(call.func).rpartition(".")[2] == "map_fn"


def _recorded(
    situation: Situation, spot: Spot, mapped: ast.Call, function: Function | None, two: set[Shape]
) -> tuple[str, set[Shape]]:
    """Whose results are of these two shapes, as in `crop returned`, and all that it returned."""
    inner = set(map(id, ast.walk(function))) if function is not None else set()
    lines = range(mapped.lineno, (mapped.end_lineno or mapped.lineno) + 1)  # all that AutoGraph knows of a lambda
    every: dict[str, set[Shape]] = {}
    for node in user_nodes(situation):
        call = node.call()
        if node.site is not None and node.site[0] == spot.file and (id(call) in inner or node.site[1] in lines):
            rows = situation.rows(_RESULTS, (node.id,))
            every.setdefault(node.called, set()).update(tuple(json.loads(text)) for (text,) in rows)
    found = [(name, seen) for name, seen in every.items() if two <= seen]
    return (f"{found[0][0]} returned", found[0][1]) if len(found) == 1 else ("it gave", two)


def _opened(seen: list[Shape]) -> Shape | None:
    """One shape for all, open up to the last size that differs; None where their ranks do."""
    if len({len(one) for one in seen}) != 1:
        return None
    differing = [at for at, each in enumerate(zip(*seen)) if len(set(each)) > 1]
    return tuple(None if at <= differing[-1] else size for at, size in enumerate(seen[0])) if differing else None


def _ragged(spot: Spot, call: ast.Call, function: Function, shape: Shape) -> Edit | None:
    """The function's result as a ragged tensor, and the signature that says so."""
    source, tf = spot.source, alias(spot, "tensorflow")
    results = [function.body] if isinstance(function, ast.Lambda) else (
        return_values(function) if isinstance(function, ast.FunctionDef) else []
    )  # fmt: skip
    if len(results) != 1 or isinstance(results[0], (ast.Tuple, ast.List, ast.Dict)):
        return None
    given = argument(call, 8, "fn_output_signature") or argument(call, 2, "dtype")
    dtype = _dtype(spot, call, given)
    if dtype is None:
        return None
    ragged = [at for at, size in enumerate(shape) if size is None][-1]
    size = shapes.written(shape)
    new = f"{tf}.ensure_shape({source.text(results[0])}, {size})"
    if ragged:
        new = f"{tf}.RaggedTensor.from_tensor({new}{f', ragged_rank={ragged}' if ragged > 1 else ''})"
    signature = f"{tf}.RaggedTensorSpec({size}, {dtype}, {ragged})"
    pieces: dict[ast.expr, str] = {results[0]: new}
    if given is not None:
        pieces[given] = signature
    else:
        last = [*call.args, *(one.value for one in call.keywords)][-1]
        if last in source.around(results[0]):
            return None
        pieces[last] = f"{source.text(last)}, fn_output_signature={signature}"
    first, end, lines = source.kept_lines(pieces)
    return Edit(spot.file, first, end, lines) if end - first < _FARTHEST else None


def _dtype(spot: Spot, call: ast.Call, given: ast.expr | None) -> str | None:
    """The dtype of the results as text: the signature, that of a TensorSpec, or that of the elements."""
    text = spot.source.text
    if given is None:
        elems = argument(call, 1, "elems")
        return f"{text(elems)}.dtype" if isinstance(elems, (ast.Name, ast.Attribute)) else None
    if isinstance(given, ast.Call) and dotted(given.func).endswith(".TensorSpec"):
        inner = argument(given, 1, "dtype")
        return text(inner) if inner is not None else None
    return text(given) if type(lookup(given, spot)).__name__ == "DType" else None
