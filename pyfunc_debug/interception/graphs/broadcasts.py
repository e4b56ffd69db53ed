"""Differences of a column and a row of numbers, which TensorFlow makes a square: labels [n] and predictions [n, 1]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyfunc_debug.program.frames import user_frames
from pyfunc_debug.records import Frame

_OPS = frozenset({"Sub", "SquaredDifference"})
_ON_PURPOSE = frozenset({"ExpandDims", "Reshape", "StridedSlice", "Transpose"})
"""Ops that give a tensor the axis by which all pairs are meant."""
_MOST_OPS = 20_000


def squared(graph: Any) -> Iterator[tuple[Frame, list[int | None], list[int | None]]]:
    """The user's lines with such a difference in a graph, and the shapes of both sides."""
    every = graph.get_operations()
    for op in every if len(every) <= _MOST_OPS else ():
        if op.type not in _OPS:
            continue
        one, other = (each.shape.as_list() if each.shape.rank is not None else [] for each in op.inputs)
        if sorted((len(one), len(other))) != [1, 2]:
            continue
        flat, column = (one, other) if len(one) == 1 else (other, one)
        if column[1] != 1 or column[0] != flat[0] or flat[0] == 1:
            continue
        if any(each.op.type in _ON_PURPOSE for each in op.inputs):
            continue
        site = user_frames(op.traceback)[-1:]
        if site:
            yield site[0], one, other


_EACH = frozenset(
    (
        "Log",
        "Log1p",
        "Cast",
        "Identity",
        "Neg",
        "Square",
        "Exp",
        "StopGradient",
        "Maximum",
        "Minimum",
        "AddV2",
        "Mul",
        "Sub",
    )
)
"""Ops that give each number another one: with a number, they keep the shape."""
_PAIRS = frozenset(("Sub", "SquaredDifference", "Mul", "AddV2", "RealDiv"))
_FARTHEST = 6


def picked(graph: Any) -> Iterator[tuple[Frame, Frame, list[int], list[int]]]:
    """`tf.gather(q, a, axis=1)` of q [n, k] and a [n], computed with a tensor [n] afterwards.

    Yields:
      The user's lines of the gather and of what is computed with its [n, n], and the shapes of q and a.
    """
    every = graph.get_operations()
    for op in every if len(every) <= _MOST_OPS else ():
        if op.type != "GatherV2" or op.get_attr("batch_dims") or op.inputs[2].op.type != "Const":
            continue
        params, indices = (each.shape.as_list() if each.shape.rank is not None else [] for each in op.inputs[:2])
        axis = list(op.inputs[2].op.get_attr("value").int_val)
        rows = params[0] if params else None
        if len(params) != 2 or indices != [rows] or rows is None or rows < 2 or axis not in ([1], [-1]):
            continue
        other = None if _is_fixed(op.inputs[1]) else _paired(op.outputs[0], rows, 0)
        sites = [user_frames(one.traceback)[-1:] for one in (op, other) if one is not None]
        if len(sites) == 2 and all(sites):
            yield sites[0][0], sites[1][0], params, indices


def _is_fixed(tensor: Any) -> bool:
    """Whether a tensor is made of constants, of eager tensors from outside and of variables: the same for all rows."""
    todo = [tensor]
    seen: set[Any] = set()
    while todo:
        op = todo.pop().op
        if op in seen or len(seen) > _MOST_OPS:
            continue
        seen.add(op)
        captures = getattr(op.graph, "captures", ()) if op.type == "Placeholder" else ()
        outside = next((one for one, own in captures if own is op.outputs[0]), None)
        if outside is not None and hasattr(outside, "graph"):  # of the graph around this one
            todo.append(outside)
        elif op.type not in ("Const", "ReadVariableOp") and outside is None and not op.inputs:
            return False  # an argument, or random numbers
        elif op.type in ("IteratorGetNext", "OptionalGetValue"):
            return False
        if op.type != "ReadVariableOp":
            todo.extend(op.inputs)
    return True


def _paired(tensor: Any, rows: int, far: int) -> Any:
    """The op that computes with a square tensor, or what is made of it number by number, and one of [rows]."""
    for op in tensor.consumers() if far < _FARTHEST else ():
        shapes = [each.shape.as_list() if each.shape.rank is not None else None for each in op.inputs]
        if op.type in _PAIRS and sorted(map(str, shapes)) == sorted(map(str, ([rows], [rows, rows]))):
            return op
        if op.type in _EACH and all(one in ([], [rows, rows]) for one in shapes):
            found = _paired(op.outputs[0], rows, far + 1)
            if found is not None:
                return found
    return None
