"""What happens on the hot path before and after each body: no lock, no waiting, no I/O, no formatting.

On Linux a C extension does the same (_hot.c); this is what runs where it was not built.
"""

from __future__ import annotations

import itertools
from _thread import get_ident, get_native_id
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic_ns, thread_time_ns
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pyfunc_debug.events import LiveRuns
from pyfunc_debug.pfrec.ring import Ring
from pyfunc_debug.recorder.budget import Budget
from pyfunc_debug.recorder.sampling import NANS, SLOWEST, Tally, any_nan, are_unchanged, nan_part
from pyfunc_debug.recorder.ticket import AFTER, EMPTY, KEPT, NOT_MEASURED, Ticket, cpu_since
from pyfunc_debug.values import Held, Policy, hold_quickly

SKIP = -1
"""Policy of a node outside the `nodes` glob."""
NO_ROOM = 16
"""Is added to the policy of a node whose values have no room any more: they are taken of its first calls, and once the
body has run of those that failed, gave a NaN or are among its slowest."""
FIRST = 3
"""This many first calls of a node are stored with their values then."""
SHORT_NS = 100_000
"""A body that takes less is short: to ask for its CPU time, a system call, would be a third of what recording costs."""
STREAK = 8
"""After this many short calls of a node one after the other ..."""
EVERY = 16
"""... the CPU time of every sixteenth is measured, until one is long. With GIL timing, that of all calls is."""


ROUSE_PART = 8
"""A writer that sleeps although something waits for it is woken when this part of the queue's room is taken."""
_MOST_GIVEN = 256


class Owner(Protocol):
    """What a hot path asks of its recorder, which is rare without values."""

    def register(self, token: str, args: Any) -> tuple[str, int]: ...
    def register_thread(self, native_id: int) -> None: ...
    def hold_values(self, values: Any, policy: int, room: int) -> tuple[Sequence[Held] | None, int]: ...
    def count_dropped(self, ticket: Ticket) -> None: ...


class HotPath:
    """Makes a ticket for each call, and gives it to the writer when the call has ended.

    Args:
      recorder: Who is asked.
      queue: To the writer.
      open_calls: Calls in progress.
      known: Policy of each token.
      live: Runs in flight.
      budget: How much may wait.

    Attributes:
      accepting: Whether calls are recorded.
      asleep: Whether the writer sleeps for long: a call that begins wakes it; where calls are sampled, a queue that
        fills up.
      rouse: Wakes it.
      all_cpu: Whether the CPU time of every call is wanted.
      live: Runs in flight.
      calls: How many have begun.
      ring: Where calls are noted at once, in memory that outlives the process; or None (`pfrec.ring.Ring`).
      first, every: Of each node the first `first` calls are stored, and then each `every`-th; `every` 0: all.
      wanted: Whether sampling takes any now.
      tallies: What it knows of each node, by token.
      queued_bytes: What the values of calls that wait or are in progress keep alive. Without a lock: two threads may
        lose one another's update.
    """

    def __init__(
        self, recorder: Owner, queue: deque[Any], open_calls: dict[int, Ticket], known: dict[str, int], live: LiveRuns,
        budget: Budget,
    ) -> None:  # fmt: skip
        self.accepting = True
        self.all_cpu = False
        self.asleep = False
        self.rouse: Callable[[], None] | None = None
        self.live = live
        self.ring: Ring | None = None
        self._recorder = recorder
        self._queue = queue
        self._open = open_calls
        self._known = known
        self._queue_calls = budget.queue_calls
        self._queue_bytes = budget.queue_bytes
        self.queued_bytes = 0
        self._ids = itertools.count(1)
        self._met: set[int] = set()
        self._streaks: dict[str, int] = {}
        self.first = self.every = 0
        self.wanted = True
        self.tallies: dict[str, Tally] = {}

    @property
    def calls(self) -> int:
        return int(repr(self._ids)[len("count(") : -1]) - 1  # the only look at it that takes none

    def enter(self, token: str, args: Any) -> Ticket | None:
        """A call is about to start."""
        if not self.accepting:
            return None
        entered_ns = monotonic_ns()
        policy = self._known.get(token)
        if policy is None:
            token, policy = self._recorder.register(token, args)
        if policy == SKIP:
            return None
        if self.asleep and not self.every:
            self._rouse()
        ticket = Ticket()
        ticket.entered_ns = entered_ns
        ticket.call = call = next(self._ids)
        ticket.token = token
        ticket.recorder = self._recorder
        ticket.policy = policy % NO_ROOM
        if self.every or policy >= NO_ROOM:
            node = self.tallies.setdefault(token, Tally())
            before, node.calls = node.calls, node.calls + 1
            if self.every:
                ticket.light = not self.wanted or (before >= self.first and (before - self.first + 1) % self.every > 0)
            if policy >= NO_ROOM:
                ticket.late = KEPT if before < FIRST else EMPTY
        if ticket.light or ticket.late == EMPTY:
            ticket.args = args
        elif policy:
            self._take(ticket, args, True)
        ticket.runs = self.live.now()
        ticket.thread = thread = get_native_id()
        ticket.ident = get_ident()
        if thread not in self._met:
            self._recorder.register_thread(thread)
            self._met.add(thread)
        ticket.start_ns = monotonic_ns()  # set again when all is ready; the worker may look at open calls at any moment
        self._open[call] = ticket
        if self.ring is not None:
            self.ring.begin(ticket)
        measured = not ticket.light and (self.all_cpu or self._wants_cpu(token))
        ticket.cpu_start_ns = thread_time_ns() if measured else NOT_MEASURED
        ticket.start_ns = monotonic_ns()
        return ticket

    def leave(self, ticket: Ticket | None, outputs: Any) -> Any:
        """The body returned; gives its outputs back."""
        if ticket is None:
            return outputs
        ticket.end_ns = monotonic_ns()
        ticket.cpu_ns = cpu_since(ticket.cpu_start_ns)
        if not self.all_cpu and not ticket.light:
            short = ticket.end_ns - ticket.start_ns < SHORT_NS
            self._streaks[ticket.token] = self._streaks.get(ticket.token, 0) + 1 if short else 0
        if not ticket.light:
            ticket.given = _given(outputs)
        if ticket.policy and not ticket.light and ticket.late != EMPTY:
            self._take(ticket, outputs, False)
        self.finish(ticket, outputs)
        return outputs

    def gather(self, least_ns: int) -> None:
        """Puts calls that took the shortcut and began `least_ns` ago or earlier among the open ones: only in _hot.c."""

    def _rouse(self) -> None:
        if self.rouse is not None:
            self.asleep = False
            self.rouse()

    def _wants_cpu(self, token: str) -> bool:
        streak = self._streaks.get(token, 0)
        return streak < STREAK or streak % EVERY == 0

    def _take(self, ticket: Ticket, values: Any, inputs: bool) -> None:
        began_ns = monotonic_ns()
        room = self._queue_bytes - self.queued_bytes
        taken: tuple[Sequence[Held] | None, int] | None = None
        if hold_quickly is not None and ticket.policy in (Policy.SHAPE, Policy.SUMMARY):
            taken = hold_quickly(values, ticket.policy, room)
        held, size = taken or self._recorder.hold_values(values, ticket.policy, room)
        if inputs:
            ticket.inputs = held
        else:
            ticket.outputs = held
        ticket.room += size
        self.queued_bytes += size
        ticket.values_ns += monotonic_ns() - began_ns

    def _settle(self, ticket: Ticket, outputs: Any) -> bool:
        """Whether a call is stored, which sampling may have left out; takes its values if it is worth that."""
        node = self.tallies[ticket.token]
        ns = ticket.end_ns - ticket.start_ns
        slow = node.is_slow(ns)
        light, late = ticket.light, ticket.late == EMPTY
        looked = ticket.policy > 0 and outputs is not None and (light or (late and node.nans < NANS))
        nan = looked and any_nan(outputs, node.calls, nan_part(ns))
        self._open.pop(ticket.call, None)  # first: what the writer has shown as running until now is stored
        if not (light or late):
            return True
        failed = ticket.failure is not None
        why = "failed" if failed else "NaN" if nan else "long" if ticket.kept else "slow" if slow else None
        if why is None:
            if light:
                node.left += 1
                node.ns += ns
            return not light
        if light:
            ticket.extra, ticket.light = why, False
            if outputs is not None:
                ticket.given = _given(outputs)
        if ticket.policy:
            node.nans += late and nan
            unchanged = are_unchanged(ticket.args)
            if late:
                ticket.late = KEPT if unchanged else AFTER
            if late or unchanged:
                self._take(ticket, ticket.args, True)
            if outputs is not None:
                self._take(ticket, outputs, False)
        return True

    def finish(self, ticket: Ticket, outputs: Any = None) -> None:
        """Gives a ticket whose end is noted to the writer."""
        stored = self._settle(ticket, outputs) if self.every or ticket.late == EMPTY else True
        if self.ring is not None:
            self.ring.end(ticket)
        self._open.pop(ticket.call, None)
        ticket.args = None
        if not stored:
            return
        if self.asleep and (
            len(self._queue) > self._queue_calls // ROUSE_PART or self.queued_bytes > self._queue_bytes // ROUSE_PART
        ):
            self._rouse()
        if len(self._queue) < self._queue_calls:
            self._queue.append(ticket)
        else:
            self._recorder.count_dropped(ticket)


def _given(outputs: Any) -> Any:
    if outputs is None:
        return ()
    if type(outputs) is tuple or (type(outputs) is list and len(outputs) > _MOST_GIVEN):
        return None
    return tuple(map(_given_one, outputs)) if type(outputs) is list else _given_one(outputs)


def _given_one(value: Any) -> Any:
    if type(value) is not np.ndarray:
        return True
    if value.dtype.char == "O" and value.size and not isinstance(value.item(0), (bytes, str)):
        return False
    return value.dtype


def works(kind: Any) -> bool:
    """Whether a class does what `HotPath` does: an extension built from an older source would record no calls."""
    queue: deque[Any] = deque()
    owner: Any = _Trial()
    try:
        path = kind(owner, queue, {}, {}, LiveRuns(), Budget(1_000_000))
        ticket = path.enter("", ())
        assert isinstance(ticket, Ticket)
        one = path.leave(ticket, path) is path and list(queue) == [ticket] and ticket.call == 1 and owner.threads == 1
        path.first, path.every = 0, 1 << 60
        for _ in range(SLOWEST + 3):
            path.leave(path.enter("", ()), None)
        return one and len(queue) > SLOWEST and path.tallies[""].calls == SLOWEST + 3
    except Exception:
        return False


class _Trial:
    """An `Owner` of no consequence."""

    threads = 0

    def register(self, token: str, args: Any) -> tuple[str, int]:
        return token, 0

    def register_thread(self, native_id: int) -> None:
        self.threads += 1


Shortcut: Any = None
"""`Shortcut(full, original, others, profiled, in_progress, raised)` of _hot.c, or None: see `Relay.shortcut`."""

if not TYPE_CHECKING:
    try:
        from pyfunc_debug.recorder._hot import HotPath as _InC
        from pyfunc_debug.recorder._hot import Shortcut as _Shortcut
    except ImportError:  # no compiler when it was installed, or another system
        pass
    else:
        if works(_InC):
            HotPath, Shortcut = _InC, _Shortcut

__all__ = ["FIRST", "NO_ROOM", "SKIP", "HotPath", "Shortcut"]
