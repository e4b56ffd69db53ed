"""What did not come into the file, by its true reason: the calls that began are those stored plus those lost."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from pyfunc_debug.pfrec.losses import Loss
from pyfunc_debug.recorder.ticket import Ticket
from pyfunc_debug.values import QUEUE_FULL, TOO_LARGE

NOTES = {why: f"dropped: {why.said('')}" for why in (Loss.DISK, Loss.LIMIT, Loss.LOCKED, Loss.IO)}
"""What is noted of a value that found no room while nothing could be written."""
DROPPED = {QUEUE_FULL: Loss.QUEUE, TOO_LARGE: Loss.LARGE, **{note: why for why, note in NOTES.items()}}
"""Why a value is missing, by its note."""


class Losses:
    """Counts. The hot path counts here what it has to drop; all else is the writer thread's.

    Attributes:
      waiting: Why nothing can be written just now, or None. What then finds no room in the queue is lost for that.
      without_values: How many calls are stored without values, as there is no room for values any more.
      newest: How many of the newest calls are stored although the budget was used up before them.
      changed: Whether something was counted since `report`.
    """

    def __init__(self) -> None:
        self.waiting: Loss | None = None
        self.without_values = 0
        self.newest = 0
        self.changed = False
        self._calls: dict[tuple[str, Loss], list[int]] = {}  # token and reason -> calls, errors, ns
        self._values: Counter[Loss] = Counter()
        self._runs: Counter[Loss] = Counter()
        self._lock = threading.RLock()  # only taken when something is lost already; the count must be exact

    def call(self, ticket: Ticket, why: Loss) -> None:
        """A call that could not be queued, or not be stored."""
        with self._lock:
            counts = self._calls.setdefault((ticket.token, why), [0, 0, 0])
            counts[0] += 1
            counts[1] += ticket.failure is not None
            counts[2] += max(ticket.end_ns - ticket.start_ns, 0)
            self.changed = True

    def found(self, ticket: Ticket, why: Loss) -> None:
        """A call that was counted as lost is stored after all."""
        with self._lock:
            counts = self._calls[ticket.token, why]
            counts[0] -= 1
            counts[2] -= max(ticket.end_ns - ticket.start_ns, 0)
            self.changed = True

    def left_out(self, token: str, calls: int, ns: int) -> None:
        """How many calls of a node sampling has left out so far, and how long they took."""
        with self._lock:
            counts = self._calls.setdefault((token, Loss.SAMPLED), [0, 0, 0])
            self.changed = self.changed or counts[0] != calls
            counts[0], counts[2] = calls, ns

    def only_left_out(self) -> bool:
        """Whether no call was lost but those that sampling left out."""
        with self._lock:
            return all(why is Loss.SAMPLED or not counts[0] for (_, why), counts in self._calls.items())

    def run(self, why: Loss) -> None:
        """A run that could not be queued, or not be stored."""
        with self._lock:
            self._runs[why] += 1
            self.changed = True

    def values(self, count: int, why: Loss) -> None:
        """Values that were not kept, of calls that are stored."""
        if count:
            self._values[why] += count
            self.changed = True

    def unfinished(self, begun: int, stored: int) -> None:
        """The recording ended: what began and is neither stored nor lost was between two of our steps just then."""
        with self._lock:
            self._calls.pop(("", Loss.END), None)
            rest = begun - stored - sum(counts[0] for counts in self._calls.values())
            if rest > 0:
                self._calls["", Loss.END] = [rest, 0, 0]

    def by_token(self) -> dict[str, tuple[int, int, int]]:
        """Calls by token: how many, how many of them failed, and how long they took in ns."""
        found: dict[str, tuple[int, int, int]] = {}
        with self._lock:
            for (token, _), counts in self._calls.items():
                calls, errors, ns = found.get(token, (0, 0, 0))
                found[token] = (calls + counts[0], errors + counts[1], ns + counts[2])
        return found

    def report(self) -> dict[str, Any]:
        """What the recording's `meta["dropped"]` says."""
        self.changed = False
        with self._lock:
            calls: Counter[Loss] = Counter()
            failed: Counter[Loss] = Counter()
            for (_, why), counts in self._calls.items():
                calls[why] += counts[0]
                failed[why] += counts[1]
            kinds = {"calls": calls, "values": self._values, "runs": self._runs}
            reasons = {**kinds, "failed": +failed} if +failed else kinds
            return {
                **{kind: sum(counts.values()) for kind, counts in kinds.items()},
                "without_values": self.without_values,
                "newest": self.newest,
                "reasons": {kind: {why.value: n for why, n in counts.items() if n} for kind, counts in reasons.items()},
            }
