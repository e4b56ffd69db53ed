"""Runs of tf.functions that Python started, by function. The time in which a call was held at a stop does not count."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from pyfunc_debug.analysis.columns import Array
from pyfunc_debug.pfrec.stopped import QUERY, covered_ns, stops_of

_CHUNK = 50_000


class Runs(NamedTuple):
    """Runs of a function that Python started: durations of the finished forward ones in ns, and how many of each."""

    durations: Array
    forward: int
    backward: int
    errors: int


NO_RUNS = Runs(np.empty(0, np.int64), 0, 0, 0)


def read_runs(connection: sqlite3.Connection) -> dict[int, Runs]:
    """Runs by function."""
    # One text a chunk, as in columns.py: rows as Python objects would take the GIL from the recorded program.
    newest = connection.execute("SELECT max(id) FROM run").fetchone()[0] or 0
    tables = [np.empty((0, 5), np.int64)]
    for low in range(0, newest + 1, _CHUNK):
        (text,) = connection.execute(
            "SELECT group_concat(coalesce(run.function,trace.function,-1)||','||ifnull(run.duration_ns,-1)||','||"
            "(run.kind = 'forward')||','||(run.error IS NOT NULL)||','||run.id)"
            " FROM run LEFT JOIN trace ON trace.id = run.trace"
            " WHERE run.id >= ? AND run.id < ?",
            (low, low + _CHUNK),
        ).fetchone()
        if text:
            tables.append(np.fromstring(text, np.int64, sep=",").reshape(-1, 5))
    table = np.concatenate(tables)
    for run, ns in _held_in_runs(connection).items():
        rows = (table[:, 4] == run) & (table[:, 1] >= 0)
        table[rows, 1] = np.maximum(table[rows, 1] - ns, 0)
    result = {}
    for function in np.unique(table[:, 0]).tolist():
        own = table[table[:, 0] == function]
        forward = own[own[:, 2] == 1]
        finished = forward[forward[:, 1] >= 0, 1]
        result[function] = Runs(finished, len(forward), len(own) - len(forward), int(own[:, 3].sum()))
    result.pop(-1, None)
    return result


def _held_in_runs(connection: sqlite3.Connection) -> dict[int, int]:
    """For how many ns runs stood still because calls of theirs were held at stops."""
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    stops = [stop for stop in stops_of(connection.execute(f"{QUERY} ORDER BY id")) if not stop.open]
    for stop in stops:
        run, runs = connection.execute("SELECT run, runs FROM call WHERE id = ?", (stop.call,)).fetchone() or (
            None,
            None,
        )
        for one in [run] if run is not None else json.loads(runs or "[]"):
            spans[one] += [(asked, until) for asked, _, until in stop.spans if until is not None]
    return {run: covered_ns(own) for run, own in spans.items()}
