"""Which nodes are one for a person: a retrace makes the nodes of a function again."""

from __future__ import annotations

from collections.abc import Iterable

from pyfunc_debug.records import Frame, Function, Node


def same_line(nodes: Iterable[Node], functions: Iterable[Function]) -> list[list[Node]]:
    """Nodes that the same line of the user's code made in the same function, together, in their order.

    From where a tf.function was called when it was traced makes no difference, how its own lines led to the node does.
    Nodes whose line is not known stay apart by the name of their op.
    """
    known = {function.id: function for function in functions}
    groups: dict[object, list[Node]] = {}
    for node in nodes:
        way = _inside(node.stack, known.get(node.function or 0))
        key = (node.function, node.kind, node.body, node.file, node.line, way or node.name)
        groups.setdefault(key, []).append(node)
    return list(groups.values())


def _inside(stack: tuple[Frame, ...], function: Function | None) -> tuple[Frame, ...]:
    """The frames from a tf.function's own on; else the whole stack: a pipeline is the place it is at."""
    if function is None or function.kind != "tf.function":
        return stack
    name = function.name.rpartition(".")[2]
    start = 0
    for index, frame in enumerate(stack):
        if (frame.file, frame.function) == (function.file, name) and frame.line >= (function.line or 0):
            return stack[index:]
        if frame.function == "<module>" or frame.function.startswith("<cell line"):
            start = index + 1  # Keras' functions have no frame here: all that is sure is what lies outside of them
    return stack[start:]
