"""When threads were without the GIL inside their ops, from the native probe: what a call released and waited for.

An op is longer than its call: TensorFlow converts arguments before the body and results after it, and gives up the GIL
there too. So what belongs to a call is summed between the call's own times. The thread reads its clock with the GIL, so
a time never falls inside an interval without it: the parts of a call sum to its duration to the nanosecond.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_Table = np.ndarray[Any, np.dtype[np.int64]]

_ROOT, _SINCE, _TO, _RELEASED, _WAITED = range(5)
_THREAD_COLUMNS = [2, 3, 4, 5, 6]  # of a native row: serial of the outermost op, and four numbers (_native.c)
MOST = 200_000
"""Intervals kept of ops that have not closed: 8 MB. Of more, a thread's middle ones become one."""
_EDGE = 1_000


class Releases:
    """Intervals by thread, kept until the outermost op that they belong to has closed."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._by_thread: dict[int, _Table] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, rows: _Table) -> None:
        """Takes native rows of the kind RELEASED, a thread's in the order of time."""
        if not len(rows):
            return
        for thread in np.unique(rows[:, 1]).tolist():
            fresh = rows[rows[:, 1] == thread][:, _THREAD_COLUMNS]
            known = self._by_thread.get(thread)
            self._by_thread[thread] = fresh if known is None else np.concatenate([known, fresh])
        self._count += len(rows)
        if self._count > self._most:
            self._by_thread = {thread: _shortened(table) for thread, table in self._by_thread.items()}
            self._recount()

    def parts(self, ops: _Table, times: _Table) -> tuple[_Table, np.ndarray[Any, np.dtype[np.bool_]]]:
        """What calls did between their own times.

        Args:
          ops: Native rows of the kind CLOSED, one a call.
          times: Call id, thread, start and end in ns of each call.

        Returns:
          Of each call, in ns: waited before its start since its op has the GIL, released, and waited inside; and
          whether that is all of it: not where a row was lost, or where a call begins or ends in a shortened interval.
        """
        found = np.zeros((len(ops), 3), np.int64)
        whole = (ops[:, 7] == 0) & (ops[:, 8] == 0)
        for thread in np.unique(ops[~whole, 1]).tolist():
            table = self._by_thread.get(thread)
            if table is None:
                continue
            mine = np.flatnonzero((ops[:, 1] == thread) & ~whole)
            sums = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(table[:, [_RELEASED, _WAITED]], 0)])

            def between(since: _Table, to: _Table, table: _Table = table, sums: _Table = sums) -> _Table:
                first = np.searchsorted(table[:, _SINCE], since, side="left")
                last = np.searchsorted(table[:, _TO], to, side="right")
                return np.asarray(sums[np.maximum(first, last)] - sums[first])

            enter, leave = ops[mine, 4], ops[mine, 5]
            start, end = times[mine, 2], times[mine, 3]
            found[mine, 0] = between(enter, start)[:, 1]
            found[mine, 1:] = between(start, end)
            all_of_op = between(enter, leave)
            complete = (all_of_op == ops[mine][:, [7, 8]]).all(1)
            apart = between(enter, start) + between(start, end) + between(end, leave)
            whole[mine] = complete & (apart == all_of_op).all(1)
        return found, whole

    def forget(self, roots: _Table) -> None:
        """Lets go of the intervals of outermost ops that are done with."""
        if not self._count or not len(roots):
            return
        for thread, table in list(self._by_thread.items()):
            kept = table[~np.isin(table[:, _ROOT], roots)]
            if len(kept):
                self._by_thread[thread] = kept
            else:
                del self._by_thread[thread]
        self._recount()

    def _recount(self) -> None:
        self._count = sum(map(len, self._by_thread.values()))


def _shortened(table: _Table) -> _Table:
    """The middle of a long list as one interval: calls begin and end near the edges of their op."""
    if len(table) <= 3 * _EDGE:
        return table
    middle = table[_EDGE:-_EDGE]
    one = np.array([[middle[-1, _ROOT], middle[0, _SINCE], middle[-1, _TO], *middle[:, [_RELEASED, _WAITED]].sum(0)]])
    return np.concatenate([table[:_EDGE], one, table[-_EDGE:]])
