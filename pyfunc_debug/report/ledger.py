"""The ledger: one row a traced function, a node, and a node's gradient, with what ran when.

A row that needs attention says why in words; the panel never colours a row without them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyfunc_debug.records import Finding, Function, GraphTrace
from pyfunc_debug.report.columns import ERROR, GRADIENT, Array, Columns
from pyfunc_debug.report.facts import Facts, short_name

Json = dict[str, Any]
_RANK = {"error": 0, "warning": 1, "note": 2}
_CHUNK = 50_000


def rows(
    connection: sqlite3.Connection, facts: Facts, columns: Columns, findings: Sequence[Finding] | None = None
) -> list[Json]:
    """Rows of the ledger as a flat tree: `level` 0 functions, 1 nodes, 2 gradients of nodes.

    Args:
      connection: The recording, open for reading.
      facts: Its small tables.
      columns: Its calls.
      findings: What the doctor says, to mark rows by; None if it did not look.
    """
    runs = _runs(connection)
    dropped = {
        (node, kind): (calls, errors)
        for node, kind, calls, errors in connection.execute("SELECT node, kind, calls, errors FROM dropped")
    }
    everything = columns.duration.clip(0).sum() + np.nansum(columns.wait)
    children: dict[int | None, list[int]] = {}
    for key in facts.groups:
        # TensorFlow's own nodes are hidden, as in the ledger of the terminal.
        if facts.nodes[key].origin == "user":
            children.setdefault(facts.nodes[key].function, []).append(key)
    result: list[Json] = []
    for function in [*facts.functions, *(f for f in children if f not in facts.functions)]:
        own = children.get(function, ())
        if not own and not _useful(facts, function):
            continue
        result.append(_function_row(function, facts, runs, own, findings))
        for key in own:
            result.extend(_node_rows(connection, key, facts, columns, dropped, float(everything), findings))
    return result


def durations(connection: sqlite3.Connection, facts: Facts, columns: Columns, rows: Sequence[Json]) -> dict[str, Array]:
    """What the means of these rows are made of: durations of finished calls, or of runs, in ns by the row's key."""
    runs = _runs(connection)
    result = {}
    for row in rows:
        if row["type"] == "function":
            result[row["key"]] = runs.get(row["function"], _NO_RUNS).durations
        else:
            mask = np.isin(columns.node, row["nodes"]) & (
                (columns.kind == GRADIENT) == (row["call_kind"] == "gradient")
            )
            result[row["key"]] = columns.duration[mask & (columns.end >= 0)]
    return result


def _useful(facts: Facts, key: int | None) -> bool:
    """Whether a function without user nodes of its own is shown: the user's own, or one around a user's node."""
    function = facts.functions.get(key) if key is not None else None
    if function is None:
        return False
    if function.origin == "user" and function.kind == "tf.function":
        return True
    held = {node for trace in facts.traces.values() if trace.function == key for node in trace.nodes}
    return any(facts.nodes[node].origin == "user" for node in held if node in facts.nodes)


class _Runs(NamedTuple):
    """Runs of a function that Python started: durations of the finished ones in ns, how many, how many failed."""

    durations: Array
    number: int
    errors: int


_NO_RUNS = _Runs(np.empty(0, np.int64), 0, 0)


def _runs(connection: sqlite3.Connection) -> dict[int, _Runs]:
    # One text a chunk, as in columns.py: rows as Python objects would take the GIL from the recorded program.
    newest = connection.execute("SELECT max(id) FROM run").fetchone()[0] or 0
    tables = [np.empty((0, 3), np.int64)]
    for low in range(0, newest + 1, _CHUNK):
        (text,) = connection.execute(
            "SELECT group_concat(coalesce(run.function,trace.function,-1)||','||ifnull(run.duration_ns,-1)||','||"
            "(run.error IS NOT NULL)) FROM run LEFT JOIN trace ON trace.id = run.trace"
            " WHERE run.kind = 'forward' AND run.id >= ? AND run.id < ?",
            (low, low + _CHUNK),
        ).fetchone()
        if text:
            tables.append(np.fromstring(text, np.int64, sep=",").reshape(-1, 3))
    table = np.concatenate(tables)
    result = {}
    for function in np.unique(table[:, 0]).tolist():
        own = table[table[:, 0] == function]
        result[function] = _Runs(own[own[:, 1] >= 0, 1], len(own), int(own[:, 2].sum()))
    result.pop(-1, None)
    return result


def _function_row(
    key: int | None,
    facts: Facts,
    runs: dict[int, _Runs],
    nodes: Iterable[int],
    findings: Sequence[Finding] | None,
) -> Json:
    function = facts.functions.get(key) if key is not None else None
    if function is None:
        function = Function(-1, "(graph not found)", "graph", None, None, "user")
    traces = [trace for trace in facts.traces.values() if trace.function == function.id]
    mine = runs.get(function.id, _NO_RUNS)
    # Runs that C++ starts are not seen: a function without any run of Python's may still have run a thousand times.
    seen = function.kind == "tf.function" and mine.number > 0
    marks = _marks(findings, set(), function)
    reasons = [_reason(trace) for trace in traces if trace.reason]
    failed = [trace for trace in traces if trace.error]
    if failed:
        marks.insert(0, ("error", f"tracing failed {_times(len(failed))}: {failed[-1].error}"))
    if reasons:
        marks.append(("warning", f"traced {_times(len(traces))}. {'. '.join(reasons[-3:])}"))
    return {
        "key": f"f{function.id}",
        "parent": None,
        "level": 0,
        "type": "function",
        "name": short_name(function.name),
        "title": function.name,
        "kind": {"tf.function": "", "eager": "", "graph": "v1 graph"}.get(function.kind, function.kind),
        "function": function.id,
        "nodes": [node for group in nodes for node in facts.groups[group]],
        "call_kind": None,
        "traced": len(traces) if function.kind in ("tf.function", "tf.data") else None,
        "runs": mine.number if seen else None,
        "calls": None,
        "errors": mine.errors if mine.number else None,
        "mean_ns": float(mine.durations.mean()) if len(mine.durations) else None,
        "p95_ns": p95(mine.durations),
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
    key: int,
    facts: Facts,
    columns: Columns,
    dropped: dict[tuple[int, str], tuple[int, int]],
    everything: float,
    findings: Sequence[Finding] | None,
) -> Iterable[Json]:
    node = facts.nodes[key]
    group = facts.groups[key]
    mine = np.isin(columns.node, group) if len(group) > 1 else columns.node == key
    gradient = columns.kind == GRADIENT
    for kind, mask in (("forward", mine & ~gradient), ("gradient", mine & gradient)):
        lost = [dropped.get((i, kind), (0, 0)) for i in group]
        count = int(mask.sum())
        lost_calls = sum(calls for calls, _ in lost)
        if kind == "gradient" and not count and not lost_calls:
            continue
        numbers = _numbers(mask, columns, everything)
        marks = _marks(findings, set(group), None) if kind == "forward" else []
        if numbers["errors"]:
            newest = columns.id[np.flatnonzero(mask & (columns.status == ERROR))[-1]]
            marks.insert(0, ("error", _failures(connection, int(newest), numbers["errors"], count)))
        if lost_calls:
            marks.append(("note", f"{lost_calls:,} more calls ran: the budget left no room to store them"))
        if kind == "forward" and not count and not lost_calls:
            marks.append(("note", "built into a graph; no calls recorded"))
        yield {
            "key": f"n{key}" + ("g" if kind == "gradient" else ""),
            "parent": f"f{node.function if node.function is not None else -1}" if kind == "forward" else f"n{key}",
            "level": 1 if kind == "forward" else 2,
            "type": "node",
            "name": facts.label(key) if kind == "forward" else "gradient",
            "title": f"{node.body} ({node.kind}{', op ' + node.name if node.name else ''})",
            "kind": facts.kind(key) if kind == "forward" else "",
            "function": node.function,
            "nodes": group,
            "call_kind": kind,
            "traced": None,
            "runs": None,
            "calls": count + lost_calls,
            "stored": count,
            **numbers,
            "errors": numbers["errors"] + sum(errors for _, errors in lost),
            "file": node.file,
            "line": node.line,
            "place": facts.source_line(node.file, node.line),
            "site": facts.source_line(node.stack[-1].file, node.stack[-1].line) if node.stack else None,
            "origin": node.origin,
            **_severity(marks),
        }


def _numbers(mask: Array, columns: Columns, everything: float) -> Json:
    duration = columns.duration[mask]
    ended = duration[duration >= 0]
    wait, held, released = (column[mask] for column in (columns.wait, columns.held, columns.released))
    total = float(ended.sum() + np.nansum(wait))
    measured = bool(len(wait)) and not bool(np.isnan(wait).all())
    return {
        "errors": int((columns.status[mask] == ERROR).sum()),
        "mean_ns": float(ended.mean()) if len(ended) else None,
        "p95_ns": p95(ended),
        "max_ns": int(ended.max()) if len(ended) else None,
        "total_ns": total,
        "share": total / everything if everything else None,
        "parts": _parts(wait, held, released, float(ended.sum())) if measured else None,
    }


def p95(durations: Array) -> float | None:
    """The smallest duration that 95 % do not exceed, as in the ledger of the terminal."""
    if not len(durations):
        return None
    index = max(0, -(-len(durations) * 95 // 100) - 1)
    return float(np.partition(durations, index)[index])


def _parts(wait: Array, held: Array, released: Array, body: float) -> Json:
    split = not np.isnan(held).all()
    return {
        "wait_ns": float(np.nansum(wait)),
        "held_ns": float(np.nansum(held)) if split else None,
        "released_ns": float(np.nansum(released)) if split else None,
        "body_ns": body,
    }


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


def _marks(findings: Sequence[Finding] | None, nodes: set[int], function: Function | None) -> list[tuple[str, str]]:
    result: list[tuple[str, str]] = []
    for finding in findings or ():
        here = (
            finding.node in nodes or not nodes.isdisjoint(finding.nodes)
            if finding.node is not None
            else (function is not None and finding.file == function.file and finding.line == function.line)
        )
        if here:
            result.append((finding.severity, f"{finding.rule}: {finding.message}"))
    return result


def _severity(marks: Sequence[tuple[str, str]]) -> Json:
    marks = sorted(marks, key=lambda mark: _RANK.get(mark[0], 3))
    return {"severity": marks[0][0] if marks else None, "why": [text for _, text in marks]}


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
