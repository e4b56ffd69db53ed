"""How many bytes a recording may take: of memory while it waits to be written, and of disk."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.pfrec.losses import Loss
from pyfunc_debug.recorder.losses import Losses
from pyfunc_debug.recorder.reserve import Reserve

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SMALLEST = 1_000_000


_FOLDER_PART = 4
_TEXT_LARGEST = 100_000
_TEXT_LEAST = 600
"""Texts of failures are cut to lengths between these, by the room that is left."""
_TEXT_SHARE = 16


def parse_budget(budget: str | int, folder: str | int | None) -> Budget:
    """The budget of a recording, which takes at most a quarter of that of its folder.

    Raises:
      BadOptionError: as `parse_bytes`; the folder's is too little.
    """
    own = parse_bytes(budget)
    if folder is None:
        return Budget(own)
    together = parse_bytes(folder, "folder_budget")
    if together < _FOLDER_PART * _SMALLEST:
        raise BadOptionError(f"folder_budget={folder!r} is too small: several recordings need at least 4MB")
    return Budget(min(own, together // _FOLDER_PART), together)


def parse_bytes(text: str | int, option: str = "budget") -> int:
    """`"256MB"` -> 256000000.

    Raises:
      BadOptionError: no such amount, or too little to hold any recording.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(text))
    unit = _UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise BadOptionError(f"{option}={text!r} is not an amount of bytes: write 64MB, 1GB or 500000000")
    amount = int(float(match.group(1)) * unit)
    if amount < _SMALLEST:
        raise BadOptionError(f"{option}={text!r} is too small: a recording needs at least 1MB")
    return amount


@dataclass(frozen=True)
class Budget:
    """Limits that follow from one number.

    Attributes:
      folder_bytes: What all recordings in the folder may take together (folder_budget.py); None: that is not asked.
      file_bytes: The file with its log stays below this. Beyond `values_bytes` values are dropped, beyond `calls_bytes`
        calls are counted but not stored, but for the first of each node, its slowest, those with NaN and those that a
        finding names, up to `marked_bytes`, and those that fail, up to `failures_bytes`: all these with their values.
        What is left is for nodes, traces and counts, for the log of one commit, and at the end for calls that were
        held back.
      contents_bytes: What is kept in full takes the file and its log, where it stands a second time, no further.
      reserve_calls: How many of the newest calls, of the slowest, and of each node's slowest are held back.
      log_bytes: Where the log is folded into the file.
      batch_rows: How many rows are written at a time: they go into the log first, whatever is left.
      last_rows: The same when few calls have room.
      queue_bytes: Values waiting to be written keep at most this much memory alive.
      queue_calls: How many calls may wait; more are counted but not stored.
      ring_calls: How many finished calls stand in the ring beside the file, until it is complete.
      ring_given: Of how many of them it says what they were given.
    """

    file_bytes: int
    folder_bytes: int | None = None

    @property
    def values_bytes(self) -> int:
        return int(self.file_bytes * 0.75)

    @property
    def contents_bytes(self) -> int:
        return int(self.file_bytes * 0.92)

    @property
    def calls_bytes(self) -> int:
        return int(self.file_bytes * 0.86)

    @property
    def marked_bytes(self) -> int:
        return int(self.file_bytes * 0.885)

    @property
    def failures_bytes(self) -> int:
        return int(self.file_bytes * 0.92)

    @property
    def reserve_calls(self) -> int:
        return min(max(self.file_bytes // 100 // 3 // 200, 10), 1000)

    @property
    def log_bytes(self) -> int:
        return self.file_bytes // 16

    @property
    def batch_rows(self) -> int:
        return max(self.file_bytes // 64 // 300, self.last_rows)

    @property
    def last_rows(self) -> int:
        return 16

    @property
    def queue_bytes(self) -> int:
        return min(max(self.file_bytes // 4, 1 << 20), 128 << 20)

    @property
    def queue_calls(self) -> int:
        return 200_000

    @property
    def ring_calls(self) -> int:
        return min(max(self.file_bytes // 16 // 64, 1024), 65_536)

    @property
    def ring_given(self) -> int:
        return min(self.file_bytes // 4000, 4096)


class Allowance:
    """What the file still takes. The writer thread's own.

    Attributes:
      keep_values, keep_calls, keep_marked, keep_failures: Whether there is room for them.
      why: Why there is not.
      losses: What was lost.
      reserve: Calls that may be stored at the end although there is no room for all.
      stored: Whether contents with a digest are in the file already.
    """

    def __init__(self) -> None:
        self.keep_values = True
        self.keep_calls = True
        self.keep_marked = True
        self.keep_failures = True
        self.why = Loss.BUDGET
        self.losses = Losses()
        self.reserve = Reserve()
        self.stored: Callable[[bytes], bool] = lambda digest: False
        self._room = self._text_room = 1 << 62

    def open(self, budget: Budget, stored: Callable[[bytes], bool]) -> None:
        """The file is open."""
        self.stored = stored
        self._room = budget.contents_bytes // 2
        self._text_room = budget.calls_bytes // 2
        self.reserve.limit = budget.reserve_calls

    def update(self, budget: Budget, size: int, log: int) -> None:
        """The file has grown to this many bytes, and its log to that many."""
        self.keep_values = size < budget.values_bytes
        self.keep_calls = size + log < budget.calls_bytes
        self.keep_marked = size + log < budget.marked_bytes
        self.keep_failures = size + log < budget.failures_bytes
        # What is added stands in the log and in the file for a while.
        self._room = min(budget.values_bytes - size, (budget.contents_bytes - size - log) // 2)
        self._text_room = ((budget.calls_bytes if self.keep_calls else budget.failures_bytes) - size - log) // 2

    def stop(self, why: Loss) -> None:
        """Nothing more is stored."""
        self.why = why
        self.keep_calls = self.keep_values = self.keep_marked = self.keep_failures = False

    def fits(self, size: int) -> bool:
        """Whether there is room for contents of this size."""
        return size <= self._room

    def take(self, size: int) -> None:
        """Takes room for contents."""
        self._room -= size

    @property
    def text_chars(self) -> int:
        """How long a text of a failure may be: a few long ones must not take the room of those that come later."""
        return min(max(self._text_room // _TEXT_SHARE, _TEXT_LEAST), _TEXT_LARGEST)

    def take_text(self, chars: int) -> None:
        """Takes room for a text of a failure."""
        self._text_room -= chars
