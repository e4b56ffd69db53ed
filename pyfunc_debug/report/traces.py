"""Why a function was traced as often as it was: the same words as `recording.explain`, for the panel."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import GRADIENT, Columns
from pyfunc_debug.analysis.facts import ProgramFacts
from pyfunc_debug.analysis.retraces import TraceRow, reasons, stale_values

Json = dict[str, Any]
MAX_TRACES = 200


def page(connection: sqlite3.Connection, facts: ProgramFacts, columns: Columns, function: int) -> Json | None:
    """Graph traces of a function, oldest first, each with its reason; None if there is no such function."""
    known = facts.functions.get(function)
    if known is None:
        return None
    traces = [trace for trace in facts.traces.values() if trace.function == function]
    shown = traces if len(traces) <= MAX_TRACES else [*traces[: MAX_TRACES // 2], *traces[-MAX_TRACES // 2 :]]
    ids = ",".join(str(trace.id) for trace in shown)
    runs = dict(
        connection.execute(
            f"SELECT trace, count(*) FROM run WHERE trace IN ({ids}) AND kind = 'forward' GROUP BY trace"
        )
    )
    calls = _calls(connection, columns)
    objects = {trace.object for trace in traces}
    changed = stale_values(connection.execute)
    rows = []
    for trace in shown:
        row = TraceRow(
            trace.name, trace.signature, trace.reason, trace.closest, trace.avoid, trace.duration_ns,
            runs.get(trace.id), (), trace.object, trace.error, changed.get(trace.id, ()),
        )  # fmt: skip
        nodes = [node for node in trace.nodes if facts.nodes[node].origin == "user"]
        rows.append(
            {
                "id": trace.id,
                "ordinal": trace.ordinal,
                "name": trace.name,
                "signature": trace.signature[:2000],
                "said": [[kind, text[:2000]] for kind, text in reasons(row)],
                "object": trace.object if len(objects) > 1 else None,
                "start_ns": trace.start_ns - columns.origin_ns,
                "duration_ns": trace.duration_ns,
                "runs": row.runs,
                "error": trace.error,
                "nodes": [
                    {"key": f"n{facts.group_of[node]}", "name": facts.label(node), "calls": calls.get(node, 0)}
                    for node in nodes[:20]
                ],
                "more_nodes": max(0, len(nodes) - 20),
            }
        )
    return {
        "function": function,
        "name": known.name,
        "kind": known.kind,
        "place": facts.source_line(known.file, known.line),
        "hidden": len(traces) - len(shown),
        "rows": rows,
    }


def _calls(connection: sqlite3.Connection, columns: Columns) -> dict[int, int]:
    forward = columns.node[columns.kind != GRADIENT]
    nodes, counts = np.unique(forward, return_counts=True)
    calls = dict(zip(nodes.tolist(), counts.tolist()))
    for node, lost in connection.execute("SELECT node, calls FROM dropped WHERE kind = 'forward'"):
        calls[node] = calls.get(node, 0) + lost
    return calls
