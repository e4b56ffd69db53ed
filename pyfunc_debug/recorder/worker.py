"""The writer thread: takes tickets off the queue and puts rows into the file, politely and within the budget.

It wakes twenty times a second. While calls are made it works in slices of a millisecond with long rests between them,
so that the GIL is the program's; as the queue fills up the rests become shorter, and in the end it works through. When
no call is made it works through too: nobody is in its way.
"""

from __future__ import annotations

import ctypes
import json
import sqlite3
import sys
import threading
import time
from _thread import LockType, allocate_lock
from collections import deque
from collections.abc import Callable
from typing import Any

from pyfunc_debug.events import Notice, RunFacts
from pyfunc_debug.pfrec import Writer
from pyfunc_debug.program.bell import Bell, pause
from pyfunc_debug.program.threads import hide_from_debuggers
from pyfunc_debug.recorder.batch import Batch
from pyfunc_debug.recorder.budget import Budget
from pyfunc_debug.recorder.gil_rows import GilRows
from pyfunc_debug.recorder.rows import Rows
from pyfunc_debug.recorder.ticket import Ticket

_PERIOD = pause(0.05)
_SLICE_NS = 1_000_000
_HURRIED_SLICE_NS = 20_000_000
"""Longer than the 5 ms after which a waiting thread gets the GIL: who waits for a flush gets half of it."""
_GLANCE_S = 0.001
"""A pause to see whether calls are being made."""
_RESTS = ((0.01, pause(0.2)), (0.05, pause(0.03)), (0.5, pause(0.009)))
"""Rest between two slices, by the share of the queue's room up to which it is taken."""
_QUIET_NS = 50_000_000
"""Seconds without a call after which the program is assumed to do something else."""
_RESOLVE_AFTER_S = 1.0
"""A graph's place is looked up at most this long after its first call, see `NodeRows.resolve_pending`."""
_RUNNING_NS = 300_000_000
"""A call in progress for longer is written as `running`: a body that hangs can be seen."""


def daemon_thread(target: Callable[[], None], name: str) -> threading.Thread:
    """A thread that debuggers leave alone (a stop would freeze it), and that never keeps a program alive."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    hide_from_debuggers(thread)
    return thread


class Worker:
    """Owns the file while it is written.

    Attributes:
      stopped: Why writing stopped before the end (a full disk, say), or empty.
      gil: What becomes of calls when the GIL is measured; None when it is not.
      beat: Leaves a sign of life.
      values_full: Is called once, when there is no room for values any more.
    """

    def __init__(
        self, writer: Writer, rows: Rows, budget: Budget, queue: deque[Any], open_calls: dict[int, Ticket],
        release: Callable[[int], None], fullness: Callable[[], float], meta: dict[str, Any],
    ) -> None:  # fmt: skip
        self._writer = writer
        self._rows = rows
        self._budget = budget
        self._queue = queue
        self._open_calls = open_calls
        self._release = release
        self._fullness = fullness
        self._wake = Bell()
        self._closing = self._ended = False
        self._flushes: deque[LockType] = deque()  # held ones: released when what was queued is in the file
        self._cpu_ns = 0
        self._newest_ns = 0  # end of the newest call that came through
        self._shown_running: set[int] = set()
        self.stopped = ""
        self.gil: GilRows | None = None
        self.beat: Callable[[], None] = lambda: None
        self.values_full: Callable[[], None] | None = None
        self.inputs: Callable[[], list[dict[str, Any]]] = list
        self._inputs = "[]"
        self._inputs_ns = 0
        rows.allowance.open(budget, writer.stored)
        writer.start({**meta, "state": "recording"})
        self._thread = daemon_thread(self._run, "pyfunc_debug writer")

    def start(self) -> None:
        self._thread.start()

    def flush(self, timeout_s: float) -> bool:
        """Waits until what is queued now is in the file."""
        done = allocate_lock()
        done.acquire()
        self._flushes.append(done)
        self._wake.ring()
        return self._ended or done.acquire(True, timeout_s)

    def close(self, meta: dict[str, Any], cost_ns: int) -> None:
        """Writes all that is queued, then `meta`, then closes the file. Waits for it."""
        self._closing = True
        self._wake.ring()
        self._thread.join()
        try:
            self._last(meta, cost_ns)
        except Exception as error:
            self.stopped = self.stopped or f"the recording could not be finished: {error}"
        self._writer.close()

    def abandon(self) -> None:
        """In a forked child: forgets the file without closing it. SQLite must not be used, or even closed, there."""
        # Never deallocated, nor the connection that it holds: that would close the file.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._writer.cursor))
        self._closing = self._ended = True

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._wake.wait(_PERIOD)
            closing, flushes = self._closing, len(self._flushes)
            now = closing or flushes > 0
            try:
                self.beat()
                self._drain(hurry=now)
                self._measure(closing, now)
                self._note_inputs(now)
            except Exception as error:  # never lose the thread: the queue would grow forever
                self._rows.troubles[f"writing: {type(error).__name__}: {error}"[:500]] += 1
            self._cpu_ns = time.thread_time_ns()
            self._ended = closing
            for _ in range(len(self._flushes) if closing else flushes):
                self._flushes.popleft().release()
            if closing:
                return

    def _drain(self, hurry: bool) -> None:
        """One pass over the queue: all that is there now when in a hurry, else slices with rests between them."""
        end = time.monotonic() + 1.0
        todo = len(self._queue)  # a program that calls faster than we write must not keep a flush waiting forever
        while self._queue or self._open_calls or self._rows.nodes.pending:
            batch = Batch()
            deadline = time.monotonic_ns() + (_HURRIED_SLICE_NS if hurry else _SLICE_NS)
            freed = 0
            while self._queue and time.monotonic_ns() < deadline:
                freed += self._one(batch, self._queue.popleft())
                todo -= 1
            if not self._queue:
                self._running(batch)
            self._resolve_pending(batch, hurry)
            self._write(batch)
            self.beat()
            self._release(freed)
            if not self._queue or (hurry and todo <= 0 and not self._closing):
                return
            if hurry:
                time.sleep(0)
                continue
            if time.monotonic() > end or self._wake.is_rung():
                return
            self._rest()

    def _rest(self) -> None:
        """Leaves the GIL to the program, for longer the more room is left in the queue."""
        waiting = len(self._queue)
        time.sleep(_GLANCE_S)
        if len(self._queue) == waiting and not self._open_calls:
            return
        fullness = self._fullness()
        rest = next((rest for share, rest in _RESTS if fullness < share), None)
        if rest is not None and self._wake.wait(rest):
            self._wake.ring()  # it is for `_run`

    def _resolve_pending(self, batch: Batch, hurry: bool) -> None:
        """Looks up where older nodes stand once nobody is in the way, or after a second."""
        rows = self._rows
        if not rows.nodes.pending:
            return
        quiet = not self._queue and not self._open_calls and time.monotonic_ns() - self._newest_ns > _QUIET_NS
        if hurry or quiet or time.monotonic() - rows.nodes.pending_since > _RESOLVE_AFTER_S:
            try:
                rows.nodes.resolve_pending(batch)
            except Exception as error:
                rows.troubles[f"locating older nodes: {type(error).__name__}: {error}"[:500]] += 1

    def _one(self, batch: Batch, item: Any) -> int:
        """Turns one queued item into rows; returns the bytes that it kept alive."""
        rows = self._rows
        try:
            if isinstance(item, Ticket):
                node = rows.calls.call(batch, item, shown=item.call in self._shown_running)
                if self.gil is not None:
                    self.gil.add(item, rows.nodes.bodies.get(node, ""), rows.allowance.keep_calls)
                self._shown_running.discard(item.call)
                self._newest_ns = item.end_ns
                return item.room
            if isinstance(item, RunFacts):
                rows.traces.run(batch, item)
                return 0
            what, facts, *rest = item
            if what == "node":
                rows.nodes.node(batch, facts)
            elif what == "older":
                rows.nodes.node(batch, facts, older=True)
            elif what == "trace":
                rows.traces.trace(batch, facts, rest[0])
            elif what == "lines":
                rows.lines(batch, facts, rest[0])
            elif what == "notice":
                rows.notice(batch, facts, *rest)
                if facts == Notice.HELD:
                    self._stopped(batch, rest[1])
        except Exception as error:  # one odd item must not lose the others
            rows.troubles[f"recording a {type(item).__name__}: {type(error).__name__}: {error}"[:500]] += 1
            if sys.flags.dev_mode:
                raise
        return getattr(item, "room", 0)

    def _measure(self, closing: bool, now: bool) -> None:
        """Writes what the GIL probe knows by now."""
        if self.gil is None or not (now or self.gil.due()):
            return
        batch = Batch()
        for row in self.gil.rows(closing):
            batch.add("gil", *row)
        batch.add("meta", "gil", self.gil.report())
        self._write(batch)

    def _note_inputs(self, now: bool) -> None:
        """Writes what is known of the loops over datasets, and of what bodies returned, once a second."""
        if not now and time.monotonic_ns() - self._inputs_ns < 1_000_000_000:
            return
        self._inputs_ns = time.monotonic_ns()
        text = json.dumps(self.inputs())
        batch = Batch()
        if text != self._inputs:
            self._inputs = text
            batch.add("meta", "inputs", text)
        self._rows.returned(batch)
        self._write(batch)

    def _running(self, batch: Batch) -> None:
        """Writes calls that have been in progress for a while."""
        now = time.monotonic_ns()
        for ticket in list(self._open_calls.values()):
            if ticket.call not in self._shown_running and now - ticket.start_ns > _RUNNING_NS:
                self._shown_running.add(ticket.call)
                self._rows.calls.call(batch, ticket, running=True)

    def _stopped(self, batch: Batch, call: int | None) -> None:
        """A call that is held at a stop is written at once: somebody looks at it."""
        ticket = self._open_calls.get(call) if call is not None else None
        if ticket is not None and call not in self._shown_running:
            self._shown_running.add(ticket.call)
            self._rows.calls.call(batch, ticket, running=True)

    def _write(self, batch: Batch) -> None:
        if self.stopped or not (batch.rows or batch.blobs):
            return
        writer = self._writer
        try:
            try:
                self._insert(batch)
            except (UnicodeError, OverflowError):  # text that is not valid Unicode, a number beyond 64 bits
                writer.rollback()
                batch.clean()
                self._insert(batch)
            size = writer.size()
        except Exception as error:
            self._stop(f"{error}")
            return
        self._rows.allowance.update(self._budget, size)
        if not self._rows.allowance.keep_values and self.values_full is not None:
            self.values_full()
            self.values_full = None
        if size >= self._budget.file_bytes:
            self._stop(f"the budget of {self._budget.file_bytes:,} bytes is used up")

    def _insert(self, batch: Batch) -> None:
        self._writer.begin()
        for table, rows in batch.rows.items():
            self._writer.add(table, rows)
        for blob in batch.blobs:
            self._writer.add_blob(*blob)
        self._writer.commit()

    def _stop(self, why: str) -> None:
        """The file is full: from now on calls are only counted, and the program goes on."""
        self.stopped = f"recording stopped: {why}"
        self._rows.allowance.stop()
        try:
            self._writer.rollback()
        except sqlite3.Error:
            pass

    def _last(self, meta: dict[str, Any], cost_ns: int) -> None:
        batch = Batch()
        dropped, calls = self._rows.dropped()
        for row in dropped:
            batch.add("dropped", *row)
        for ticket in list(self._open_calls.values()):
            if ticket.call not in self._shown_running:
                self._rows.calls.call(batch, ticket, running=True)
        batch.clean()
        writer = self._writer
        writer.rollback()
        writer.begin()
        for table, rows in batch.rows.items():
            writer.add(table, rows)
        for blob in batch.blobs:
            writer.add_blob(*blob)
        seen, allowance = self._rows.calls.count, self._rows.allowance
        writer.set_meta(
            {
                **meta,
                "state": "complete" if not self.stopped else "stopped early",
                "stopped": self.stopped,
                "dropped": {
                    "calls": calls,
                    "values": allowance.dropped_values,
                    "runs": allowance.dropped_runs,
                    "without_values": allowance.without_values,
                },
                "troubles": dict(self._rows.troubles),
                "cost": {
                    "hook_ns": cost_ns,
                    "calls": seen,
                    "values_ns": self._rows.calls.values_ns,
                    "writer_cpu_ns": self._cpu_ns,
                },
            }
        )
        writer.commit()
