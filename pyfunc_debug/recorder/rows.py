"""From facts and tickets to rows: everything that the writer thread puts into the file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from pyfunc_debug.recorder.batch import Batch
from pyfunc_debug.recorder.budget import Allowance
from pyfunc_debug.recorder.call_rows import CallRows
from pyfunc_debug.recorder.node_rows import NodeRows
from pyfunc_debug.recorder.returns import Returns
from pyfunc_debug.recorder.trace_rows import TraceRows
from pyfunc_debug.records import Line, Printed


class Rows:
    """Makes rows. Lives on the writer thread, except for the counts of what was lost.

    Attributes:
      allowance: What the file still takes, and what was lost.
      nodes, traces, calls: Rows of each kind.
      returns: What bodies returned.
      troubles: Failures of ours, counted.
    """

    def __init__(self) -> None:
        self.allowance = Allowance()
        self.nodes = NodeRows()
        self.traces = TraceRows(self.nodes, self.allowance)
        self.returns = Returns()
        self.calls = CallRows(self.nodes, self.allowance, self.returns.first_calls)
        self.troubles: Counter[str] = Counter()
        self._notices = 0

    def lines(self, batch: Batch, lines: Iterable[Line], prints: Iterable[Printed]) -> None:
        """Counts of lines, and what was printed where, as they are now."""
        for one in lines:
            batch.add(
                "line", one.file, one.line, one.kind, one.traced, one.ran, one.capped, json.dumps(one.graph),
                json.dumps(one.inside),
            )  # fmt: skip
            self.nodes.source(batch, one.file)
        for number, printed in enumerate(prints, 1):
            batch.add(
                "print", number, printed.trace, printed.call, printed.file, printed.line, printed.function, printed.text
            )
            self.nodes.source(batch, printed.file)

    def notice(self, batch: Batch, rule: str, token: str | None, call: int | None, facts: dict[str, Any]) -> None:
        """Something for the doctor."""
        node = self.nodes.numbers.get(token, (None, ""))[0] if token is not None else None
        self._notices += 1
        if "run" in facts:
            facts = {**facts, "run": self.nodes.run(facts["run"])}
        if call is not None:
            self.calls.name(call)
        for file in facts.get("sources", ()):
            self.nodes.source(batch, file)
        batch.add("notice", self._notices, rule, node, call, json.dumps(facts, default=str))

    def returned(self, batch: Batch) -> None:
        """What bodies returned, as far as it is known now; the rows replace the earlier ones."""
        for kind in self.returns.changed():
            known = self.nodes.numbers.get(kind.token)
            if known is None or known[1] != "forward":
                continue
            calls = kind.calls
            kind.add_up()
            batch.add(
                "returned", kind.number, known[0], kind.shown, kind.values,
                None if kind.declared is None else json.dumps(kind.declared), json.dumps(kind.dtypes), calls,
                kind.first, kind.sampled, kind.convert_ns, json.dumps([asdict(one) for one in kind.casts.values()]),
            )  # fmt: skip
            kind.written = calls

    def lost(self, batch: Batch) -> dict[str, Any]:
        """What was lost so far: by node in the table `dropped`, by reason in `meta`.

        Returns:
          What is in `meta`.
        """
        rows: dict[tuple[int, str], list[int]] = {}
        for token, counts in self.allowance.losses.by_token().items():
            known = self.nodes.numbers.get(token)
            if known is None and not token:
                continue  # of calls that had no ticket yet nobody knows the node
            row = rows.setdefault(known or (self.calls.unknown(batch, token), "forward"), [0, 0, 0])
            for index, amount in enumerate(counts):
                row[index] += amount
        for (node, kind), row in rows.items():
            batch.add("dropped", node, kind, *row)
        return self.allowance.losses.report()
