"""An array of other sizes than a reshape asks for, where the sizes are right: `mask.reshape(height, width, 1)`.

A reshape keeps all numbers: what is to have another height or width is resized, cut or padded before.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.doctor.failures.bodies.output_contract import RULE as RETURNED
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, user_nodes
from pyfunc_debug.doctor.failures.reading.shapes import CHANNELS, refused_reshape
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray, lookup, root_is, sizes_of

_NEAR = 0.1
"""How far a side may be from the one that is asked for, of that, where it was meant to be the same."""
_LEAST_SIDE = 8
"""Sides of an image: what is not larger counts boxes, channels or classes."""
_CLASSES = re.compile(r"mask|label|seg|annot|target|truth|gt", re.IGNORECASE)
_RESIZED = ("uint8", "uint16", "int16", "float32", "float64")
"""The dtypes that OpenCV resizes."""
_RESULTS = (
    "SELECT min(c.id), v.position, v.shape, count(*) FROM call c JOIN value v ON v.call = c.id WHERE c.node = ? AND "
    "c.kind = 'forward' AND v.role = 'output' AND v.shape IS NOT NULL GROUP BY v.position, v.shape"
)
"""The first call that gave each shape, and how many did."""


def of_array(spot: Spot, call: ast.Call, parts: Sequence[ast.expr], asked: tuple[int, ...]) -> Explanation | None:
    """What to say of a reshape that was refused, if its array has as many axes as the line asks for.

    Args:
      spot: The frame.
      call: The call of reshape.
      parts: The sizes as they are written.
      asked: The same, as NumPy was given them.
    """
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    is_method = owner is not None and is_ndarray(lookup(owner, spot))
    array = owner if is_method else call.args[0] if call.args else None
    value = lookup(array, spot) if array is not None else None
    if array is None or not is_ndarray(value) or -1 in asked:
        return None
    have: tuple[int, ...] = value.shape  # type: ignore[union-attr]
    named = not all(isinstance(one, ast.Constant) for one in parts)
    if not (_sides(have, asked) and (named or _is_near(have, asked))):
        return None
    name = short(spot.source.text(array), 30)
    origin = _origin(spot, dotted(array), call.lineno)
    cause = f"{name} is {have}{origin}, and the line asks for {asked}. A reshape keeps all numbers"
    image = len(asked) > 2 or str(value.dtype) == "uint8"  # type: ignore[union-attr]  # a table's rows are not blended
    edit = _resized(spot, call, array, parts, asked) if image and _is_near(have, asked) else None
    if edit is not None:
        return Explanation(RULE, spot.file, spot.line, f"{cause}: cv2.resize makes these sizes.", edit, "", "likely")
    advice = "Give it these sizes before: cut, pad or resize it, or let what made it do so."
    return Explanation(RULE, spot.file, spot.line, f"{cause}.", None, advice)


def of_result(situation: Situation) -> Explanation | None:
    """What to say of a reshape in a graph, if what it refused is an image that a body returned in another size."""
    found = refused_reshape(situation.message)
    if found is None or situation.body:
        return None
    told = [
        one for node in user_nodes(situation) for number, place, have, _ in _results(situation, node)
        if math.prod(have) == found[0] and (one := _reshaped(situation, node, number, place, have, found[1]))
    ]  # fmt: skip
    lines = {(one.file, one.line) for one in told}
    return told[0] if len(lines) == 1 else None


def _results(situation: Situation, node: Node) -> list[tuple[int, int, tuple[int, ...], int]]:
    rows = situation.rows(_RESULTS, (node.id,))
    return [(number, place, tuple(json.loads(text)), count) for number, place, text, count in rows]


def _reshaped(
    situation: Situation, node: Node, number: int, place: int, have: tuple[int, ...], wanted: int
) -> Explanation | None:
    """The one line that reshapes the name which a result of the node is given."""
    call, source = node.call(), node.source
    statement = source.statement(call.lineno) if call is not None else None
    if node.site is None or not isinstance(statement, ast.Assign) or statement.value is not call:
        return None
    target = statement.targets[0]
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if place >= len(names) or len(names) != max(len(node.tout), 1):
        return None
    module = next((one.module for one in situation.spots if one.file == node.site[0]), None)
    spot = Spot(node.site[0], node.site[1], {}, module or {}, "")
    for one in calls(source.function(call.lineno) or source.tree):
        tensor, shape = argument(one, 0, "tensor"), argument(one, 1, "shape")
        if dotted(one.func).rpartition(".")[2] != "reshape" or one.lineno < statement.lineno or tensor is None:
            continue
        asked = evaluation.computed(shape, spot) if isinstance(shape, (ast.Tuple, ast.List)) else None
        if not root_is(one.func, spot, "tensorflow") or dotted(tensor) != dotted(names[place]) or not dotted(tensor):
            continue
        if not isinstance(asked, (tuple, list)) or not all(type(size) is int and size > 0 for size in asked):
            continue
        if math.prod(asked) != wanted or not _sides(have, tuple(asked)):
            continue
        which = f" as value {place + 1}" if len(names) > 1 else ""
        others = _fitting(situation, node, place, wanted)
        cause = (
            f"{node.called} returned {sizes_of(have)}{which} in call #{number}, and this line reshapes it to "
            f"{sizes_of(asked)}. A reshape keeps all numbers.{others}"
        )
        advice = f"Let {node.called} return that size: resize, cut or pad {short(dotted(tensor), 30)} in it."
        return Explanation(RETURNED, node.site[0], one.lineno, cause, None, advice)
    return None


def _fitting(situation: Situation, node: Node, place: int, wanted: int) -> str:
    """How many other calls returned as many numbers as the line asks for."""
    count = sum(
        often for _, at, sizes, often in _results(situation, node) if at == place and math.prod(sizes) == wanted
    )
    return f" {count:,} other call{'s' if count > 1 else ''} fitted." if count else ""


def _sides(have: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    """Whether both are images: two sides, and as many channels."""
    own, other = (sizes[:2] if _channels(sizes) else () for sizes in (have, asked))
    both = (*own, *other)
    return len(both) == 4 and min(both) >= _LEAST_SIDE and _channels(have) == _channels(asked)


def _channels(sizes: tuple[int, ...]) -> int:
    """How many channels an image of these sizes has; 0 of what is not one."""
    if len(sizes) == 2:
        return 1
    return sizes[2] if len(sizes) == 3 and sizes[2] in CHANNELS else 0


def _is_near(have: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    return all(abs(one - other) <= _NEAR * other for one, other in zip(have[:2], asked[:2]))


def _origin(spot: Spot, name: str, line: int) -> str:
    """`, as keypoint_crop(...) in line 43 gave it`, by the last assignment above; empty where none is seen."""
    found = _given(spot, name, line)
    if found is None or not isinstance(found.value, ast.Call) or not dotted(found.value.func):
        return ""
    return f", as {short(dotted(found.value.func), 40)}(...) in line {found.lineno} gave it"


def _given(spot: Spot, name: str, line: int) -> ast.Assign | None:
    """The last assignment to a name above a line of its function."""
    if spot.function is None or isinstance(spot.function, ast.Lambda) or not name.isidentifier():
        return None
    every = [one for one in own_nodes(spot.function) if isinstance(one, ast.Assign) and one.lineno < line
             and name in _targets(one)]  # fmt: skip
    return max(every, key=lambda one: one.lineno, default=None)


def _targets(statement: ast.Assign) -> list[str]:
    return [
        dotted(part) for target in statement.targets
        for part in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
    ]  # fmt: skip


def _resized(
    spot: Spot, call: ast.Call, array: ast.expr, parts: Sequence[ast.expr], asked: tuple[int, ...]
) -> Edit | None:
    """Lines above the statement that resize the array, and those that came with it in the same sizes."""
    statement, opencv = spot.statement, _opencv(spot)
    value = lookup(array, spot)
    if statement is None or not opencv or not isinstance(array, ast.Name) or len(parts) != len(asked):
        return None
    if statement.lineno != spot.line or not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)):
        return None
    origin = _given(spot, array.id, statement.lineno)
    together = _targets(origin) if origin is not None else []
    size = f"({spot.source.text(parts[1])}, {spot.source.text(parts[0])})"
    blanks, lines = indent_of(spot.source.lines[statement.lineno - 1]), []
    for name in [array.id, *(one for one in together if one != array.id and one.isidentifier())]:
        other: Any = spot.variables.get(name)
        if not is_ndarray(other) or other.shape[:2] != value.shape[:2] or not _channels(other.shape):
            continue
        if str(other.dtype) not in _RESIZED:
            return None
        how = f", interpolation={opencv}.INTER_NEAREST" if _CLASSES.search(name) else ""
        lines.append(f"{blanks}{name} = {opencv}.resize({name}, {size}{how})")
    return Edit(spot.file, statement.lineno, statement.lineno - 1, tuple(lines)) if lines else None


def _opencv(spot: Spot) -> str:
    """The name of OpenCV in a frame; empty where it has none."""
    found = [name for name, value in spot.module.items() if getattr(value, "__name__", "") == "cv2" and spot.has(name)]
    return found[0] if found else ""
