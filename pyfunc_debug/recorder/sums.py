"""Sums of the calls of each node, kept while they are stored: the ledger of many recordings reads no calls then."""

from __future__ import annotations

from typing import Any

from pyfunc_debug.newest import Newest
from pyfunc_debug.recorder.batch import Batch
from pyfunc_debug.recorder.ticket import Ticket

_MEASURED = 4
"""Where a row has how many calls were measured; the GIL's four sums follow."""


class Sums:
    """Rows of the table `summary`, on the writer thread.

    Attributes:
      measured: Whether the GIL is.
    """

    def __init__(self) -> None:
        self.measured = False
        self._rows: dict[int, list[Any]] = {}  # by node, of gradients by its negative
        self._waiting: Newest[int] = Newest()  # calls of which the GIL probe may still speak
        self._changed: set[int] = set()
        self._good = True

    def call(self, ticket: Ticket, node: int, kind: str, failed: bool) -> None:
        """A call that ended was stored."""
        key = node if kind == "forward" else -node
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = [0, 0, 0, 0, 0, 0, None, None, None]
        ns = max(ticket.end_ns - ticket.start_ns, 0)
        self._changed.add(key)
        row[0] += 1
        row[1] += failed
        row[2] += ns
        if ns > row[3]:
            row[3] = ns
        if self.measured:
            self._waiting[ticket.call] = key

    def rejected(self, node: int) -> None:
        """A forward call that was stored turned out to have failed."""
        self._rows[node][1] += 1
        self._changed.add(node)

    def gil(self, call: int, times: tuple[int | None, ...]) -> None:
        """How long a call waited for the GIL, held it, let go of it and waited for it again."""
        key = self._waiting.pop(call, None)
        if key is None or times[0] is None:
            self._good = False
            return
        row = self._rows[key]
        self._changed.add(key)
        row[_MEASURED] += 1
        for place, ns in enumerate(times, _MEASURED + 1):
            if ns is not None:
                row[place] = ns + (row[place] or 0)

    def join(self, batch: Batch) -> None:
        """The sums that a batch's calls have changed come into the file with it: they are there if the program dies."""
        if self._good:
            for key in self._changed:
                batch.add("summary", abs(key), "forward" if key > 0 else "gradient", *self._rows[key])
        self._changed.clear()

    def are_of(self, calls: int, measured: int) -> bool:
        """Whether these are the sums of all that is stored.

        Args:
          calls: How many are stored.
          measured: How many of them have GIL timing.
        """
        counts = [sum(row[place] for row in self._rows.values()) for place in (0, _MEASURED)]
        return self._good and counts == [calls, measured]
