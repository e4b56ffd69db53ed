"""Joins the native probe's rows with calls, by thread and time: a call lies inside the op that executed it.

Whole batches at once, with NumPy: this runs on the writer thread, and what it takes of the GIL it takes from the
program. Only calls that waited are looked at one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pyfunc_debug.gil import blame
from pyfunc_debug.gil.band import Band
from pyfunc_debug.gil.releases import Releases
from pyfunc_debug.gil.samples import CLOSED, HELD, RELEASED, WAITED, Answer, CallTimes, Samples
from pyfunc_debug.newest import Newest

PATIENCE_NS = 3_000_000_000
"""How long after it ended an op may wait for its call, and a call for its op."""
_MOST_WAITS = 30_000
"""Ops that are open, not told yet, or whose rows were lost, of which it is kept whom they waited for: 40 MB."""
_MOST_WAITING = 10_000
"""Calls that wait for a holder to end, to name it. Beyond that, the oldest get their answer: a call that runs."""
_MOST_HOLDERS = 1_000
_LARGEST = 16
"""Holders of one op are kept one by one; of more than `_MOST_HOLDERS`, only the largest are."""

_Table = np.ndarray[Any, np.dtype[np.int64]]

# Columns of rows of the kind CLOSED (_native.c), and of calls.
_THREAD, _SERIAL, _ENTER, _LEAVE, _WAITED = 1, 2, 4, 5, 6
_CALL, _CALL_THREAD, _START, _END = 0, 1, 2, 3


_Shares = dict[int | str, int]
"""Nanoseconds by holder: 0 is nobody, a text names one that is not looked up any more."""


class _Waits:
    """Who held the GIL while one op waited for it.

    The first and the last waits inside the op are kept one by one, for they may be before or after its call.
    """

    __slots__ = ("before", "first", "inside", "last", "limit")
    EDGE = 64

    def __init__(self) -> None:
        self.before: _Shares = {}
        self.inside: _Shares = {}
        self.first: list[tuple[int, int, _Shares]] = []
        self.last: deque[tuple[int, int, _Shares]] = deque()
        self.limit = _MOST_HOLDERS

    def add(self, since: int, to: int, shares: _Shares, entering: bool) -> None:
        """Adds a wait; those of an op come in the order of time."""
        if entering:
            _add(self.before, shares)
        elif len(self.first) < self.EDGE:
            self.first.append((since, to, shares))
        else:
            self.last.append((since, to, shares))
            if len(self.last) > self.EDGE:
                _add(self.inside, self.last.popleft()[2])

    def until(self, end_ns: int) -> _Shares:
        """By holder, before a call and inside it; not what its op waited for after it."""
        sums = dict(self.before)
        _add(sums, self.inside)
        for since, _, shares in (*self.first, *self.last):
            if since < end_ns:
                _add(sums, shares)
        return sums

    def add_up(self, named: Callable[[int], tuple[str, str] | None]) -> None:
        """Names holders that ended before they are forgotten, and adds up all but the largest: there may be millions.

        Args:
          named: Names of a holder's body and of its call; None while it runs.
        """
        if max(len(self.before), len(self.inside)) <= self.limit:
            return
        for sums in (self.before, self.inside):
            ranked = sorted(sums, key=sums.__getitem__)
            for rank, holder in enumerate(ranked, _LARGEST - len(ranked)):
                _rename(sums, holder, named, one=rank >= 0)
        for _, _, shares in (*self.first, *self.last):
            for holder in list(shares):
                _rename(shares, holder, named, one=False)
        self.limit = max(_MOST_HOLDERS, 2 * len(self.before), 2 * len(self.inside))


def _rename(sums: _Shares, holder: int | str, named: Callable[[int], tuple[str, str] | None], *, one: bool) -> None:
    names = (blame.call_of(holder)[0], holder) if isinstance(holder, str) else named(holder)
    if names is not None:
        _add(sums, {names[one]: sums.pop(holder)})


def _add(sums: _Shares, more: _Shares) -> None:
    for holder, ns in more.items():
        sums[holder] = sums.get(holder, 0) + ns


class NativeJoin:
    """Answers calls from the native probe's rows, as both come in."""

    def __init__(self, body: Callable[[int], str]) -> None:
        self.matched = 0
        self.unmatched = 0
        self.broken = 0
        """Calls that lost a part: nothing is reported of them."""
        self.waited_ns: dict[str, int] = {}
        """Time that threads waited outside of any op, by the thread's name."""
        self.elsewhere = Band()
        """Turns of the program's threads outside of any op, as far as another thread wanted the GIL at their end."""
        self._body = body
        self._holds = blame.Holds()
        self._names: dict[int, str] = {}
        self._ops: _Table = np.empty((0, 9), np.int64)  # closed, and no call is known yet
        self._calls: _Table = np.empty((0, 4), np.int64)  # whose op did not close yet
        self._releases = Releases()
        self._waits: dict[int, _Waits] = {}  # by serial
        self._known: Newest[int | None] = Newest()  # serial -> call; None: closed, and no call is known
        self._waiting: list[tuple[int, int, Answer]] = []  # serial, end, answer; a holder's call is not known yet

    def feed(self, samples: Samples, calls: Iterable[CallTimes], *, final: bool = False) -> list[Answer]:
        """See `Join.feed`. Some 2 us a call, more for each holder that it waited for."""
        self._names.update(samples.names)
        table = np.asarray(samples.native, np.int64).reshape(-1, 9)
        closed, released = table[:, 0] == CLOSED, table[:, 0] == RELEASED
        self._releases.add(table[released])
        self._read(table[~(closed | released)])
        fresh = np.array(calls if isinstance(calls, list) else list(calls), np.int64).reshape(-1, 4)
        ops = np.concatenate([self._ops, table[closed]])
        times = np.concatenate([self._calls, fresh])
        if len(ops) and len(times):
            order, chosen = _pairs(ops, times)
            found = self._answer(ops[chosen], times[order])
            self._releases.forget(ops[chosen, _SERIAL])
            ops, times = np.delete(ops, chosen, 0), np.delete(times, order, 0)
        else:
            found = []
        self._keep(ops, times, samples.until_ns - PATIENCE_NS, final)
        return self._report(found, final)

    def _read(self, rows: _Table) -> None:
        """Takes holds and waits. All holds that overlap a wait are there: its thread has held the GIL since."""
        kinds, threads, serials, since, to = (rows[:, column] for column in range(5))
        held = kinds == HELD
        holders = np.where(serials[held] > 0, serials[held], -threads[held])
        self._holds.extend(holders.tolist(), since[held].tolist(), to[held].tolist())
        ours = [ident for ident, name in self._names.items() if name.startswith(blame.OURS)]
        elsewhere = held & (serials == 0) & ~np.isin(threads, ours)
        self.elsewhere.add(since[elsewhere], to[elsewhere])
        outside = (kinds == WAITED) & (serials == 0)
        names, positions = np.unique(threads[outside], return_inverse=True)
        sums = np.bincount(positions.reshape(-1), weights=(to - since)[outside], minlength=len(names))
        for thread, ns in zip(names.tolist(), sums.tolist(), strict=True):
            name = blame.outside(self._names.get(thread))
            self.waited_ns[name] = self.waited_ns.get(name, 0) + int(ns)
        inside = (kinds == WAITED) & (serials > 0)
        for serial, begin, end, entering in rows[inside][:, 2:6].tolist():
            waits = self._waits.get(serial)
            if waits is None:
                self._waits[serial] = waits = _Waits()
            during: _Shares = dict(self._holds.during(begin, end).items())
            during[0] = end - begin - sum(during.values())
            waits.add(begin, end, during, bool(entering))
            waits.add_up(self._named)

    def _answer(self, ops: _Table, times: _Table) -> list[tuple[int, int, Answer]]:
        """The answers for calls and their ops, without the blame."""
        parts, whole = self._releases.parts(ops, times)
        early, released, waited = parts.T
        held = times[:, _END] - times[:, _START] - released - waited
        whole &= held >= 0
        self._known.update(zip(ops[:, _SERIAL].tolist(), times[:, _CALL].tolist(), strict=True))
        for serial in ops[~whole, _SERIAL].tolist():
            self._waits.pop(serial, None)
        self.matched += int(whole.sum())
        self.broken += int((~whole).sum())
        columns = (
            ops[:, _SERIAL], times[:, _END], times[:, _CALL], ops[:, _WAITED] + early, held, released, waited
        )  # fmt: skip
        return [
            (serial, end, (call, "native", before, held_ns, released_ns, inside, ()))
            for serial, end, call, before, held_ns, released_ns, inside in zip(
                *(column[whole].tolist() for column in columns), strict=True
            )
        ]

    def _keep(self, ops: _Table, times: _Table, horizon_ns: int, final: bool) -> None:
        """Keeps what has no counterpart yet, unless it has waited for too long."""
        old = np.full(len(ops), True) if final else ops[:, _LEAVE] < horizon_ns
        for serial in ops[old, _SERIAL].tolist():
            self._known[serial] = None
            self._waits.pop(serial, None)
        self._releases.forget(ops[old, _SERIAL])
        self._ops = ops[~old]
        old = np.full(len(times), True) if final else times[:, _END] < horizon_ns
        self.unmatched += int(old.sum())
        self._calls = times[~old]
        if len(self._waits) > _MOST_WAITS:  # of ops whose rows were lost they would stay
            self._waits = dict(list(self._waits.items())[-_MOST_WAITS // 2 :])

    def _report(self, found: list[tuple[int, int, Answer]], final: bool) -> list[Answer]:
        if not self._waits:
            return [answer for _, _, answer in found]
        rows: list[Answer] = []
        waiting, self._waiting = self._waiting, []
        overdue = len(waiting) - _MOST_WAITING
        for position, one in enumerate(waiting + found):
            serial, end_ns, answer = one
            waits = self._waits.get(serial)
            shares = waits.until(end_ns) if waits is not None else {}
            if waits is None:
                rows.append(answer)
            elif not final and position >= overdue and any(map(self._is_open, shares)):
                self._waiting.append(one)
            else:
                del self._waits[serial]
                rows.append((*answer[:6], self._blame(shares)))
        return rows

    def _is_open(self, holder: int | str) -> bool:
        return isinstance(holder, int) and holder > 0 and holder not in self._known

    def _named(self, holder: int) -> tuple[str, str] | None:
        if holder not in self._known:
            return None
        call: int | None = self._known.get(holder, None)
        if call is None:
            return blame.UNRECORDED, blame.UNRECORDED
        body = self._body(call)
        return body, blame.by_call(body, call)

    def _blame(self, shares: _Shares) -> tuple[tuple[str, int], ...]:
        calls: dict[int, int] = {}
        others: dict[str, int] = {}
        for holder, ns in shares.items():
            if isinstance(holder, int) and (known := self._known.get(holder, None)) is not None:
                calls[known] = calls.get(known, 0) + ns
                continue
            if isinstance(holder, str):
                label = holder
            elif holder == 0:
                label = blame.NOBODY
            elif holder > 0:
                label = blame.UNRECORDED if holder in self._known else blame.RUNNING
            else:
                label = blame.outside(self._names.get(-holder))
            others[label] = others.get(label, 0) + ns
        return blame.recorded_blame(calls, others, self._body)


def _pairs(ops: _Table, times: _Table) -> tuple[_Table, _Table]:
    """Positions of calls, and of the op that each belongs to.

    It is the last op of the thread that began before the call: an op inside the call's own begins later. It must have
    closed after the call ended; and it has one call, the first: others inside it ran without an op of their own.
    """
    threads, ranks = np.unique(np.concatenate([ops[:, _THREAD], times[:, _CALL_THREAD]]), return_inverse=True)
    ranks = ranks.reshape(-1)
    first = min(int(ops[:, _ENTER].min()), int(times[:, _START].min()))
    span = max(int(ops[:, _LEAVE].max()), int(times[:, _END].max())) - first + 1
    if len(threads) > 1 and len(threads) * span >= 2**62:  # days of time, times thousands of threads: one by one
        return _by_thread(ops, times, threads)
    op_keys = ranks[: len(ops)] * span + ops[:, _ENTER] - first
    call_keys = ranks[len(ops) :] * span + times[:, _START] - first
    by_key = np.argsort(op_keys, kind="stable")
    order = np.argsort(call_keys, kind="stable")
    positions = np.searchsorted(op_keys[by_key], call_keys[order], side="right") - 1
    chosen = by_key[np.maximum(positions, 0)]
    fits = (
        (positions >= 0)
        & (ops[chosen, _THREAD] == times[order, _CALL_THREAD])
        & (times[order, _END] <= ops[chosen, _LEAVE])
    )
    order, chosen = order[fits], chosen[fits]
    chosen, firsts = np.unique(chosen, return_index=True)
    return order[firsts], chosen


def _by_thread(ops: _Table, times: _Table, threads: _Table) -> tuple[_Table, _Table]:
    orders, choices = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for thread in threads:
        mine, called = np.flatnonzero(ops[:, _THREAD] == thread), np.flatnonzero(times[:, _CALL_THREAD] == thread)
        if len(mine) and len(called):
            order, chosen = _pairs(ops[mine], times[called])
            orders.append(called[order])
            choices.append(mine[chosen])
    return np.concatenate(orders), np.concatenate(choices)
