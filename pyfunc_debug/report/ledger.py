"""The ledger as the panel shows it: one row a traced function, a node, and a node's gradient, with what ran when.

The numbers are those of analysis/ledger.py. A row that needs attention says why in words; the panel never colours a row
without them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import ERROR, GRADIENT, Array, Columns
from pyfunc_debug.analysis.facts import ProgramFacts
from pyfunc_debug.analysis.ledger import CallSums, FunctionRow, Ledger, NodeRow, durations
from pyfunc_debug.analysis.runs import read_runs
from pyfunc_debug.analysis.tables import function_kind, function_name
from pyfunc_debug.records import Finding, Function, GraphTrace

Json = dict[str, Any]
_RANK = {"error": 0, "warning": 1, "note": 2}
_RAISED = "body-raised:"


def rows(
    connection: sqlite3.Connection,
    ledger: Ledger,
    facts: ProgramFacts,
    columns: Columns,
    findings: Sequence[Finding] | None = None,
) -> list[Json]:
    """Rows of the ledger as a flat tree: `level` 0 functions, 1 nodes, 2 gradients of nodes.

    Args:
      connection: The recording, open for reading.
      ledger: Its ledger.
      facts: Its small tables.
      columns: Its calls.
      findings: What the doctor says, to mark rows by; None if it did not look.
    """
    result: list[Json] = []
    for row in ledger.rows:
        result.append(_function_row(row, facts, findings))
        for node in row.nodes:
            result.extend(_node_rows(connection, row, node, facts, columns, ledger.all_ns, findings))
    return result


def durations_of(
    connection: sqlite3.Connection, ledger: Ledger, facts: ProgramFacts, columns: Columns
) -> dict[str, Array]:
    """What the means of these rows are made of: durations of finished calls, or of runs, in ns by the row's key."""
    runs = read_runs(connection)
    result = {}
    for row in ledger.rows:
        result[f"f{row.function.id}"] = durations(columns, runs, row)
        for node in row.nodes:
            key = _key(node, facts)
            result[key] = durations(columns, runs, node)
            result[f"{key}g"] = durations(columns, runs, node, "gradient")
    return result


def _key(row: NodeRow, facts: ProgramFacts) -> str:
    return f"n{facts.group_of[row.node.id]}"


def _function_row(row: FunctionRow, facts: ProgramFacts, findings: Sequence[Finding] | None) -> Json:
    function = row.function
    marks = _marks(findings, set(), function)
    traces = [trace for trace in facts.traces.values() if trace.function == function.id]
    reasons = [_reason(trace) for trace in traces if trace.reason]
    failed = [trace for trace in traces if trace.error]
    if failed:
        marks.insert(0, _own(findings, "error", f"tracing failed {_times(len(failed))}: {failed[-1].error}"))
    if reasons:
        marks.append(_own(findings, "warning", f"traced {_times(row.traces)}. {'. '.join(reasons[-3:])}"))
    return {
        "key": f"f{function.id}",
        "parent": None,
        "level": 0,
        "type": "function",
        "name": function_name(function),
        "title": function.name,
        "kind": function_kind(function),
        "function": function.id,
        "nodes": [node.id for own in row.nodes for node in own.nodes],
        "call_kind": None,
        "traced": row.traced,
        "runs": row.runs,
        "calls": None,
        "errors": None if row.runs is None else row.run_errors,
        "total_ns": row.times.total_ns if row.times.count else None,
        "mean_ns": row.times.mean_ns,
        "p95_ns": row.times.p95_ns,
        "share": None,
        "parts": None,
        "file": function.file,
        "line": function.line,
        "place": facts.source_line(function.file, function.line),
        "origin": function.origin,
        **_severity(marks),
    }


def _reason(trace: GraphTrace) -> str:
    text = f"graph trace {trace.ordinal}: {'; '.join(trace.reason)}"
    return f"{text} ({trace.avoid})" if trace.avoid else text


def _node_rows(
    connection: sqlite3.Connection,
    function: FunctionRow,
    row: NodeRow,
    facts: ProgramFacts,
    columns: Columns,
    everything: float,
    findings: Sequence[Finding] | None,
) -> Iterator[Json]:
    node, key, ids = row.node, _key(row, facts), [one.id for one in row.nodes]
    for kind, sums in (("forward", row.forward), ("gradient", row.gradient)):
        forward = kind == "forward"
        if not forward and not sums.calls:
            continue
        marks = _marks(findings, set(ids), None) if forward else []
        # Findings say which exception left a body, and where: more than the numbers do.
        if sums.failed and not any(text.startswith(_RAISED) for _, text in marks):
            failures = _failures(connection, _newest(columns, ids, kind), sums.failed, sums.stored)
            marks.insert(0, _own(findings, "error", failures))
        if forward:
            marks += [(None, note) for note in row.notes]
        yield {
            "key": key if forward else f"{key}g",
            "parent": f"f{function.function.id}" if forward else key,
            "level": 1 if forward else 2,
            "type": "node",
            "name": facts.label(node.id) if forward else "gradient",
            "title": f"{node.body} ({node.kind}{', op ' + node.name if node.name else ''})",
            "kind": facts.kind(node.id) if forward else "",
            "function": node.function,
            "nodes": ids,
            "call_kind": kind,
            "traced": None,
            "runs": None,
            "calls": sums.calls,
            "stored": sums.stored,
            "errors": sums.errors,
            **_numbers(sums, everything),
            "file": node.file,
            "line": node.line,
            "place": facts.source_line(node.file, node.line),
            "site": facts.source_line(node.stack[-1].file, node.stack[-1].line) if node.stack else None,
            "origin": node.origin,
            **_severity(marks),
        }


def _numbers(sums: CallSums, everything: float) -> Json:
    times, parts = sums.times, sums.parts
    total = sums.total_ns if times.count else None
    return {
        "mean_ns": times.mean_ns,
        "p95_ns": times.p95_ns,
        "max_ns": times.max_ns,
        "total_ns": total,
        "share": total / everything if everything and total is not None else None,
        "parts": None if parts is None else asdict(parts),
    }


def _newest(columns: Columns, nodes: Sequence[int], kind: str) -> int:
    """The newest failed call of some nodes."""
    failed = np.isin(columns.node, nodes) & (columns.status == ERROR)
    failed &= (columns.kind == GRADIENT) == (kind == "gradient")
    return int(columns.id[np.flatnonzero(failed)[-1]])


def _failures(connection: sqlite3.Connection, newest: int, errors: int, count: int) -> str:
    row = connection.execute(
        "SELECT failure.type, failure.message FROM call JOIN failure ON failure.id = call.failure WHERE call.id = ?",
        (newest,),
    ).fetchone()
    text = f"{errors:,} of {count:,} calls failed"
    if row is None:
        return text
    message = row[1].strip().splitlines()
    return f"{text}, the last with {row[0]}" + (f": {message[0][:200]}" if message else "")


Mark = tuple[str | None, str]
"""A severity, and what is said; None where it is said without a badge."""


def _own(findings: Sequence[Finding] | None, severity: str, text: str) -> Mark:
    """What the numbers of a row say: a badge only while the doctor has not looked. Then its findings are the badges."""
    return (severity if findings is None else None), text


def _marks(findings: Sequence[Finding] | None, nodes: set[int], function: Function | None) -> list[Mark]:
    result: list[Mark] = []
    for finding in findings or ():
        here = (
            finding.node in nodes or not nodes.isdisjoint(finding.nodes)
            if finding.node is not None
            else (function is not None and finding.file == function.file and finding.line == function.line)
        )
        if here:
            result.append((finding.severity, f"{finding.rule}: {finding.message}"))
    return result


def _severity(marks: Sequence[Mark]) -> Json:
    marks = sorted(marks, key=lambda mark: _RANK.get(mark[0] or "", 3))
    return {"severity": marks[0][0] if marks else None, "why": [text for _, text in marks]}


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
