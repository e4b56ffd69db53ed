"""All calls of a recording as NumPy columns, kept up to date while the recording grows.

The panel asks for tables, lanes and sums many times a second; answering from columns costs the recorded program far
less than asking SQLite for rows. Rows come out of SQLite as one text a chunk, so the GIL is free while SQLite works.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from pyfunc_debug.pfrec.stopped import QUERY, Stop, held_ns, stops_of, without

Array = np.ndarray[Any, Any]
_Made = TypeVar("_Made")

OK, ERROR, RUNNING, INTERRUPTED = 0, 1, 2, 3
FORWARD, GRADIENT = 0, 1

_DTYPES: dict[str, type] = {
    "id": np.int64,
    "node": np.int32,
    "thread": np.int32,
    "kind": np.uint8,
    "status": np.uint8,
    "start": np.int64,
    "end": np.int64,
    "cpu": np.int64,
}
_GIL = ("wait", "held", "released", "reacquire")
GRADES = ("none", "bound", "op-start", "native")
"""What the numbers of the column `grade` stand for; 0 also of calls without GIL numbers."""
_GRADE = "(CASE grade WHEN 'bound' THEN 1 WHEN 'op-start' THEN 2 WHEN 'native' THEN 3 ELSE 0 END)"
_ROW = (
    "id||','||node||','||thread||','||(kind='gradient')||','||"
    "(CASE status WHEN 'ok' THEN 0 WHEN 'error' THEN 1 ELSE 2 END)"
    "||','||(start_ns-{origin})||','||ifnull(end_ns-{origin},-1)"
    "||','||ifnull(cpu_ns,-1)"
)
_CHUNK = 20_000
# Calls get their numbers when they begin and their rows when they end: the newest numbers are read again each time.
_TAIL = 1024
_MAX_PENDING = 2000
_MAX_KEPT = 16


class Columns:
    """Calls in the order of their ids; times in ns since `origin_ns`. Not safe for use by two threads.

    `end` is -1 while a call runs, `cpu` is -1 where it is not known. `wait`, `held`, `released` and `reacquire` are
    float32 ns, NaN where not measured; `grade` is an index into `GRADES`. Time at stops is in none of them, nor in
    `duration`: `stopped` has it. A call that a person ended at a stop is `INTERRUPTED`, which is not an error.

    Attributes:
      stops: Calls that were held at breakpoints.
    """

    def __init__(self, origin_ns: int) -> None:
        self.origin_ns = origin_ns
        self.revision = 0
        self._columns: dict[str, Array] = {name: np.empty(0, dtype) for name, dtype in _DTYPES.items()}
        self._gil: dict[str, Array] = _no_gil(0)
        self._pending: set[int] = set()
        self._gil_until = 0
        self._measured = False
        self.stops: list[Stop] = []
        self._derived: dict[str, Array] = {}
        self._kept: dict[tuple[Any, ...], Any] = {}

    def __len__(self) -> int:
        return len(self._columns["id"])

    def __getattr__(self, name: str) -> Array:
        columns: dict[str, Array] = self.__dict__.get("_columns", {})
        if name == "status" and self.__dict__.get("stops"):
            return self._status()
        if name in columns:
            return columns[name]
        gil: dict[str, Array] = self.__dict__.get("_gil", {})
        if name in gil:
            return gil[name]
        raise AttributeError(name)

    @property
    def grades(self) -> list[str]:
        """Grades of the GIL numbers, the best first; empty without any."""
        if "grades" not in self._derived:
            self._derived["grades"] = np.unique(self.grade)[::-1]
        return [GRADES[i] for i in self._derived["grades"] if i]

    @property
    def measured(self) -> bool:
        """Whether any call has GIL numbers."""
        return self._measured

    @property
    def split(self) -> bool:
        """Whether it is known for any call how long it held the GIL."""
        if "split" not in self._derived:
            self._derived["split"] = np.array(not np.isnan(self.held).all())
        return bool(self._derived["split"])

    @property
    def duration(self) -> Array:
        """Time in the body in ns, without that at stops; -1 while it runs."""
        if "duration" not in self._derived:
            took = np.maximum(self.end - self.start - self.stopped, 0)
            self._derived["duration"] = np.where(self.end < 0, -1, took)
        return self._derived["duration"]

    @property
    def stopped(self) -> Array:
        """For how many ns each call was held at stops."""
        if "stopped" not in self._derived:
            stopped = np.zeros(len(self), np.int64)
            for call, ns in held_ns(self.stops).items():
                position = self.find(call)
                if position is not None:
                    stopped[position] = ns
            self._derived["stopped"] = stopped
        return self._derived["stopped"]

    def _status(self) -> Array:
        if "status" not in self._derived:
            status = self._columns["status"].copy()
            for stop in self.stops:
                position = self.find(stop.call)
                if stop.interrupted and position is not None and status[position] == ERROR:
                    status[position] = INTERRUPTED
            self._derived["status"] = status
        return self._derived["status"]

    @property
    def begin(self) -> Array:
        """When the call was ready to run: its start, less what it waited for the GIL."""
        if "begin" not in self._derived:
            self._derived["begin"] = self.start - np.nan_to_num(self.wait).astype(np.int64)
        return self._derived["begin"]

    def cached(self, key: tuple[Any, ...], make: Callable[[], _Made]) -> _Made:
        """What `make` returns, kept until something changes: tables are read page by page.

        Args:
          key: Names what is made; the last few are kept.
          make: Computes it.
        """
        kept: _Made = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = kept
        while len(self._kept) > _MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept

    @property
    def last_ns(self) -> int:
        """The latest time seen."""
        if not len(self):
            return 0
        return int(max(self.start.max(), self.end.max()))

    def find(self, call: int) -> int | None:
        """Position of a call by its id."""
        position = int(np.searchsorted(self.id, call))
        return position if position < len(self) and self.id[position] == call else None

    def between(self, start_ns: int, end_ns: int) -> Array:
        """Positions of the calls that touch this stretch of time."""
        if not len(self):
            return np.empty(0, np.int64)
        if "reach" not in self._derived:
            open_end = np.where(self.end < 0, np.iinfo(np.int64).max, self.end)
            self._derived["reach"] = np.maximum.accumulate(open_end)
            self._derived["front"] = np.minimum.accumulate(self.begin[::-1])[::-1]
        low = int(np.searchsorted(self._derived["reach"], start_ns, "left"))
        high = int(np.searchsorted(self._derived["front"], end_ns, "right"))
        positions = np.arange(low, max(low, high))
        end = self.end[low:high]
        keep = (self.begin[low:high] <= end_ns) & ((end < 0) | (end >= start_ns))
        return positions[keep]

    def refresh(self, connection: sqlite3.Connection, *, final: bool = False) -> bool:
        """Reads what is new.

        Args:
          connection: An open recording.
          final: The recording has ended: read everything that may have been missed while it grew.

        Returns:
          Whether anything changed.
        """
        if final:
            self._columns = {name: column[:0] for name, column in self._columns.items()}
            self._pending.clear()
        ids = self.id
        newest = int(ids[-1]) if len(ids) else 0
        low = max(0, newest - _TAIL)
        keep = int(np.searchsorted(ids, low, "right"))
        rows = self._read(connection, f"id > {low}")
        late = np.empty((0, len(_DTYPES)), np.int64)
        if self._pending:
            late = self._read(connection, f"id IN ({','.join(map(str, sorted(self._pending)))})")
        old_tail = [self._columns[name][keep:] for name in _DTYPES]
        changed = (
            bool(len(late))
            or len(rows) != len(old_tail[0])
            or any(not np.array_equal(rows[:, i], tail) for i, tail in enumerate(old_tail))
        )
        if changed or final:
            self._merge(keep, rows, late)
            self.revision += 1
            self._forget()
        held = self._read_stops(connection)
        if (self._read_gil(connection, final=final) or held) and not changed:
            self.revision += 1
            self._forget()
            changed = True
        return changed

    def _read_stops(self, connection: sqlite3.Connection) -> bool:
        before, self.stops = self.stops, stops_of(connection.execute(f"{QUERY} ORDER BY id"))
        if self.stops == before:
            return False
        self._gil_until = 0  # what is known of held calls has changed
        self._forget()
        return True

    def _forget(self) -> None:
        self._derived.clear()
        self._kept.clear()

    def _merge(self, keep: int, rows: Array, late: Array) -> None:
        before = self._columns
        merged: dict[str, Array] = {}
        for i, (name, dtype) in enumerate(_DTYPES.items()):
            merged[name] = np.concatenate([before[name][:keep], rows[:, i].astype(dtype)])
        if len(late):
            fresh: dict[str, Array] = {
                name: late[:, i].astype(dtype) for i, (name, dtype) in enumerate(_DTYPES.items())
            }
            stay = ~np.isin(merged["id"], fresh["id"])
            order = np.argsort(np.concatenate([merged["id"][stay], fresh["id"]]), kind="stable")
            merged = {name: np.concatenate([merged[name][stay], fresh[name]])[order] for name in merged}
            self._gil_until = 0
            self._gil = {name: column[:0] for name, column in self._gil.items()}
        self._columns = merged
        ids = merged["id"]
        missing: set[int] = set(ids[merged["end"] < 0][-_MAX_PENDING:].tolist())
        recent = ids[-8 * _TAIL :]
        if len(recent):
            first = 1 if len(recent) == len(ids) else int(recent[0])
            missing.update(np.setdiff1d(np.arange(first, recent[-1]), recent)[-_MAX_PENDING:].tolist())
        # A call that was missing long ago and whose row never came was dropped by the budget.
        missing.update(sorted(self._pending - set(late[:, 0].tolist()))[-_MAX_PENDING:])
        self._pending = set(sorted(missing)[-_MAX_PENDING:])

    def _read(self, connection: sqlite3.Connection, where: str) -> Array:
        row = _ROW.format(origin=self.origin_ns)
        chunks = []
        first = connection.execute(f"SELECT min(id), max(id) FROM call WHERE {where}").fetchone()
        if first[0] is None:
            return np.empty((0, len(_DTYPES)), np.int64)
        for low in range(first[0], first[1] + 1, _CHUNK):
            sql = f"SELECT group_concat({row}) FROM call WHERE {where} AND id BETWEEN {low} AND {low + _CHUNK - 1}"
            text = connection.execute(sql).fetchone()[0]
            if text:
                chunks.append(np.fromstring(text, np.int64, sep=",").reshape(-1, len(_DTYPES)))
        found = np.concatenate(chunks) if chunks else np.empty((0, len(_DTYPES)), np.int64)
        return found[np.argsort(found[:, 0], kind="stable")]

    def _read_gil(self, connection: sqlite3.Connection, *, final: bool) -> bool:
        count = len(self)
        if final:
            self._gil_until = 0
            self._gil = _no_gil(count)
            self._measured = False
        elif len(self._gil["wait"]) != count:
            # Positions move when late calls come in: look the numbers up again from where the order may have changed.
            more = _no_gil(max(0, count - len(self._gil["wait"])))
            self._gil = {name: np.concatenate([column[:count], more[name]]) for name, column in self._gil.items()}
        low = max(0, self._gil_until - 8 * _TAIL)
        newest = connection.execute("SELECT max(call) FROM gil").fetchone()[0]
        if newest is None:
            return False
        fields = "||','||".join([*(f"ifnull({name}_ns,-1)" for name in _GIL), _GRADE])
        seen = self._gil_until
        for start in range(low, newest + 1, _CHUNK):
            sql = f"SELECT group_concat(call||','||{fields}) FROM gil WHERE call > {start} AND call <= {start + _CHUNK}"
            text = connection.execute(sql).fetchone()[0]
            if not text:
                continue
            table = np.fromstring(text, np.int64, sep=",").reshape(-1, 2 + len(_GIL))
            positions = np.searchsorted(self.id, table[:, 0])
            known = (
                (positions < count) & (self.id[np.minimum(positions, count - 1)] == table[:, 0])
                if count
                else np.zeros(0, bool)
            )
            if not count:
                continue
            self._measured = self._measured or bool(known.any())
            self._take_stops_off(table)
            for i, name in enumerate(_GIL):
                numbers = table[known, i + 1].astype(np.float32)
                self._gil[name][positions[known]] = np.where(numbers < 0, np.nan, numbers)
            self._gil["grade"][positions[known]] = table[known, -1].astype(np.uint8)
        self._gil_until = newest
        self._forget()
        return bool(newest != seen)

    def _take_stops_off(self, table: Array) -> None:
        """From rows of GIL numbers; before they become float32, which cannot hold a stop's seconds and a call's us."""
        held = held_ns(self.stops)
        for row in table[np.isin(table[:, 0], list(held))] if held else ():
            parts = [None if ns < 0 else int(ns) for ns in row[2:5]]
            less = without(held[int(row[0])], *parts)
            table[table[:, 0] == row[0], 2:5] = [-1 if ns is None else ns for ns in less]


def _no_gil(count: int) -> dict[str, Array]:
    return {**{name: np.full(count, np.nan, np.float32) for name in _GIL}, "grade": np.zeros(count, np.uint8)}
