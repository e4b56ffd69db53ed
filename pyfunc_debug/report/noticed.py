"""What was noticed at a call: stops, hits that nobody answered, what logpoints logged and kept; numbers over calls."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import Array, Columns
from pyfunc_debug.events import Notice
from pyfunc_debug.report.looks import evenly

Json = dict[str, Any]
_MOST = 20


def notices(connection: sqlite3.Connection, columns: Columns, call: int) -> list[Json]:
    """What was noticed at a call, the first of it: `rule` and `facts`."""
    found = _read(connection, _numbers(connection, columns, [call]))
    return [{"rule": rule, "facts": facts} for _, rule, facts in found]


def logged(connection: sqlite3.Connection, columns: Columns, ids: Array) -> dict[str, Json]:
    """Numbers that logpoints logged, over the calls of a node.

    Args:
      connection: The recording, open for reading.
      columns: Its calls.
      ids: The calls of the node, in their order.

    Returns:
      By place and expression (`logged:before:x.max()`): `ids` of calls and `values`, one a call, the last.
    """
    calls, _ = _table(connection, columns)
    picked = evenly(ids[np.isin(ids, calls)]) if len(calls) else []
    last: dict[str, dict[int, float]] = {}
    for call, rule, facts in _read(connection, _numbers(connection, columns, picked)):
        if rule == Notice.LOGGED:
            for name, number in facts.get("numbers", {}).items():
                if isinstance(number, (int, float)) and np.isfinite(number):
                    last.setdefault(f"logged:{facts.get('at')}:{name}", {})[call] = float(number)
    return {key: {"ids": [*one], "values": [*one.values()]} for key, one in last.items() if len(one) > 2}


def _table(connection: sqlite3.Connection, columns: Columns) -> tuple[Array, Array]:
    """Calls and numbers of all notices that belong to a call, by call: the file has no index of them."""
    newest = connection.execute("SELECT max(id) FROM notice").fetchone()[0]

    def read() -> tuple[Array, Array]:
        rows = connection.execute("SELECT call, id FROM notice WHERE call IS NOT NULL ORDER BY call, id").fetchall()
        pairs = np.array(rows, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    return columns.cached(("notices", newest), read)


def _numbers(connection: sqlite3.Connection, columns: Columns, wanted: Sequence[int]) -> list[int]:
    """Numbers of the notices of calls, a few of each."""
    calls, numbers = _table(connection, columns)
    found: list[int] = []
    for call in wanted:
        first, end = np.searchsorted(calls, [call, call + 1])
        found += numbers[first : min(end, first + _MOST)].tolist()
    return found


def _read(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[tuple[int, str, Json]]:
    if not numbers:
        return []
    chosen = ",".join(map(str, numbers))
    rows = connection.execute(f"SELECT call, rule, facts FROM notice WHERE id IN ({chosen}) ORDER BY id")
    return [(call, Notice.read(rule), json.loads(text)) for call, rule, text in rows]
