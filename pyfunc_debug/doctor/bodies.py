"""One finding a body: each graph trace makes a new node for it, and other lines may use it too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = tuple[Any, ...]
_SHOWN = 4
"""A function that is traced at every step makes a node at every step."""


def together(rows: Iterable[Row], *also: int) -> list[list[Row]]:
    """Rows of one body, together, in their order.

    Args:
      rows: Each begins with a node, its body, and the body's file and line; without a file, nodes stay apart.
      also: Other columns in which the rows must agree.
    """
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        node, body, file, line = row[:4]
        key = (body, file, line) if file is not None else (node,)
        groups.setdefault((*key, *(row[column] for column in also)), []).append(row)
    return list(groups.values())


def several(nodes: Iterable[int]) -> tuple[int, ...]:
    """What `Finding.nodes` holds: nothing where there is one."""
    every = tuple(dict.fromkeys(nodes))
    return every if len(every) > 1 else ()


def times(count: int) -> str:
    """`once`, or `1,234 times`."""
    return "once" if count == 1 else f"{count:,} times"


def spread(counts: Mapping[int, int]) -> str:
    """`, in 2 nodes: once in node 1, 3 times in node 4`; empty where there is one."""
    if len(counts) < 2:
        return ""
    parts = [f"{times(count)} in node {node}" for node, count in counts.items()]
    return f", in {len(counts)} nodes: {_some(parts)}"


def listed(nodes: Sequence[int]) -> str:
    """`, in nodes 1, 2, 4`; empty where there is one."""
    return f", in nodes {_some([str(node) for node in nodes])}" if len(nodes) > 1 else ""


def _some(parts: Sequence[str]) -> str:
    more = f", and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return ", ".join(parts[:_SHOWN]) + more
