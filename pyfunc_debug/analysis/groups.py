"""Which nodes are one for a person: a retrace makes the nodes of a function again."""

from __future__ import annotations

from collections.abc import Iterable

from pyfunc_debug.records import Node


def same_line(nodes: Iterable[Node]) -> list[list[Node]]:
    """Nodes that the same line of the user's code made in the same function, together, in their order.

    Nodes whose line is not known stay apart by the name of their op.
    """
    groups: dict[object, list[Node]] = {}
    for node in nodes:
        key = (node.function, node.kind, node.body, node.file, node.line, node.stack or node.name)
        groups.setdefault(key, []).append(node)
    return list(groups.values())
