"""What the timeline draws for one stretch of time: single calls while they are few, sums a column when they are many.

Answers hold NumPy arrays, sent as binary buffers; times are float64 ns since the recording's origin.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import ERROR, GRADIENT, INTERRUPTED, RUNNING, Array, Columns
from pyfunc_debug.analysis.facts import ProgramFacts
from pyfunc_debug.analysis.tables import function_name
from pyfunc_debug.report.folds import Folds, folded

Json = dict[str, Any]
MAX_CALLS = 6000
_MOST_TRACES = 500
MAX_RUNS = 3000
MAX_MARKS = 400
PARTS = ("held", "gradient", "released", "wait")


def extent(connection: sqlite3.Connection, facts: ProgramFacts, columns: Columns) -> tuple[int, int]:
    """First and last time of the recording, in ns since its origin."""
    row = connection.execute(
        "SELECT min(start_ns), max(start_ns + ifnull(duration_ns, 0)) FROM"
        " (SELECT start_ns, duration_ns FROM run UNION ALL SELECT start_ns, duration_ns FROM trace)"
    ).fetchone()
    origin = columns.origin_ns
    ends = [columns.last_ns]
    starts = [int(columns.begin.min())] if len(columns) else []
    if row[0] is not None:
        starts.append(row[0] - origin)
        ends.append(row[1] - origin)
    end_ns = facts.meta.get("end_ns")
    if isinstance(end_ns, int):
        ends.append(end_ns - origin)
    first, last = min([0, *starts]), max([1, *ends])
    still = [(stop.spans[-1][1] or stop.spans[-1][0]) - origin for stop in columns.stops if stop.open]
    if still:  # room to see that it goes on
        last = max(last, *(since + max(1_000_000, (since - first) // 12) for since in still))
    return first, last


def viewport(
    connection: sqlite3.Connection, facts: ProgramFacts, columns: Columns, start_ns: float, end_ns: float, width: int,
    folds: Folds | None = None,
) -> tuple[Json, dict[str, Array]]:  # fmt: skip
    """What is to be seen between two times.

    Args:
      connection: The recording, open for reading.
      facts: Its small tables.
      columns: Its calls.
      start_ns: Left edge, ns since the origin.
      end_ns: Right edge.
      width: How many columns to sum into when there are too many calls to draw each.
      folds: What the axis leaves out: columns are of the folded axis.

    Returns:
      The answer, and its arrays. `mode` is `calls` (arrays `id`, `node`, `thread`, `flags`, `start`, `end`, `wait`,
      `held`, `released`, `reacquire`) or `bins` (array `bins`: thread x part x column, 0..1).
    """
    start, end = int(start_ns), int(max(end_ns, start_ns + 1))
    width = int(min(max(width, 16), 4096))
    positions = columns.between(start, end)
    answer: Json = {"start_ns": start, "end_ns": end, "calls": len(positions), "measured": columns.measured}
    answer["traces"] = traces(facts, columns.origin_ns, start, end)[:_MOST_TRACES]
    arrays = _runs(connection, columns.origin_ns, start, end, width)
    answer["runs_merged"] = bool(arrays.pop("merged")[0])
    if len(positions) <= MAX_CALLS:
        answer["mode"] = "calls"
        arrays.update(single(columns, positions))
    else:
        answer["mode"] = "bins"
        answer["threads"] = np.unique(columns.thread[positions]).tolist()
        answer["width"] = width
        arrays["bins"] = binned(columns, positions, answer["threads"], start, end, width, folds)
        marks = positions[columns.status[positions] == ERROR]
        answer["marks_hidden"] = max(0, len(marks) - MAX_MARKS)
        marks = marks[:: max(1, -(-len(marks) // MAX_MARKS))]
        arrays.update({f"mark_{name}": array for name, array in single(columns, marks).items()})
    return answer, arrays


def single(columns: Columns, positions: Array) -> dict[str, Array]:
    """Calls one by one; `end` is NaN while one runs; flags: 1 gradient, 2 error, 4 running, 8 interrupted."""
    flags = (
        (columns.kind[positions] == GRADIENT) * 1
        + (columns.status[positions] == ERROR) * 2
        + (columns.end[positions] < 0) * 4
        + (columns.status[positions] == INTERRUPTED) * 8
    )
    end = columns.end[positions].astype(np.float64)
    end[end < 0] = np.nan
    return {
        "id": columns.id[positions].astype(np.float64),
        "node": columns.node[positions],
        "thread": columns.thread[positions],
        "flags": flags.astype(np.uint8),
        "start": columns.start[positions].astype(np.float64),
        "end": end,
        "stopped": columns.stopped[positions].astype(np.float64),
        **{name: getattr(columns, name)[positions] for name in ("wait", "held", "released", "reacquire")},
    }


def binned(
    columns: Columns, positions: Array, threads: list[int], start: int, end: int, width: int, folds: Folds | None = None
) -> Array:
    """How full each column of time is: thread x (held, gradient, released, wait) x column, 0..1.

    Waits inside a body count as waits: where in the body they were is not recorded, so they come last. A call without
    GIL numbers counts as held: it is simply the time in its body. Time at stops counts as none of them.
    """
    lane = np.searchsorted(np.asarray(threads), columns.thread[positions])
    real = columns.start[positions], np.where(columns.end[positions] < 0, end, columns.end[positions])
    begins, ends = (folded(one, folds or []) for one in real)
    first, last = folded(np.array([start, end]), folds or [])
    away = (real[1] - real[0]) - (ends - begins)
    late = np.maximum(begins, ends - np.nan_to_num(columns.reacquire[positions]).astype(np.float64))
    free = np.maximum(begins, late - np.nan_to_num(columns.released[positions]))
    turn = np.maximum(begins, free - np.maximum(columns.stopped[positions] - away, 0))
    wait = np.nan_to_num(columns.wait[positions])
    gradient = columns.kind[positions] == GRADIENT
    scale = width / (last - first)
    result = np.zeros((len(threads), len(PARTS), width), np.float32)
    everything = np.ones(len(positions), bool)
    for part, low, high, picked in (
        (0, begins, turn, ~gradient),
        (1, begins, turn, gradient),
        (2, free, late, everything),
        (3, begins - wait, begins, everything),
        (3, late, ends, everything),
    ):
        result[:, part] += _coverage(lane[picked], low[picked], high[picked], first, scale, len(threads), width)
    return np.minimum(result, 1)


def overview(columns: Columns, start: int, end: int, width: int, folds: Folds | None = None) -> Array:
    """The minimap's area: mean number of threads waiting (or running bodies, where waits were not measured)."""
    positions = np.arange(len(columns))
    if not len(positions):
        return np.zeros(width, np.float32)
    begins = columns.start.astype(np.float64)
    if columns.measured:
        low, high = begins - np.nan_to_num(columns.wait), begins
    else:
        low, high = begins, np.where(columns.end < 0, end, columns.end).astype(np.float64)
    lanes = np.zeros(len(positions), np.int64)
    low, high, edges = (folded(times, folds or []) for times in (low, high, np.array([start, end])))
    area: Array = _coverage(lanes, low, high, edges[0], width / max(1, edges[1] - edges[0]), 1, width)[0]
    return area.astype(np.float32)


def busy(columns: Columns, start: int, end: int, width: int) -> Array:
    """Mean number of threads inside bodies, a column of time."""
    if not len(columns):
        return np.zeros(width, np.float32)
    low = columns.start.astype(np.float64)
    high = np.where(columns.end < 0, end, columns.end).astype(np.float64)
    lanes = np.zeros(len(columns), np.int64)
    area: Array = _coverage(lanes, low, high, start, width / max(1, end - start), 1, width)[0]
    return area.astype(np.float32)


def _coverage(lane: Array, low: Array, high: Array, start: float, scale: float, lanes: int, width: int) -> Array:
    # Covered time up to an edge is the sum of (edge - low) over the lows before it, less the same over the highs:
    # four counts a lane instead of a loop over calls and columns.
    low = np.clip((low - start) * scale, 0, width)
    high = np.clip((high - start) * scale, 0, width)
    total = np.zeros((lanes, width + 1))
    edges = np.arange(1, width + 1)
    for values, sign in ((low, 1.0), (high, -1.0)):
        index = lane * (width + 1) + values.astype(np.int64)
        count = np.bincount(index, minlength=lanes * (width + 1)).reshape(lanes, width + 1)[:, :width].cumsum(1)
        summed = (
            np.bincount(index, values, minlength=lanes * (width + 1)).reshape(lanes, width + 1)[:, :width].cumsum(1)
        )
        total[:, 1:] += sign * (edges * count - summed)
    per_column: Array = np.diff(total, axis=1)
    return per_column


def tracing(facts: ProgramFacts, origin: int, start: int, end: int, width: int, folds: Folds | None = None) -> Array:
    """How much of each column of time a graph was being traced, 0..1; a trace inside another counts once."""
    outer = [trace for trace in facts.traces.values() if trace.parent is None]
    begin = np.array([trace.start_ns - origin for trace in outer], np.int64)
    until = begin + np.array([trace.duration_ns for trace in outer], np.int64)
    low, high, edges = (folded(one, folds or []) for one in (begin, until, np.array([start, end])))
    lane = np.zeros(len(outer), np.int64)
    covered: Array = _coverage(lane, low, high, edges[0], width / (edges[1] - edges[0]), 1, width)[0]
    return np.minimum(covered, 1)


def traces(facts: ProgramFacts, origin: int, start: int, end: int) -> list[Json]:
    """Graph traces between two times, the longest first."""
    result: list[Json] = []
    for trace in facts.traces.values():
        begin = trace.start_ns - origin
        if begin > end or begin + trace.duration_ns < start:
            continue
        function = facts.functions.get(trace.function)
        result.append(
            {
                "id": trace.id,
                "function": trace.function,
                "ordinal": trace.ordinal,
                "name": function_name(function) if function else "",
                "thread": trace.thread,
                "start_ns": begin,
                "duration_ns": trace.duration_ns,
                "reason": list(trace.reason),
                "signature": trace.signature[:400],
                "error": trace.error,
                "parent": trace.parent,
            }
        )
    return sorted(result, key=lambda trace: -int(trace["duration_ns"]))


def _runs(connection: sqlite3.Connection, origin: int, start: int, end: int, width: int) -> dict[str, Array]:
    (text,) = connection.execute(
        "SELECT group_concat(id||','||thread||','||ifnull(function,-1)||','||(kind = 'backward')||','||"
        "(error IS NOT NULL)||','||(start_ns - ?1)||','||ifnull(start_ns + duration_ns - ?1,-1)) FROM run"
        " WHERE start_ns - ?1 <= ?3 AND ifnull(start_ns + duration_ns - ?1, ?3) >= ?2",
        (origin, start, end),
    ).fetchone()
    table = np.fromstring(text or "", np.float64, sep=",").reshape(-1, 7)
    merged = len(table) > MAX_RUNS
    if merged:
        table = _merge(table, (end - start) / width, end)
    finish = table[:, 6].copy()
    finish[finish < 0] = np.nan
    return {
        "run_id": table[:, 0].copy(),
        "run_thread": table[:, 1].astype(np.int32),
        "run_function": table[:, 2].astype(np.int32),
        "run_flags": (table[:, 3] + 2 * table[:, 4]).astype(np.uint8),
        "run_start": table[:, 5].copy(),
        "run_end": finish,
        "merged": np.array([merged]),
    }


def _merge(table: Array, pixel: float, end: float) -> Array:
    """Runs closer than a pixel become one."""
    table = table[np.lexsort((table[:, 5], table[:, 1]))]
    finish = np.where(table[:, 6] < 0, end, table[:, 6])
    new = np.ones(len(table), bool)
    new[1:] = (table[1:, 1] != table[:-1, 1]) | (table[1:, 5] - finish[:-1] > pixel)
    first = np.flatnonzero(new)
    merged: Array = table[first].copy()
    merged[:, 6] = np.maximum.reduceat(finish, first)
    return merged[:: max(1, -(-len(merged) // MAX_RUNS))]


__all__ = [
    "MAX_CALLS",
    "PARTS",
    "RUNNING",
    "binned",
    "busy",
    "extent",
    "overview",
    "single",
    "traces",
    "tracing",
    "viewport",
]
