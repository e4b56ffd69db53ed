"""What TensorFlow knows of the shapes of nodes' inputs and outputs once their graph is built.

`set_shape` changes what is known of a tensor after it was made: so it is asked at the end of a graph trace.
"""

from __future__ import annotations

from typing import Any

from pyfunc_debug.interception.graphs.library import python_ops
from pyfunc_debug.interception.tokens import token_of

Shape = tuple[int | None, ...] | None
"""None for an unknown rank, with None for unknown dimensions."""
_ELEMENTS = ("IteratorGetNext", "IteratorGetNextSync")


def node_shapes(graph: Any) -> dict[str, tuple[tuple[str, int, str, Shape], ...]]:
    """By token, ("input" or "output", position, dtype, shape) of each node in a graph and in its branches and loops."""
    return {
        token_of(op): tuple(
            (role, position, tensor.dtype.name, shape_of(tensor))
            for role, tensors in (("input", op.inputs), ("output", op.outputs))
            for position, tensor in enumerate(tensors)
        )
        for _, op in python_ops(graph)
    }


def is_blind(graph: Any) -> bool:
    """Whether a graph takes elements out of a dataset without knowing how many dimensions they have."""
    return any(
        shape_of(output) is None and output.dtype.name not in ("variant", "resource")
        for op in graph.get_operations()
        if op.type in _ELEMENTS
        for output in op.outputs
    )


def loses_rank(graph: Any) -> bool:
    """Whether a graph's result is a tensor of unknown rank."""
    return any(shape_of(output) is None for output in graph.outputs if output.dtype.name != "variant")


def shape_of(tensor: Any) -> Shape:
    """What is known of a tensor's shape."""
    shape = tensor.shape
    return None if shape.rank is None else tuple(shape.as_list())
