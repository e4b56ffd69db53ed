"""How much memory a cache behind a node takes: what its calls returned, once for each element."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node

_MUCH_BYTES = 100_000_000
TOLD_BYTES = 300_000_000
"""What a program may hold without a word."""


def bytes_of(facts: Facts, nodes: Sequence[Node], elements: int, role: str = "output") -> int:
    """What a number of elements take, from the sizes of what was recorded of the nodes' results; 0 where none was.

    Args:
      facts: The recording.
      nodes: The nodes.
      elements: How many.
      role: `input` for what the calls were given.
    """
    marks = ", ".join(str(one.id) for one in nodes)
    calls, total = facts.reader.rows(
        "SELECT count(DISTINCT c.id), total(v.nbytes) FROM call c JOIN value v ON v.call = c.id AND v.role = ? "
        f"WHERE c.node IN ({marks}) AND c.kind = 'forward' AND v.nbytes IS NOT NULL",
        (role,),
    )[0]
    return int(total * elements / calls) if calls else 0


def size_text(size: int) -> str:
    """`0.5 GB`, `120 MB`, `8 kB`."""
    if size < 1e6:
        return f"{math.ceil(size / 1e3)} kB"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def would_hold(facts: Facts, node: Node, elements: int) -> str:
    """What a cache that is offered would hold in memory, and where else it may be; nothing where that is little."""
    size = bytes_of(facts, [node], elements)
    if size < _MUCH_BYTES:
        return ""
    return f'the cache holds some {size_text(size)} in memory then; .cache("elements") keeps them in a file'
