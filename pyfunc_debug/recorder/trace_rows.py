"""Rows of graph traces and of runs, and which trace a run belongs to."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from pyfunc_debug.events import RunFacts, TraceFacts
from pyfunc_debug.recorder.batch import Batch
from pyfunc_debug.recorder.budget import Allowance
from pyfunc_debug.recorder.node_rows import NodeRows


class TraceRows:
    """Graph traces and runs.

    Args:
      nodes: What they refer to.
      allowance: What the file still takes.
    """

    def __init__(self, nodes: NodeRows, allowance: Allowance) -> None:
        self._nodes = nodes
        self._allowance = allowance
        self._ordinals: Counter[Any] = Counter()
        self._traces: dict[int, int] = {}  # trace id -> function id
        self._holders: dict[str, int] = {}  # token -> newest graph trace whose graph holds it
        self._named: dict[str, tuple[int, bool]] = {}  # function's name -> newest graph trace; whether all are of one

    def trace(self, batch: Batch, facts: TraceFacts, native_id: int) -> None:
        """A finished graph trace, and which nodes its graph holds."""
        function = self._nodes.function(batch, facts.function)
        owner = facts.object if facts.object is not None else ("function", function)
        self._ordinals[owner] += 1
        self._traces[facts.id] = function or 0
        batch.add(
            "trace", facts.id, function, facts.object, self._ordinals[owner], facts.name, facts.signature,
            json.dumps(facts.reason), self._nodes.thread(batch, native_id), facts.start_ns, facts.duration_ns,
            facts.error, facts.parent, facts.closest, facts.avoid,
        )  # fmt: skip
        name = facts.function.name.rpartition(".")[2]
        before, alone = self._named.get(name, (facts.id, True))
        self._named[name] = facts.id, alone and self._traces[before] == self._traces[facts.id]
        for token in facts.tokens:
            self._holders[token] = facts.id
            self._nodes.held_by(batch, token, facts.id)
        for token, shapes in facts.shapes.items():
            self._nodes.static_shapes(batch, token, shapes)

    def run(self, batch: Batch, run: RunFacts) -> None:
        """A finished run."""
        if not self._allowance.keep_calls:
            self._allowance.losses.run(self._allowance.why)
            return
        trace = run.trace if run.kind == "forward" else self._forward_trace(run)
        function = self._traces.get(trace) if trace is not None else None
        batch.add(
            "run", self._nodes.run(run.id), trace, function or self._nodes.function(batch, run.function), run.kind,
            run.name, self._nodes.thread(batch, run.thread), run.start_ns, run.duration_ns, run.error,
            self._nodes.site(batch, run.site),
        )  # fmt: skip

    def _forward_trace(self, run: RunFacts) -> int | None:
        """The graph trace that a backward run differentiates.

        It is the one that holds the forward nodes of its gradient nodes, else the only one of its name.
        """
        for token in run.tokens or ():
            holder = self._holders.get(self._nodes.forward_of.get(token, ""))
            if holder is not None:
                return holder
        trace, alone = self._named.get(run.function.name if run.function is not None else "", (None, False))
        return trace if alone else None
