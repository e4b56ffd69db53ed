"""Maps that make one element at a time without a pause: what is behind them asks for more than they can give.

Of a loop inside a graph nobody sees when it waits. But a map that is asked no sooner than its elements are wanted
pauses: whoever is behind it, a prefetch too, has room for a few only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyfunc_debug.analysis.inputs import Loop
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node

_CALLS = 1000
_READ = 100_000
"""How many calls are looked at."""
_LONG = 5
"""An element that takes as many times the median is a pause, but for one median."""
_PAUSES, _MOST = 0.05, 0.25
"""Share of the time that may be pauses: on an idle machine, and beside other processes at most."""
_COVERED = 0.8
"""Share of the steps' time in which elements were made: less where a cache gives the later ones."""


@dataclass(frozen=True)
class Pace:
    """A body whose map makes one element after the other.

    Attributes:
      node: The body's node.
      elements: How many elements it made.
      element_ns: What one took, from the beginning of a call to that of the next.
    """

    node: Node
    elements: int
    element_ns: float


def pace(facts: Facts, loop: Loop) -> Pace | None:
    """The map that sets the pace of a loop, if one does.

    Args:
      facts: The recording.
      loop: One of its loops inside a graph.
    """
    for stage in facts.stages:
        node, setting = stage.contention.node, stage.setting
        if node.id not in loop.nodes or node.origin != "user" or setting is None or setting.parallel not in (0, 1):
            continue
        found = _paced(facts, loop, node)
        if found is not None:
            return found
    return None


def _paced(facts: Facts, loop: Loop, node: Node) -> Pace | None:
    rows = facts.reader.rows(
        "SELECT start_ns, end_ns FROM call WHERE node = ? AND kind = 'forward' AND end_ns IS NOT NULL "
        f"ORDER BY start_ns LIMIT {_READ}", (node.id,),
    )  # fmt: skip
    if len(rows) < _CALLS:
        return None
    starts, ends = np.array(rows, np.int64).T
    if (starts[1:] < ends[:-1]).any():  # they ran side by side
        return None
    elements = np.sort(np.diff(starts))[: -max(1, loop.passes)]  # the others are between two passes
    median, total = float(np.median(elements)), int(elements.sum())
    pauses = np.maximum(0, elements - _LONG * median).sum()
    share = min(_MOST, facts.least_ns(_PAUSES))
    calls = facts.calls(node.id).count
    if pauses > share * total or total * calls / len(rows) < _COVERED * loop.step_ns:
        return None
    return Pace(node, calls, total / len(elements))
