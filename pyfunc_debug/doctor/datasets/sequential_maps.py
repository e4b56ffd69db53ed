"""Maps that make one element at a time without a pause: what is behind them asks for more than they can give.

Of a loop inside a graph nobody sees when it waits. But a map that is asked no sooner than its elements are wanted
pauses, once a batch: whoever is behind it, a prefetch too, has room for a few only.

A loop in Python that waits little may still be slow by its input: tf.data puts a prefetch behind the last stage, and
what then runs beside the steps, holding the GIL, makes these longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.analysis.inputs import Loop
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node

_CALLS = 1000
_READ = 100_000
"""How many calls are looked at."""
_LEAST = 8
"""Elements of a batch: within one there is no step, so that what lies between its calls is the map's own time."""
_LONG = 5
"""An element that takes as many times the median is a pause, but for one median."""
_PAUSES, _MOST = 0.05, 0.25
"""Share of the time that may be pauses: on an idle machine, and beside other processes at most."""
_COVERED = 0.8
"""Share of the steps' time in which elements were made: less where a cache gives the later ones."""
_MOST_OF_IT = 0.6
"""The same beside steps in Python, which may wait for a part of it only."""
_WORKED = 0.5
"""Share of a call's time on a CPU, or without any (it reads, or sleeps): between, others were given its CPU."""
_SLEPT = 0.1


@dataclass(frozen=True)
class Pace:
    """A body whose map makes one element after the other.

    Attributes:
      node: The body's node.
      elements: How many elements it made.
      element_ns: What one took, from the beginning of a call to that of the next.
      share: The share of the steps' time for which it worked beside them; None where the steps waited for it.
    """

    node: Node
    elements: int
    element_ns: float
    share: float | None = None


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
        if (setting.batch or 0) < _LEAST:
            continue  # then each gap may hold a step
        found = _paced(facts, loop, node, setting.batch or 0)
        if found is not None:
            return found
    return None


def beside(facts: Facts, loop: Loop) -> Pace | None:
    """The map that worked beside the steps of a loop in Python for longer than these did without waiting for it.

    So steps that do nothing would still take the longer part of the time, and a map that does nothing the shorter one.

    Args:
      facts: The recording.
      loop: One of its loops, whose waits were measured.
    """
    for stage in facts.stages:
        node, setting, cost = stage.contention.node, stage.setting, stage.stage
        if node.id not in loop.nodes or setting is None or setting.parallel not in (0, 1) or not loop.taken:
            continue
        calls = facts.calls(node.id).count
        share = cost.wall_ns * calls * loop.steps / loop.taken / loop.step_ns
        worked = (cost.cpu_ns or 0.0) / cost.wall_ns
        least = max(_MOST_OF_IT, 1.0 - (loop.wait_share or 0.0))
        if least <= share <= 1.0 and (worked >= _WORKED or worked <= _SLEPT):
            return Pace(node, calls, cost.wall_ns, share)
    return None


def _paced(facts: Facts, loop: Loop, node: Node, size: int) -> Pace | None:
    rows = facts.reader.rows(
        "SELECT start_ns, end_ns FROM call WHERE node = ? AND kind = 'forward' AND end_ns IS NOT NULL "
        f"ORDER BY start_ns LIMIT {_READ}", (node.id,),
    )  # fmt: skip
    if len(rows) < _CALLS:
        return None
    starts, ends = np.array(rows, np.int64).T
    if (starts[1:] < ends[:-1]).any():  # they ran side by side
        return None
    between = np.diff(starts)
    median = float(np.median(between))
    passes = np.sort(np.argsort(between)[-max(1, loop.passes) :])  # the longest are between two passes
    elements = np.delete(between, passes)
    total = int(elements.sum())
    pauses = np.maximum(0, elements - _LONG * median).sum()
    share = min(_MOST, facts.least_ns(_PAUSES))
    calls = facts.calls(node.id).count
    if max(pauses, _at_batches(between, passes, size)) > share * total:
        return None
    if total * calls / len(rows) < _COVERED * loop.step_ns:
        return None
    return Pace(node, calls, total / len(elements))


def _at_batches(between: Any, passes: Any, size: int) -> float:
    """How long the map paused once a batch: by how much one of the places in a batch takes longer than the others."""
    first = np.zeros(len(between), np.int64)
    first[passes[passes + 1 < len(between)] + 1] = 1
    begins = np.maximum.accumulate(np.where(first == 1, np.arange(len(between)), 0))
    places = (np.arange(len(between)) - begins) % size
    medians = np.array([np.median(between[places == place]) for place in range(size) if (places == place).any()])
    return float((medians.max() - np.median(medians)) * (len(between) / size))
