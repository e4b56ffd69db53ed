"""A recording whose program died: what only the ring beside it knows is put into the file, once.

The calls that had ended but were not stored yet, without their outputs and the texts of their exceptions; those that
were in progress; and a summary of the inputs of the newest. Meta `death` says so.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from pyfunc_debug.pfrec.database import connect
from pyfunc_debug.pfrec.losses import Loss
from pyfunc_debug.pfrec.processes import writer_lives
from pyfunc_debug.pfrec.ring import Brief, RingCall, RingReader, is_held, is_ring, place_of
from pyfunc_debug.pfrec.schema import NEW
from pyfunc_debug.pfrec.sums import add_to_summary, summary_is_whole

_BUSY_S = 2.0
_TOGETHER = 1000
_NOTE = "the program died before all of it was stored"


def recover(path: str, meta: Mapping[str, Any]) -> bool:
    """Completes a recording whose program died, if it has a ring and can be written to.

    Args:
      path: The recording.
      meta: Its table `meta`, decoded.

    Returns:
      Whether the file was completed now.
    """
    if meta.get("state") != "recording" or writer_lives(path, meta):
        return False
    with contextlib.suppress(OSError):
        if os.path.samefile(path, path + NEW):  # it was killed as it gave the file its name
            os.unlink(path + NEW)
    ring_path = place_of(path, meta)
    try:
        ring = RingReader(ring_path)
    except (OSError, ValueError):
        if is_ring(ring_path, begun=False):
            with contextlib.suppress(OSError):
                os.unlink(ring_path)
        return False
    try:
        done = _complete(path, ring, meta)
    except (sqlite3.Error, LookupError, TypeError, ValueError, OverflowError, AttributeError):
        return False  # it cannot be written to, another reader is at it, or the ring's lines are not ours
    if done:
        with contextlib.suppress(OSError):
            os.unlink(ring_path)
    return done


def tidy(path: str, meta: Mapping[str, Any]) -> None:
    """Removes the ring of a recording that is complete, if it was killed just before it did so.

    Args:
      path: The recording.
      meta: Its table `meta`, decoded, which does not say `recording`.
    """
    ring = place_of(path, meta)
    with contextlib.suppress(OSError):
        if is_ring(ring) and not is_held(ring):  # else another is being recorded under its name
            os.unlink(ring)


def missing_parts(path: str, meta: Mapping[str, Any]) -> list[str]:
    """What stood beside a recording whose program died, and does not now: names of files.

    Args:
      path: The recording.
      meta: Its table `meta`, decoded, after `recover`.
    """
    ring = place_of(path, meta)
    process = meta.get("process")
    made = isinstance(process, dict) and process.get("lock") is not None  # the file says before where it will be
    if meta.get("state") != "recording" or meta.get("ring") is None or not made or os.path.exists(ring):
        return []
    try:
        parts = [ring] if os.path.getsize(path + "-wal") else [path + "-wal", ring]  # SQLite makes an empty one to read
    except OSError:
        parts = [path + "-wal", ring]
    return [os.path.basename(part) for part in parts]


def missing_text(parts: Sequence[str]) -> str:
    """What is said of `missing_parts`, where there are any."""
    return f"{' and '.join(parts)} did not come with it: calls that only stood there are missing"


def _complete(path: str, ring: RingReader, meta: Mapping[str, Any]) -> bool:
    db = connect(os.fsencode(path), isolation_level=None, timeout=_BUSY_S)
    try:
        if str(db.execute("PRAGMA journal_mode").fetchone()[0]) == "wal":
            db.execute("PRAGMA synchronous = NORMAL")  # the disk is waited for when the log is folded into the file
        db.execute("BEGIN IMMEDIATE")
        try:
            now = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('state', 'process')"))
            if not now or any(json.loads(value) != meta.get(key) for key, value in now.items()):
                db.execute("ROLLBACK")  # somebody was quicker, or another recording has its name
                return False
            _Rows(db, ring).write()
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        with contextlib.suppress(sqlite3.Error):  # a reader is in the way: then the log stays, and both are valid
            db.execute("PRAGMA busy_timeout = 0")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute("PRAGMA synchronous = OFF")  # two bytes change in one page: either way a valid file
            db.execute("PRAGMA journal_mode = DELETE")
        return True
    finally:
        db.close()


class _Rows:
    def __init__(self, db: sqlite3.Connection, ring: RingReader) -> None:
        self._db = db
        self._ring = ring
        self._threads = {native: number for number, native in db.execute("SELECT id, native_id FROM thread")}
        self._nodes: dict[str, int] = dict(db.execute("SELECT token, id FROM node WHERE token IS NOT NULL"))
        self._found: dict[str, tuple[int, str]] = {}

    def write(self) -> None:
        """The rows of all calls that the file does not have."""
        db = self._db
        stored = {number for (number,) in db.execute("SELECT id FROM trace")}
        for number, facts in sorted(self._ring.traces.items()):
            if number not in stored:
                self._trace(number, facts)
        given, running = 0, []
        found: list[tuple[int, str, int]] = []
        summed = summary_is_whole(db)  # else a row did not come into the file, or the recording is an older version's
        if not summed and db.execute("SELECT 1 FROM sqlite_master WHERE name = 'summary'").fetchone():
            db.execute("DELETE FROM summary")
        for call in self._ring.calls(known=self._ended(self._ring.numbers())):
            node, kind = self._node(call.token)
            status = "running" if call.end_ns is None else "error" if call.failed else "ok"
            db.execute(
                "INSERT OR REPLACE INTO call (id, node, kind, thread, start_ns, end_ns, cpu_ns, status, failure) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    call.call, node, kind, self._thread(call.thread), call.start_ns, call.end_ns,
                    None if call.cpu_ns < 0 else call.cpu_ns, status, self._failure() if call.failed else None,
                ),
            )  # fmt: skip
            if call.end_ns is None:
                running.append(call.call)
            else:
                found.append((node, kind, call.end_ns - call.start_ns))
                if summed:
                    add_to_summary(db, *found[-1], call.failed)
                given += call.inputs is not None
            self._inputs(call)
        total = db.execute("SELECT count(*) FROM call").fetchone()[0]
        dropped = self._take_back(found)
        death = {
            "sign_ns": max(self._ring.sign_ns, self._last_ns()),
            "signal": self._ring.signal,
            "tracing": self._tracing(),
            "running": running,
            "recovered": len(found),
            "given": given,
            "missing": max(0, self._ring.begun - total - dropped),
        }
        for key, value in (("state", "interrupted"), ("death", death)):
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def _tracing(self) -> list[list[Any]]:
        """Name, file and line of the user's functions that were being traced, the innermost last."""
        functions = [self._ring.shared.get(number) for _, number in sorted(self._ring.tracing.items())]
        return [
            [name, file, line]
            for name, _, file, line, internal in (one for one in functions if isinstance(one, list) and len(one) == 5)
            if not internal
        ]

    def _ended(self, calls: Sequence[int]) -> set[int]:
        """Those of these calls that the file has with their end."""
        if not calls:
            return set()
        first, last = min(calls), max(calls)
        if last - first < 2 * len(calls):  # as good as always: numbers are given in turn
            rows = self._db.execute(
                "SELECT id FROM call WHERE id BETWEEN ? AND ? AND status <> 'running'", (first, last)
            )
            return set(itertools.chain.from_iterable(rows))
        found: set[int] = set()
        for at in range(0, len(calls), _TOGETHER):
            some = ", ".join(map(str, calls[at : at + _TOGETHER]))
            rows = self._db.execute(f"SELECT id FROM call WHERE id IN ({some}) AND status <> 'running'")
            found.update(itertools.chain.from_iterable(rows))
        return found

    def _take_back(self, found: list[tuple[int, str, int]]) -> int:
        """Calls that the budget had no room for were counted as lost; the newest of them stood in the ring.

        Args:
          found: Node, kind and duration of the calls that were added.

        Returns:
          How many calls are lost now.
        """
        db = self._db
        stored = db.execute("SELECT count(*) FROM call").fetchone()[0]
        lost = int(db.execute("SELECT coalesce(sum(calls), 0) FROM dropped").fetchone()[0])
        text = db.execute("SELECT value FROM meta WHERE key = 'dropped'").fetchone()
        counts = json.loads(text[0]) if text is not None else {}
        by_reason = counts.get("reasons", {}).get("calls", {})
        most = min(stored + lost - self._ring.begun, by_reason.get(Loss.BUDGET.value, 0))
        back = 0
        for node, kind, ns in reversed(found):
            if back < most:
                back += db.execute(
                    "UPDATE dropped SET calls = calls - 1, total_ns = max(total_ns - ?, 0) "
                    "WHERE node = ? AND kind = ? AND calls > 0", (ns, node, kind),
                ).rowcount  # fmt: skip
        if back:
            counts["calls"] -= back
            by_reason[Loss.BUDGET.value] -= back
            db.execute("UPDATE meta SET value = ? WHERE key = 'dropped'", (json.dumps(counts),))
        return lost - back

    def _last_ns(self) -> int:
        found = self._db.execute("SELECT max(max(start_ns), max(coalesce(end_ns, 0))) FROM call").fetchone()[0]
        return int(found or 0)

    def _node(self, token: str) -> tuple[int, str]:
        found = self._found.get(token)
        if found is None:
            facts = self._ring.nodes.get(token, {"token": token})
            forward = facts.get("gradient_of")
            if forward is not None:
                found = self._node(str(forward))[0], "gradient"
            else:
                found = self._nodes.get(token) or self._eager(facts) or self._new_node(facts), "forward"
            self._found[token] = found
        return found

    def _eager(self, facts: Mapping[str, Any]) -> int | None:
        """Nodes of eager calls stand in the file without a token: by body and line of the call then."""
        if not str(facts["token"]).startswith("eager_"):
            return None
        for number, frames in self._db.execute(
            "SELECT node.id, stack.frames FROM node JOIN stack ON stack.id = node.stack "
            "WHERE token IS NULL AND node.kind = ? AND body = ? AND file IS ? AND line IS ?",
            (facts.get("kind"), facts.get("body"), facts.get("file"), facts.get("line")),
        ):
            if [frame[:2] for frame in json.loads(frames)] == [frame[:2] for frame in self._stack_of(facts)]:
                return int(number)
        return None

    def _stack_of(self, facts: Mapping[str, Any]) -> list[list[Any]]:
        found = self._ring.shared.get(facts.get("stack"))
        return found if isinstance(found, list) else []

    def _new_node(self, facts: Mapping[str, Any]) -> int:
        number = self._next("node")
        token = str(facts["token"])
        self._db.execute(
            "INSERT INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number, None if token.startswith("eager_") else token, facts.get("kind", "py_function"),
                facts.get("body", token), facts.get("file"), facts.get("line"), facts.get("name"), facts.get("graph"),
                self._function(facts.get("function")), self._stack(self._stack_of(facts)),
                *(json.dumps(facts.get(key, [])) for key in ("tout", "paths", "out_paths")),
                "tensorflow" if facts.get("internal") else "user",
            ),
        )  # fmt: skip
        return number

    def _next(self, table: str) -> int:
        return 1 + int(self._db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])

    def _stack(self, frames: list[list[Any]]) -> int | None:
        return self._same("stack", ("frames",), (json.dumps(frames),)) if frames else None

    def _function(self, shared: Any) -> int | None:
        facts = self._ring.shared.get(shared)
        if not isinstance(facts, list) or len(facts) != 5:
            return None
        name, kind, file, line, internal = facts
        origin = "tensorflow" if internal else "user"
        return self._same("function", ("name", "kind", "file", "line", "origin"), (name, kind, file, line, origin))

    def _same(self, table: str, columns: Sequence[str], values: Sequence[Any]) -> int:
        """The number of a row that says this, which is added where there is none."""
        where = " AND ".join(f"{column} IS ?" for column in columns)
        found = self._db.execute(f"SELECT id FROM {table} WHERE {where}", values).fetchone()
        if found is not None:
            return int(found[0])
        number = self._next(table)
        self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * (len(values) + 1))})", (number, *values))
        return number

    def _trace(self, number: int, facts: Mapping[str, Any]) -> None:
        """A graph trace that had ended and was not stored yet, with the nodes in its graph."""
        function = self._function(facts.get("function"))
        if function is None:
            return
        owner = facts.get("object")
        where, key = ("object", owner) if owner is not None else ("object IS NULL AND function", function)
        earlier = self._db.execute(f"SELECT count(*) FROM trace WHERE {where} = ?", (key,)).fetchone()[0]
        self._db.execute(
            "INSERT INTO trace VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number, function, owner, earlier + 1, facts["name"], facts["signature"], json.dumps(facts["reason"]),
                self._thread(facts["on"]), facts["start_ns"], facts["duration_ns"], facts["error"], facts["parent"],
                facts["closest"], facts["avoid"],
            ),
        )  # fmt: skip
        for token in facts["tokens"]:
            if token in self._nodes or token in self._ring.nodes:
                self._db.execute("INSERT OR REPLACE INTO trace_node VALUES (?, ?)", (number, self._node(token)[0]))

    def _thread(self, native: int) -> int:
        number = self._threads.get(native)
        if number is None:
            number = self._threads[native] = 1 + max(self._threads.values(), default=0)
            name = self._ring.threads.get(native, f"thread {native}")
            self._db.execute("INSERT INTO thread VALUES (?, ?, ?)", (number, name, native))
        return number

    def _failure(self) -> int:
        number = 1 + int(self._db.execute("SELECT coalesce(max(id), 0) FROM failure").fetchone()[0])
        text = "the program died before the text of this exception was stored"
        self._db.execute("INSERT INTO failure VALUES (?, ?, ?, ?, ?)", (number, "an exception", text, text, "[]"))
        return number

    def _inputs(self, call: RingCall) -> None:
        names = self._ring.nodes.get(call.token, {}).get("paths", [])
        for position, one in enumerate(call.inputs or ()):
            path = names[position] if position < len(names) else f"in[{position}]"
            columns = {
                "call": call.call, "role": "input", "position": position, "path": path, "dtype": one.dtype,
                "shape": None if one.shape is None else json.dumps(list(one.shape)), "min": one.min, "max": one.max,
                "nan": one.nan, "text": _text(one), "note": _NOTE, "kept": "",
            }  # fmt: skip
            self._db.execute(
                f"INSERT OR REPLACE INTO value ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                [*columns.values()],
            )


def _text(value: Brief) -> str:
    """As `values.summary` writes a value, as far as it is known."""
    if value.dtype == "?":
        return "(not read)"
    shape = "" if value.shape == () else "[...]" if value.shape is None else f"[{', '.join(map(str, value.shape))}]"
    parts = [f"{value.dtype}{shape}"]
    if value.min is not None and value.max is not None:
        low, high = f"{value.min:.6g}", f"{value.max:.6g}"
        parts.append(low if value.elements == 1 else f"x={low}" if low == high else f"x\u2208[{low}, {high}]")
    if value.nan:
        parts.append(f"NaN {value.nan:,}")
    return " ".join(parts)
