"""A shuffle behind a slow map: it holds what the map made before it gives anything, and loses it at the end."""

from __future__ import annotations

import math

from pyfunc_debug.analysis.inputs import Loop
from pyfunc_debug.doctor.datasets.cached_chains import kind_of
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Frame, Node

_LOST = 0.25
"""Share of a body's calls for elements that nobody took, from which it is said."""
_PLAIN = ("Batch", "ParallelBatch", "PaddedBatch", "Repeat", "Prefetch", "Map", "ParallelMap", "MapAndBatch", "Options",
          "Shuffle", "Model", "Take")  # fmt: skip
"""Stages that give as many elements as they get, or batches of them: so it is known how many were taken."""


def words(facts: Facts, loop: Loop, node: Node) -> str:
    """That the shuffle belongs before the map, with the calls that it kept; nothing where there is no such shuffle.

    Args:
      facts: The recording.
      loop: One of its loops.
      node: The slow body of its pipeline.
    """
    for entry in facts.meta.get("inputs") or ():
        stages = entry["stages"]
        if entry["site"] is None or loop.site is None or Frame(*entry["site"][:3]) != loop.site:
            continue
        place = next((at for at, one in enumerate(stages) if node.token in one["tokens"]), 0)
        behind = stages[:place]
        buffers = [one["buffer"] for one in behind if one["kind"].startswith("Shuffle") and one.get("buffer")]
        if len(buffers) != 1 or not all(kind_of(one) in _PLAIN for one in behind):
            continue
        size = math.prod(one["batch"] for one in behind if one["batch"])
        taken = (loop.taken or loop.steps + 1) * size
        calls = facts.calls(node.id).count
        if calls - taken >= _LOST * calls:
            holds = f"it holds what {facts.name(node)} made, and gives nothing until it is full"
            counted = f"{calls:,} calls, of which the steps took {taken:,}"
            if facts.is_generator(node):
                return f"a smaller shuffle than {buffers[0]:,}, or names and indices shuffled: {holds}: {counted}"
            return f"shuffle({buffers[0]}) before the map: behind it, {holds}: {counted}"
    return ""
