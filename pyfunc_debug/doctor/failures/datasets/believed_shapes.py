"""`set_shape` in a later map than that of the py_function, with another rank than its body returned.

TensorFlow believes it, and an op behind it fails on what is there.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.datasets.declared_shapes import written_sizes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import Node, return_value, user_nodes
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, Shape, refused
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, parameters, read
from pyfunc_debug.doctor.failures.reading.symbols import calls, dtype_of, is_symbolic, method_calls, shape_of, sizes_of

RULE = "unknown-shape"
_SHAPES = re.compile(r"\[(\d+(?:,\d+)*)\]")
_RESULTS = (
    "SELECT v.shape, count(*) FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND c.kind = 'forward' "
    "AND v.role = 'output' AND v.position = ? AND v.shape IS NOT NULL GROUP BY v.shape"
)
_OF_AXES = re.compile(r"rank|dimension|shape|\baxis|vector of size|ndims|matrix", re.IGNORECASE)
_COLOURS = 3
_TWO = 2
"""That of the body and that of set_shape, with none between them."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what one body returned came to an op that took it for a tensor of the rank of a set_shape."""
    said = [tuple(map(int, one.split(","))) for one in _SHAPES.findall(situation.message)]
    if situation.body or not (said or _OF_AXES.search(situation.message)):
        return None
    if situation.last is None or situation.last.own is not None:
        return None  # in another form than it is written, an op between the two may not be seen
    found = [
        (place, call, *one) for place in refused(situation) for call in _believed(place)
        for one in _returned(situation, place, call, said)
    ]  # fmt: skip
    if len({(one[0].spot.file, one[1].lineno, one[2].site, one[3]) for one in found}) != 1:
        return None
    place, call, node, at, shape, count = found[0]
    wanted = written_sizes(call)
    name = ast.unparse(call.func).rpartition(".")[0]
    which = f" as value {at + 1}" if len(node.tout) > 1 else ""
    cause = (
        f"set_shape gives {name} {_counted(len(wanted))}, [{', '.join(wanted)}], and {node.called} returned "
        f"{sizes_of(shape)}{which} {'in its call' if count == 1 else f'in all {count:,} calls'}. TensorFlow believes "
        "set_shape without a check."
    )
    edit, advice = None, f"Say the axes that it has there, or let {node.called} return that many."
    if len(wanted) == len(shape) + 1 and wanted[-1] in ("?", "1"):
        edit = _with_axis(node, at)
        advice = f"Let {node.called} return it with an axis more: [..., None]."
    elif len(wanted) == len(shape) + 1 and wanted[-1] == str(_COLOURS):
        advice = f"Let {node.called} return an image with colours: a grey one has none."
    if edit is not None:
        cause += " None adds the axis that is missing."
    return Explanation(RULE, place.spot.file, call.lineno, cause, edit, "" if edit else advice, "likely")


def _counted(axes: int) -> str:
    return "1 axis" if axes == 1 else f"{axes} axes"


def _believed(place: Refused) -> Iterator[ast.Call]:
    """The calls of set_shape on a parameter of the function of an op, which its dataset gives it without a rank."""
    function = place.spot.function
    if function is None:
        return
    for one in calls(function):
        if not isinstance(one.func, ast.Attribute) or one.func.attr != "set_shape" or not written_sizes(one):
            continue
        owner = one.func.value
        if isinstance(owner, ast.Name) and owner.id in parameters(function) and _has_no_rank(place, owner, function):
            yield one


def _has_no_rank(place: Refused, name: ast.Name, function: Function) -> bool:
    """Whether nothing else said of a parameter what shape it has."""
    uses = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name.id]
    given, made = place.spot.value(name.id), [one.lineno for one in uses if isinstance(one.ctx, ast.Store)]
    return min(made, default=name.lineno) >= name.lineno and is_symbolic(given) and shape_of(given) is None


def _returned(
    situation: Situation, place: Refused, call: ast.Call, said: list[tuple[int, ...]]
) -> Iterator[tuple[Node, int, Shape, int]]:
    """The outputs that had another rank in all calls, and a shape with which the op failed."""
    assert isinstance(call.func, ast.Attribute)
    assert isinstance(call.func.value, ast.Name)
    dtype, wanted = dtype_of(place.spot.value(call.func.value.id)), written_sizes(call)
    outputs = [
        (node, at) for node in user_nodes(situation) for at, own in enumerate(node.tout)
        if own == dtype and _is_passed_on(node)
    ]  # fmt: skip
    maps = method_calls(place.spot.source.tree, "map")
    alone = len(maps) <= _TWO and len({(node.site, at) for node, at in outputs}) == 1 and _is_alone(place, dtype)
    for node, at in outputs:
        rows = [(tuple(json.loads(text)), count) for text, count in situation.rows(_RESULTS, (node.id, at))]
        failed = [one for one, _ in rows if alone or (one and any(shown in (one, (1, *one)) for shown in said))]
        if failed and {len(one) for one, _ in rows} == {len(failed[0])} != {len(wanted)}:
            yield node, at, failed[0], sum(count for _, count in rows)


def _is_passed_on(node: Node) -> bool:
    """Whether the function around a node gives its results on as they are."""
    call, source = node.call(), node.source
    inner: ast.AST | None = call
    while inner is not None:
        outer = source.parent(inner)
        if isinstance(outer, (ast.Return, ast.Lambda)):
            return True
        if isinstance(outer, ast.Assign):
            break
        made = isinstance(outer, ast.Call) and dotted(outer.func) in ("tuple", "list")
        if not made and not isinstance(outer, (ast.Tuple, ast.List)):
            return False
        inner = outer
    function = source.function(outer.lineno) if inner is not None and isinstance(outer, ast.Assign) else None
    if function is None or not isinstance(outer, ast.Assign):
        return False
    kept = {part.id for target in outer.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    uses = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id in kept]
    return all(one in ast.walk(outer) or _is_returned(source, one) for one in uses)


def _is_returned(source: Source, name: ast.AST) -> bool:
    """Whether a name stands in a return, alone or as one of several values."""
    outer = source.parent(name)
    while isinstance(outer, (ast.Tuple, ast.List)):
        outer = source.parent(outer)
    return isinstance(outer, ast.Return)


def _is_alone(place: Refused, dtype: str | None) -> bool:
    """Whether one parameter only is given a tensor of this dtype without a rank: the one output of that dtype."""
    function = place.spot.function
    values = [place.spot.value(one) for one in parameters(function)] if function is not None else []
    return sum(is_symbolic(one) and shape_of(one) is None and dtype_of(one) == dtype for one in values) == 1


def _with_axis(node: Node, at: int) -> Edit | None:
    """What a body returns, with an axis more."""
    function = node.function()
    value = return_value(function) if function is not None else None
    if isinstance(value, (ast.Tuple, ast.List)):
        value = value.elts[at] if len(value.elts) == len(node.tout) else None
    elif len(node.tout) > 1:
        value = None
    if value is None or node.file is None:
        return None
    source = read(node.file)
    return edit_of(node.file, source.replaced({value: f"{source.atom(value)}[..., None]"}))
