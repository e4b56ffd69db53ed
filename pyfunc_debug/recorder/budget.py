"""How many bytes a recording may take: of memory while it waits to be written, and of disk."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.recorder.ticket import Ticket

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SMALLEST = 1_000_000


def parse_bytes(text: str | int) -> int:
    """`"256MB"` -> 256000000.

    Raises:
      BadOptionError: no such amount, or too little to hold any recording.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(text))
    unit = _UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise BadOptionError(f"budget={text!r} is not an amount of bytes: write 64MB, 1GB or 500000000")
    amount = int(float(match.group(1)) * unit)
    if amount < _SMALLEST:
        raise BadOptionError(f"budget={text!r} is too small: a recording needs at least 1MB")
    return amount


@dataclass(frozen=True)
class Budget:
    """Limits that follow from one number.

    Attributes:
      file_bytes: The file stays below this. Beyond `values_bytes` values are dropped, beyond `calls_bytes` calls are
        counted but not stored, but for those that fail: they are stored up to `failures_bytes`. What is left is for
        nodes, traces and counts.
      queue_bytes: Values waiting to be written keep at most this much memory alive.
      queue_calls: How many calls may wait; more are counted but not stored.
      ring_calls: How many finished calls stand in the ring beside the file, until it is complete.
    """

    file_bytes: int

    @property
    def values_bytes(self) -> int:
        return int(self.file_bytes * 0.75)

    @property
    def calls_bytes(self) -> int:
        return int(self.file_bytes * 0.95)

    @property
    def failures_bytes(self) -> int:
        return int(self.file_bytes * 0.98)

    @property
    def queue_bytes(self) -> int:
        return min(max(self.file_bytes // 4, 1 << 20), 128 << 20)

    @property
    def queue_calls(self) -> int:
        return 200_000

    @property
    def ring_calls(self) -> int:
        return min(max(self.file_bytes // 16 // 64, 1024), 65_536)


class Allowance:
    """What the file still takes, and what was dropped because it does not.

    The hot path counts here what it has to drop; all else is the writer thread's.

    Attributes:
      keep_values, keep_calls, keep_failures: Whether there is room for them.
      dropped_values, dropped_runs: How many were dropped.
      emptied: Tokens of nodes whose values are not taken any more, since there is no room for them.
      without_values: How many of their calls are stored.
      stored: Whether contents with a digest are in the file already.
    """

    def __init__(self) -> None:
        self.keep_values = True
        self.keep_calls = True
        self.keep_failures = True
        self.dropped_values = 0
        self.dropped_runs = 0
        self.emptied: set[str] = set()
        self.without_values = 0
        self.stored: Callable[[bytes], bool] = lambda digest: False
        self._room = 1 << 62
        self._dropped_calls: dict[str, list[int]] = {}  # token -> calls, errors, ns
        self._lock = threading.RLock()  # only taken when something is lost already; the count must be exact

    def open(self, budget: Budget, stored: Callable[[bytes], bool]) -> None:
        """The file is open."""
        self.stored = stored
        self._room = budget.values_bytes

    def update(self, budget: Budget, size: int) -> None:
        """The file has grown to this many bytes."""
        self.keep_values = size < budget.values_bytes
        self.keep_calls = size < budget.calls_bytes
        self.keep_failures = size < budget.failures_bytes
        self._room = budget.values_bytes - size

    def stop(self) -> None:
        """The file is full."""
        self.keep_calls = self.keep_values = self.keep_failures = False

    def take(self, size: int) -> bool:
        """Whether there is room for contents of this size, which is taken; else they count as dropped."""
        if size > self._room:
            self.dropped_values += 1
            return False
        self._room -= size
        return True

    def count_dropped(self, ticket: Ticket) -> None:
        """A call that could not be queued, or not be stored."""
        with self._lock:
            counts = self._dropped_calls.setdefault(ticket.token, [0, 0, 0])
            counts[0] += 1
            counts[1] += ticket.failure is not None
            counts[2] += ticket.end_ns - ticket.start_ns

    def count_dropped_run(self) -> None:
        """A run that could not be queued, or not be stored."""
        with self._lock:
            self.dropped_runs += 1

    def count_dropped_values(self, count: int) -> None:
        """Values that were not kept."""
        self.dropped_values += count

    def dropped_calls(self) -> dict[str, tuple[int, int, int]]:
        """By token: calls, how many of them failed, and how long they took in ns."""
        with self._lock:
            return {token: (counts[0], counts[1], counts[2]) for token, counts in self._dropped_calls.items()}
