"""One finding a body: each graph trace makes a new node for it, and other lines may use it too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pyfunc_debug.doctor.facts import Facts

Row = tuple[Any, ...]
_SHOWN = 4
"""Lines or functions that are named."""


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


def spread(facts: Facts, counts: Mapping[int, int]) -> str:
    """`, at 2 lines: once at train.py:12, 3 times at train.py:30`; empty where there is one node.

    Nodes of one line differ by their functions; those of one function by their graphs: `, once in each of 4 graphs`.

    Args:
      facts: The recording.
      counts: How often, by node.
    """
    for preposition, what, names in (
        ("at", "lines", _lines(facts, counts)),
        ("in", "functions", _made_in(facts, counts)),
    ):
        if len(set(names)) > 1 and None not in names:
            sums: Counter[str | None] = Counter()
            for name, count in zip(names, counts.values()):
                sums[name] += count
            parts = [f"{times(count)} {preposition} {name}" for name, count in sums.items()]
            return f", {preposition} {len(sums)} {what}: {_some(parts)}"
    graphs = {_trace(facts, node) for node in counts}
    if len(graphs) == len(counts) > 1 and None not in graphs:
        each = set(counts.values())
        return (
            f", {times(each.pop())} in each of {len(graphs)} graphs" if len(each) == 1 else f", in {len(graphs)} graphs"
        )
    return listed(counts)


def listed(nodes: Collection[int]) -> str:
    """`, in 3 nodes`; empty where there is one."""
    return f", in {len(nodes)} nodes" if len(nodes) > 1 else ""


def _lines(facts: Facts, nodes: Iterable[int]) -> list[str | None]:
    frames = map(facts.site, nodes)
    return [None if frame is None else facts.source_line(frame.file, frame.line) for frame in frames]


def _made_in(facts: Facts, nodes: Iterable[int]) -> list[str | None]:
    made = (facts.functions.get(facts.nodes[node].function or 0) for node in nodes)
    return [None if one is None or one.kind == "eager" else one.name for one in made]


def _trace(facts: Facts, node: int) -> int | None:
    """The graph trace that made a node: of those that hold it the innermost, which holds the fewest."""
    holding = [one for one in facts.traces if node in one.nodes]
    return min(holding, key=lambda one: len(one.nodes)).id if holding else None


def _some(parts: Sequence[str]) -> str:
    more = f", and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return ", ".join(parts[:_SHOWN]) + more
