"""A body that is written for one example gets a batch: what Python, NumPy and TensorFlow's ops say of that."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from pyfunc_debug.doctor.failures.datasets.batched_input import RULE
from pyfunc_debug.doctor.failures.datasets.mapped_first import mapped_first
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import Node, failed_node, inputs_of
from pyfunc_debug.doctor.failures.reading.shapes import refused_reshape
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import calls

_ONE = re.compile(
    r"object has no attribute '(?:decode|encode|split|strip|lower|upper|replace|startswith|endswith|rsplit)'"
    r"|[Tt]he truth value of an array|only (?:0-dimensional|length-1|size-1|integer scalar) arrays"
    r"|(?:not|got) '?(?:numpy\.)?ndarray|unhashable type: '(?:numpy\.)?ndarray'"
    r"|must be (?:a )?scalar|must be rank 0"
)
"""What is said of an array of numbers or texts, where one is taken."""
_AXES = "axes don't match array"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a batch stands before the map, and the failing line takes one of it."""
    spot = situation.last if situation.body else None
    statement = situation.statement
    node = failed_node(situation) if statement is not None and _is_said(situation.message) else None
    if spot is None or statement is None or node is None or node.site is None:
        return None
    name, _ = next(iter(inputs_of(node, situation).items()), ("", None))
    batches = batches_of(node, situation)
    taken = _taken(situation.message, statement, spot, {one[0] for one in batches})
    placed = mapped_first(node, situation) if taken is not None else None
    if placed is None:
        return None
    batch, edit = placed
    shape = max((one for one in batches if one[0] == taken), default=())
    return Explanation(
        RULE, spot.file, spot.line,
        f"{batch} stands before the map: {node.called} got {taken} at once, {name} of shape {list(shape)}, and this "
        "line takes one. Mapped first, each comes alone.", edit, "", "likely",
    )  # fmt: skip


def _is_said(message: str) -> bool:
    return _ONE.search(message) is not None or refused_reshape(message) is not None or _AXES in message


def batches_of(node: Node, situation: Situation) -> list[tuple[int, ...]]:
    """Shapes of the first input in the node's calls, where all inputs of a call are as long."""
    rows = situation.rows(
        "SELECT v.call, v.shape FROM value v JOIN call c ON c.id = v.call WHERE v.role = 'input' AND c.node = ? "
        "AND c.kind = 'forward' ORDER BY v.call, v.position LIMIT 200",
        (node.id,),
    )
    found: dict[int, list[tuple[int, ...]]] = {}
    for call, text in rows:
        found.setdefault(call, []).append(tuple(json.loads(text)) if text else ())
    return [shapes[0] for shapes in found.values() if all(shapes) and len({shape[0] for shape in shapes}) == 1]


def _taken(message: str, statement: ast.stmt, spot: Spot, counts: set[int]) -> int | None:
    """How many examples came where one would have been taken; None where it is not that which failed."""
    sizes = refused_reshape(message)
    if sizes is not None:
        count, rest = divmod(sizes[0], sizes[1] or 1)
        return count if count in counts and not rest else None
    read = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}  # of a lambda in the line, too
    shapes = [shape for name in sorted(read) if (shape := _shape(spot.value(name))) and shape[0] in counts]
    ranks = {1}
    if _AXES in message:
        given = [one for call in calls(statement) for one in (*call.args, *(each.value for each in call.keywords))]
        ranks = {len(one.elts) + 1 for one in given if isinstance(one, (ast.Tuple, ast.List))}
    return next((shape[0] for shape in shapes if len(shape) in ranks), None)


def _shape(value: Any) -> tuple[int, ...]:
    """The sizes of an array or an eager tensor; empty of all else."""
    array = type(value).__module__ == "numpy" or type(value).__name__ == "EagerTensor"
    return tuple(int(size) for size in value.shape) if array and hasattr(value, "shape") else ()
