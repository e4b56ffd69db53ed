"""Calls held back from a used-up budget: the newest, the slowest and each node's slowest are stored at the end."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

from pyfunc_debug.recorder.ticket import EMPTY, Ticket

_ROOM_BYTES = 4096
"""A call that is held back keeps its values if it was worth taking them, and they weigh no more."""


class Reserve:
    """Calls that are counted as lost, until some of them are stored after all. The writer thread's own.

    Args:
      forget: Takes the number of each call that will not be stored.

    Attributes:
      limit: How many calls of each sort are held back.
    """

    def __init__(self, forget: Callable[[int], None] = lambda call: None) -> None:
        self.limit = 0
        self.forget = forget
        self._newest: deque[Ticket] = deque()
        self._slowest: list[tuple[int, int, Ticket]] = []
        self._by_node: dict[str, Ticket] = {}  # the slowest of each
        self._named: set[int] = set()
        self._tickets: dict[int, Ticket] = {}
        self._uses: Counter[int] = Counter()  # in how many of these a call is
        self._gil: dict[int, tuple[Any, ...]] = {}

    def __contains__(self, call: int) -> bool:
        return call in self._tickets

    def __len__(self) -> int:
        return len(self._tickets)

    def offer(self, ticket: Ticket) -> None:
        """A call that the budget has no room for."""
        if not self.limit:
            self.forget(ticket.call)
            return
        if ticket.late <= EMPTY or ticket.room > _ROOM_BYTES:
            _without_values(ticket)
        self._tickets[ticket.call] = ticket
        self._newest.append(ticket)
        self._uses[ticket.call] = 1
        duration = ticket.end_ns - ticket.start_ns
        if len(self._slowest) < self.limit or duration > self._slowest[0][0]:
            self._uses[ticket.call] += 1
            heapq.heappush(self._slowest, (duration, ticket.call, ticket))
            if len(self._slowest) > self.limit:
                self._leave(heapq.heappop(self._slowest)[2])
        known = self._by_node.get(ticket.token)
        if known is not None and duration > known.end_ns - known.start_ns:
            self._uses[ticket.call] += 1
            self._by_node[ticket.token] = ticket
            self._leave(known)
        elif known is None and len(self._by_node) < self.limit:
            self._uses[ticket.call] += 1
            self._by_node[ticket.token] = ticket
        if len(self._newest) > self.limit:
            self._leave(self._newest.popleft())

    def name(self, call: int) -> None:
        """A finding may show this call, which is stored then if it is held back now."""
        if call in self._tickets and call not in self._named and len(self._named) < self.limit:
            self._named.add(call)
            self._uses[call] += 1

    def measured(self, rows: Iterable[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
        """Keeps what the GIL probe says of calls that are held back; gives the other rows back."""
        for row in rows:
            if row[0] in self._tickets:
                self._gil[row[0]] = row
            else:
                yield row

    @property
    def newest(self) -> int:
        """How many of the newest calls are held back."""
        return len(self._newest)

    def take(self) -> tuple[list[Ticket], list[tuple[Any, ...]]]:
        """Empties it: the calls in their order, the slowest with their values, and the rows of their GIL timing."""
        tickets = [self._tickets[call] for call in sorted(self._tickets)]
        room = self.limit // 2
        for ticket in sorted(tickets, key=lambda one: one.start_ns - one.end_ns):
            room -= len(ticket.inputs or ()) + len(ticket.outputs or ())
            if room < 0:
                _without_values(ticket)
        rows = list(self._gil.values())
        for held in (self._newest, self._slowest, self._by_node, self._named, self._tickets, self._uses, self._gil):
            held.clear()
        return tickets, rows

    def _leave(self, ticket: Ticket) -> None:
        self._uses[ticket.call] -= 1
        if not self._uses[ticket.call]:
            del self._uses[ticket.call], self._tickets[ticket.call]
            self._gil.pop(ticket.call, None)
            self.forget(ticket.call)


def _without_values(ticket: Ticket) -> None:
    ticket.inputs = ticket.outputs = None
    if ticket.policy:
        ticket.late = EMPTY
