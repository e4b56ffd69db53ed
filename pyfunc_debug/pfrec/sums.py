"""Sums over the calls of a recording, in one pass that checks what it reads: for the ledger of many recordings."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.pfrec.checks import DamagedError, is_number, words

_TOGETHER = 10_000
"""Calls a query: SQLite sorts them by what they are grouped by, and more would not stay in its cache."""
_QUERY = (
    "SELECT node, kind, status, count(*), count(end_ns), coalesce(sum(max(end_ns - start_ns, 0)), 0), "
    "coalesce(max(end_ns - start_ns), 0), count(wait_ns), sum(wait_ns), sum(held_ns), sum(released_ns), "
    "sum(reacquire_ns), max(start_ns), max(end_ns) "
    "FROM call NOT INDEXED LEFT JOIN gil ON gil.call = call.id WHERE call.id > ? AND call.id <= ? "
    "GROUP BY node, kind, status"
)


@dataclass(slots=True)
class CallSum:
    """Stored calls of one node and kind. `total_ns` and `max_ns` are of the `ended` ones, with their time at stops.

    `gil`: how long they waited for the GIL, held it, let go of it and waited for it again; None: not measured in any.
    """

    calls: int = 0
    errors: int = 0
    running: int = 0
    ended: int = 0
    total_ns: int = 0
    max_ns: int = 0
    measured: int = 0
    gil: tuple[int | None, ...] = (None, None, None, None)


def read_sums(cursor: sqlite3.Cursor) -> dict[tuple[int, str], CallSum]:
    """Sums by node and kind.

    What is grouped by is compared with the schema by its few groups, and the times by their sums and maxima: SQLite's
    sum is an integer only of integers, and a text or blob is larger than any number.

    Raises:
      DamagedError: a row holds what no recording does.
      sqlite3.Error: the file is damaged.
    """
    found: dict[tuple[int, str], CallSum] = {}
    for node, kind, status, calls, ended, *times in _groups(cursor):
        if kind not in words("call", "kind") or status not in words("call", "status"):
            raise DamagedError("its table call holds what no recording has")
        if not all(one is None or is_number(one) for one in times):
            raise DamagedError("the times in its tables call and gil are not what a recording has")
        total, longest, measured, *gil, _, _ = times
        row = found.setdefault((node, kind), CallSum())
        row.calls += calls
        row.errors += calls if status == "error" else 0
        row.running += calls if status == "running" else 0
        row.ended += ended
        row.total_ns += total
        row.max_ns = max(row.max_ns, longest)
        row.measured += measured
        row.gil = tuple(one if more is None else more + (one or 0) for one, more in zip(row.gil, gil, strict=True))
    nodes = {node for (node,) in cursor.execute("SELECT id FROM node")}  # last: a growing file gets nodes before calls
    if not {node for node, _ in found} <= nodes:
        raise DamagedError("its table call names a node that is not there")
    return found


def read_running(cursor: sqlite3.Cursor) -> dict[tuple[int, str], int]:
    """How many calls have not ended, by node and kind.

    Raises:
      DamagedError: a row holds what no recording does.
      sqlite3.Error: the file is damaged.
    """
    query = "SELECT node, kind, count(*) FROM call NOT INDEXED WHERE status = 'running' GROUP BY node, kind"
    found = {(node, kind): calls for node, kind, calls in cursor.execute(query)}
    if not all(kind in words("call", "kind") for _, kind in found):
        raise DamagedError("its table call holds what no recording has")
    return found


def summary_is_whole(db: sqlite3.Connection) -> bool:
    """Whether the table `summary` is there and has all calls that ended and all that were measured."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'summary'").fetchall():
        return False
    calls, measured = db.execute("SELECT coalesce(sum(calls), 0), coalesce(sum(measured), 0) FROM summary").fetchone()
    ended = db.execute("SELECT count(*) FROM call NOT INDEXED WHERE status <> 'running'").fetchone()[0]
    return bool((calls, measured) == (ended, db.execute("SELECT count(*) FROM gil").fetchone()[0]))


def add_to_summary(db: sqlite3.Connection, node: int, kind: str, ns: int, failed: bool) -> None:
    """Adds a call that ended to the table `summary`."""
    db.execute(
        "INSERT INTO summary VALUES (?1, ?2, 1, ?3, ?4, ?4, 0, NULL, NULL, NULL, NULL) ON CONFLICT (node, kind) "
        "DO UPDATE SET calls = calls + 1, errors = errors + ?3, total_ns = total_ns + ?4, max_ns = max(max_ns, ?4)",
        (node, kind, int(failed), max(ns, 0)),
    )


def _groups(cursor: sqlite3.Cursor) -> Iterator[Sequence[Any]]:
    last = cursor.execute("SELECT min(id) - 1 FROM call").fetchone()[0]
    while last is not None:
        until = cursor.execute(
            "SELECT max(id) FROM (SELECT id FROM call WHERE id > ? ORDER BY id LIMIT ?)", (last, _TOGETHER)
        ).fetchone()[0]
        if until is not None:
            yield from cursor.execute(_QUERY, (last, until)).fetchall()
        last = until
