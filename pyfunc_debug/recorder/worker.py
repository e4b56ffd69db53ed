"""The writer thread: takes tickets off the queue and puts rows into the file, politely and within the budget.

It wakes twenty times a second, and where there is nothing to do once a second: what is queued, and a call that begins,
wake it then. Where calls are sampled it wakes once a second, too: few are stored, and the queue has room for them.
While calls are made it works in slices of a millisecond with long rests between them, so that the GIL is the program's;
as the queue fills up the rests become shorter, and in the end it works through. When no call is made it works through
too: nobody is in its way.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from _thread import LockType, allocate_lock
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from pyfunc_debug.events import Notice, RunFacts
from pyfunc_debug.pfrec import Writer
from pyfunc_debug.pfrec.losses import Loss
from pyfunc_debug.program.bell import Bell, pause
from pyfunc_debug.program.printable import tell
from pyfunc_debug.program.threads import daemon_thread
from pyfunc_debug.recorder.anchors import Anchors
from pyfunc_debug.recorder.batch import Batch
from pyfunc_debug.recorder.budget import Budget
from pyfunc_debug.recorder.folder_budget import FolderBudget
from pyfunc_debug.recorder.gil_rows import GilRows
from pyfunc_debug.recorder.growth import Growth
from pyfunc_debug.recorder.hot import ROUSE_PART, HotPath
from pyfunc_debug.recorder.rows import Rows
from pyfunc_debug.recorder.ticket import Ticket

_PERIOD = pause(0.05)
_SLEEP = pause(1.0)
_SLEEP_BELOW = 1 / ROUSE_PART
"""Share of the queue's room up to which it sleeps on where calls are sampled."""
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
_LOCK_PATIENCE_S = 15.0
"""How long the end of a recording waits for another process's lock on the file."""
_RETRY = pause(0.25)
_ODD = (
    UnicodeError, OverflowError, sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)  # fmt: skip
"""What one row may do: text that is not valid Unicode, a number beyond 64 bits, an object that SQLite does not know."""
_RUNNING_NS = 300_000_000
"""A call in progress for longer is written as `running`: a body that hangs can be seen."""


def _why(error: sqlite3.OperationalError) -> Loss | None:
    """Why the file takes nothing just now; None for what waiting cannot help."""
    text = str(error)
    if "full" in text:
        return Loss.DISK
    if "locked" in text or "busy" in text:
        return Loss.LOCKED
    return Loss.IO if "I/O" in text or "readonly" in text or "unable to open" in text else None


class Worker:
    """Owns the file while it is written.

    Attributes:
      stopped: Why writing stopped before the end (a full disk, say), or empty.
      gil: What becomes of calls when the GIL is measured; None when it is not.
      beat: Leaves a sign of life.
      values_full: Is called once, when there is no room for values any more.
      say: Tells the user what becomes of the file while it is written.
      moved: Is called when the file was moved, with its path.
      spare: Frees what may be in the way of the last words on a full disk.
      begun: Says how many calls have begun.
      tallies: What sampling knows of each node, by token.
      growth: Counts what piles up; None while nobody does.
      queued_bytes: Says what waits to be written, in memory.
      hot: The hot path, which wakes the writer where its `asleep` says that it sleeps.
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
        self._busy = True  # whether there was something to do when it last woke
        self._flushes: deque[LockType] = deque()  # held ones: released when what was queued is in the file
        self._cpu_ns = 0
        self._newest_ns = 0  # end of the newest call that came through
        self._shown_running: set[int] = set()
        self.stopped = ""
        self.gil: GilRows | None = None
        self.beat: Callable[[], None] = lambda: None
        self.values_full: Callable[[], None] | None = None
        self.say: Callable[[str], None] = tell
        self.moved: Callable[[str], None] = lambda path: None
        self.spare: Callable[[], None] = lambda: None
        self.begun: Callable[[], int] = lambda: 0
        self.tallies: Mapping[str, Any] = {}
        self.hot: HotPath | None = None
        self.inputs: Callable[[], list[dict[str, Any]]] = list
        self.role: Callable[[], dict[str, Any]] = dict
        self.growth: Growth | None = None
        self.queued_bytes: Callable[[], int] = lambda: 0
        self._role = {name: meta.get(name) for name in ("role", "rank")}
        self._inputs = "[]"
        self._inputs_ns = 0
        self._losses = rows.allowance.losses
        self._lost: dict[str, Any] = {}
        self._said: set[str] = set()
        self._closing_since = 0.0
        self._unfolded_ns = 0
        self._anchors = Anchors()
        self._folder = FolderBudget(budget)
        self._folder_said = False
        rows.allowance.open(budget, writer.stored)
        rows.allowance.reserve.forget = self._forget
        writer.start({**meta, "state": "recording", "anchors": self._anchors.taken}, budget.log_bytes)
        self._thread = daemon_thread(self._run, "pyfunc_debug writer")

    def start(self) -> None:
        self._thread.start()

    def flush(self, timeout_s: float) -> bool:
        """Waits until what is queued now is in the file; False if nothing can be written now, or it takes longer."""
        done = allocate_lock()
        done.acquire()
        self._flushes.append(done)
        self._wake.ring()
        return self._ended or (done.acquire(True, timeout_s) and self._losses.waiting is None)

    def close(self, meta: dict[str, Any], cost_ns: int) -> None:
        """Writes all that is queued, then `meta`, then closes the file. Waits for it."""
        self._closing_since = time.monotonic()
        self._closing = True
        self._wake.ring()
        self._thread.join()
        self._look_at_file()
        try:
            batch = self._unfinished()
            try:
                self._last(batch, meta, cost_ns)
            except sqlite3.Error:
                self.spare()
                self._last(batch, meta, cost_ns)
        except Exception as error:
            self.stopped = self.stopped or f"the recording could not be finished: {error}"
        self._writer.close()

    def abandon(self) -> None:
        """In a forked child: forgets the file without closing it. SQLite must not be used, or even closed, there."""
        self._writer.let_go()
        self._closing = self._ended = True

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._wait()
            closing, flushes = self._closing, list(self._flushes)
            now = closing or bool(flushes)
            try:
                self.beat()
                self._gather(_RUNNING_NS)
                self._busy = bool(self._queue or self._open_calls)
                self._drain(hurry=now)
                self._measure(closing, now)
                if closing and not self.stopped:
                    self._write_reserved()
                self._once_a_second(now)
            except Exception as error:  # never lose the thread: the queue would grow forever
                self._rows.troubles[f"writing: {type(error).__name__}: {error}"[:500]] += 1
            self._cpu_ns = time.thread_time_ns()
            self._ended = closing
            self._release_flushes(list(self._flushes) if closing else flushes)
            if closing:
                return

    def _wait(self) -> None:
        """Until there may be something to do."""
        hot = self.hot
        if hot is not None and not self._flushes and not self._closing:
            hot.asleep = True  # first: what comes after this look wakes it
            if self._may_sleep(hot):
                rung = self._wake.wait(_SLEEP)
                hot.asleep = False
                if not rung or self._flushes or self._closing:
                    return
                # a call begins, and this thread would be in its body's way
            hot.asleep = False
        self._wake.wait(_PERIOD)

    def _may_sleep(self, hot: HotPath) -> bool:
        if hot.every:
            return self._fullness() < _SLEEP_BELOW
        to_do = self._busy or self._queue or self._open_calls or self._rows.nodes.pending
        return self.gil is None and not to_do  # the GIL probe's samples are taken several times a second

    def rouse(self) -> None:
        """Wakes the writer."""
        self._wake.ring()

    def _release_flushes(self, flushes: list[LockType]) -> None:
        for one in flushes:
            if one in self._flushes:
                self._flushes.remove(one)
                one.release()

    def _drain(self, hurry: bool) -> None:
        """One pass over the queue: all that is there now when in a hurry, else slices with rests between them."""
        end = time.monotonic() + 1.0
        todo = len(self._queue)  # a program that calls faster than we write must not keep a flush waiting forever
        while self._queue or self._open_calls or self._rows.nodes.pending:
            batch = Batch()
            deadline = time.monotonic_ns() + (_HURRIED_SLICE_NS if hurry else _SLICE_NS)
            freed = 0
            most = self._budget.batch_rows if self._rows.allowance.keep_calls else self._budget.last_rows
            while self._queue and time.monotonic_ns() < deadline and batch.count < most:
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
                rows.calls.judge(batch)
            except Exception as error:
                rows.troubles[f"locating older nodes: {type(error).__name__}: {error}"[:500]] += 1

    def _one(self, batch: Batch, item: Any) -> int:
        """Turns one queued item into rows; returns the bytes that it kept alive."""
        rows = self._rows
        try:
            if isinstance(item, Ticket):
                node = rows.calls.call(batch, item, shown=item.call in self._shown_running)
                if self.gil is not None:
                    stored, held_back = item.call in batch.ended, item.call in rows.allowance.reserve
                    self.gil.add(item, rows.nodes.bodies.get(node, ""), stored, held_back)
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
            elif what == "rejected":
                rows.calls.rejected(batch, facts, rest[0])
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
        for row in self._rows.allowance.reserve.measured(self.gil.rows(closing)):
            batch.add("gil", *row)
            self._rows.calls.sums.gil(row[0], row[2:6])
            if batch.count >= self._budget.batch_rows:
                self._write(batch)
                batch = Batch()
        batch.add("meta", "gil", self.gil.report())
        self._write(batch)

    def _write_reserved(self) -> None:
        """The recording ends: the calls that were held back from the budget go into the room that is kept for them.

        So do the text of a program in which nothing was traced, and those of the modules that it imports.
        """
        batch = Batch()
        self._rows.calls.reserved(batch)
        self._rows.nodes.program(batch)
        self._rows.nodes.imported(batch)
        self._write(batch)

    def _once_a_second(self, now: bool) -> None:
        """Writes what is known of the process's role, loops over datasets, what bodies returned, and what was lost."""
        if not now and time.monotonic_ns() - self._inputs_ns < 1_000_000_000:
            return
        self._inputs_ns = time.monotonic_ns()
        self._look_at_file()
        inputs = self.inputs()
        text = json.dumps(inputs)
        batch = Batch()
        if text != self._inputs:
            self._inputs = text
            batch.add("meta", "inputs", text)
            for loop in inputs:
                self._rows.nodes.source(batch, loop["site"][0] if loop["site"] else None)
        if (role := self.role()) and role != self._role:
            self._role = role
            for name, known in role.items():
                batch.add("meta", name, json.dumps(known))
        if (growth := self.growth) is not None and growth.look(self.begun(), self.queued_bytes()):
            batch.add("meta", "growth", json.dumps(growth.known()))
        if self._anchors.due():
            batch.add("meta", "anchors", json.dumps(self._anchors.take()))
        if self._budget.folder_bytes is not None and not self.stopped:
            self._allow()  # others may have taken room, or left some
        if self._folder.used_up and not self._folder_said:
            self._folder_said = True
            batch.add("meta", "folder_full", "true")
        self._rows.returned(batch)
        self._count_left_out()
        if self._losses.changed and not self.stopped:
            batch.add("meta", "dropped", json.dumps(self._rows.lost(batch)))
        self._write(batch)

    def _count_left_out(self) -> None:
        for token, tally in list(self.tallies.items()):
            if tally.left:
                self._losses.left_out(token, tally.left, tally.ns)

    def _look_at_file(self) -> None:
        """Says that the file was moved or deleted; a moved one is gone on with."""
        if self.stopped:
            return
        before = self._writer.path
        try:
            now = self._writer.follow()
        except sqlite3.Error as error:
            self._stop(Loss.IO, f"{before} was moved and cannot be opened there: {error}")
            return
        if now is None:
            self._stop(Loss.DELETED, f"{before} was deleted while it was written")
            self._tell(f"the recording {before} was deleted while it is written: from now on calls are only counted")
        elif now != before:
            self._tell(f"the recording {before} was moved to {now}: it goes on there")
            self.moved(now)

    def _tell(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.say(f"pyfunc_debug: {text}")

    def _gather(self, least_ns: int = 0) -> None:
        """Makes open calls of those that took the shortcut at least `least_ns` ago."""
        if self.hot is not None:
            self.hot.gather(least_ns)

    def _running(self, batch: Batch) -> None:
        """Writes calls that have been in progress for a while."""
        now = time.monotonic_ns()
        for ticket in () if self.stopped else list(self._open_calls.values()):
            if ticket.call not in self._shown_running and now - ticket.start_ns > _RUNNING_NS:
                if not self._keep(ticket):
                    continue
                self._shown_running.add(ticket.call)
                self._rows.calls.call(batch, ticket, running=True)

    def _stopped(self, batch: Batch, call: int | None) -> None:
        """A call that is held at a stop is written at once: somebody looks at it."""
        self._gather()
        ticket = self._open_calls.get(call) if call is not None else None
        if ticket is not None and call not in self._shown_running and not self.stopped and self._keep(ticket):
            self._shown_running.add(ticket.call)
            self._rows.calls.call(batch, ticket, running=True)

    def _keep(self, ticket: Ticket) -> bool:
        """Has a call stored whatever sampling says; whether it still runs, else it was decided already."""
        ticket.kept = True
        return ticket.call in self._open_calls

    def _write(self, batch: Batch) -> None:
        """Puts rows into the file. Where it does not take them now, waits until it does: the queue is the buffer."""
        if not (batch.rows or batch.blobs):
            return
        self._rows.calls.sums.join(batch)
        while not self.stopped:
            try:
                why = self._store(batch)
            except Exception as error:
                self._stop(Loss.BATCH, f"{error}")
                break
            if why is None:
                self._stored()
                return
            self._wait_for_file(why)
        self._lose(batch)

    def _store(self, batch: Batch) -> Loss | None:
        """Tries once; returns why it has to wait."""
        writer = self._writer
        try:
            why = writer.no_room(batch.weight())
            if why is not None:
                return why
            try:
                self._insert(batch)
            except _ODD:
                writer.rollback()
                batch.clean()
                self._insert_singly(batch)
        except sqlite3.OperationalError as error:
            writer.rollback()
            why = _why(error)
            if why is None:
                raise
            return why
        return None

    def _insert(self, batch: Batch) -> None:
        self._writer.begin()
        for table, rows in batch.rows.items():
            self._writer.add(table, rows)
        for blob in batch.blobs:
            self._writer.add_blob(*blob)
        self._writer.commit()

    def _insert_singly(self, batch: Batch) -> None:
        """One odd row must not lose the others."""
        self._writer.begin()
        for table, rows in batch.rows.items():
            kept = []
            for row in rows:
                try:
                    self._writer.add(table, [row])
                    kept.append(row)
                except _ODD as error:
                    self._rows.troubles[f"writing a {table}: {type(error).__name__}: {error}"[:500]] += 1
                    if table == "call":
                        self._lose_call(batch, row[0], Loss.BATCH)
                    elif table == "value":
                        self._losses.values(1, Loss.BATCH)
                    elif table == "run":
                        self._losses.run(Loss.BATCH)
            batch.rows[table] = kept
        for blob in batch.blobs:
            self._writer.add_blob(*blob)
        self._writer.commit()

    def _stored(self) -> None:
        if self._losses.waiting is not None:
            self._losses.waiting = None
            self._tell(f"the recording {self._writer.path} goes on")
        self._allow()

    def _allow(self) -> None:
        """What the file takes from now on."""
        allowance = self._rows.allowance
        size, log = self._writer.measure()
        budget = self._folder.now(self._writer.path, size + log)
        later = self.gil.waiting_bytes if self.gil is not None else 0
        if log and size + later + log >= budget.calls_bytes and time.monotonic_ns() - self._unfolded_ns > 1_000_000_000:
            if not self._writer.fold():
                self._unfolded_ns = time.monotonic_ns()  # a reader is in the way: not again at once
            size, log = self._writer.measure()
        allowance.update(budget, size + later, log)
        if not allowance.keep_values and self.values_full is not None:
            self.values_full()
            self.values_full = None
        if size + log >= self._budget.file_bytes:
            self._stop(Loss.BUDGET, f"the budget of {self._budget.file_bytes:,} bytes is used up")

    def _wait_for_file(self, why: Loss) -> None:
        """The file takes nothing now: waits for a moment; gives up at the end of the recording."""
        before = self._writer.path
        self._look_at_file()
        if self.stopped or self._writer.path != before:  # it was moved, and takes them there
            return
        first = self._losses.waiting is None
        self._losses.waiting = why
        self._tell(f"the recording {self._writer.path} waits ({why.value}): calls stay in memory, then are counted")
        self.beat()
        self._release_flushes(list(self._flushes))  # `flush` tells that it did not work
        waited = time.monotonic() - self._closing_since if self._closing else 0.0
        if self._closing and not first and waited > (_LOCK_PATIENCE_S if why is Loss.LOCKED else 0.0):
            self._stop(why, why.said(""))
        if not self.stopped:
            self._wake.wait(_RETRY)

    def _lose(self, batch: Batch) -> None:
        why = self._rows.allowance.why
        self._shown_running -= batch.running
        for call in batch.ended:
            self._lose_call(batch, call, why)
        for _ in batch.rows.get("run", ()):
            self._losses.run(why)

    def _lose_call(self, batch: Batch, call: int, why: Loss) -> None:
        ticket, shown = batch.ended.get(call, (None, False))
        if ticket is not None and not shown:  # else the file has it, as running
            self._losses.call(ticket, why)
        self._forget(call)

    def _forget(self, call: int) -> None:
        if self.gil is not None:
            self.gil.forget(call)

    def _stop(self, why: Loss, text: str) -> None:
        """From now on calls are only counted, and the program goes on."""
        self.stopped = f"recording stopped: {text}"
        self._losses.waiting = None
        self._rows.allowance.stop(why)
        try:
            self._writer.rollback()
        except sqlite3.Error:
            pass

    def _unfinished(self) -> Batch:
        """The calls that are still in progress, and what ended since the thread did."""
        batch = Batch()
        self._gather()
        for ticket in list(self._open_calls.values()):
            if ticket.call not in self._shown_running and self._keep(ticket):
                self._shown_running.add(ticket.call)
                self._rows.calls.call(batch, ticket, running=True)
        while self._queue:
            self._one(batch, self._queue.popleft())
        batch.clean()
        return batch

    def _last(self, batch: Batch, meta: dict[str, Any], cost_ns: int) -> None:
        writer = self._writer
        writer.rollback()
        writer.begin()
        self._rows.calls.sums.join(batch)
        for table, rows in batch.rows.items():
            writer.add(table, rows)
        for blob in batch.blobs:
            writer.add_blob(*blob)
        begun, last = self.begun(), Batch()
        self._count_left_out()
        stored = writer.count("call")
        self._losses.unfinished(begun, stored)
        dropped = {**self._rows.lost(last), "counted": begun}
        all_there = not self.stopped and self._losses.only_left_out()
        if not (all_there and self._rows.calls.sums.are_of(stored, writer.count("gil"))):
            writer.clear("summary")
        for table, rows in last.rows.items():
            writer.add(table, rows)
        writer.set_meta(
            {
                **meta,
                "anchors": self._anchors.take(),
                "state": "complete" if not self.stopped else "stopped early",
                "stopped": self.stopped,
                "dropped": dropped,
                "troubles": dict(self._rows.troubles),
                "cost": {
                    "hook_ns": cost_ns,
                    "calls": self._rows.calls.count,
                    "values_ns": self._rows.calls.values_ns,
                    "writer_cpu_ns": self._cpu_ns,
                },
            }
        )
        writer.commit()
