"""What the recordings of a folder may take together: each process looks at the folder and takes part of what is left.

None asks another one or waits for it. A process looks once a second, and until its next look it takes at most half of
what is left, divided by the recordings that are being written: so all together stay below, whoever looks when. Only
processes that begin in the same moment do not see one another before the next look.
"""

from __future__ import annotations

import os
import time

from pyfunc_debug.recorder.budget import Budget

_PERIOD_NS = 1_000_000_000


class FolderBudget:
    """The writer thread's own.

    Args:
      budget: The recording's, with the folder's.

    Attributes:
      used_up: Whether less than the recording's own budget was left for it, and that was used up.
    """

    def __init__(self, budget: Budget) -> None:
        self._own = self._now = budget
        self._looked_ns = 0
        self.used_up = False

    def now(self, path: str, size: int) -> Budget:
        """What the recording at this path, of this size, may take for now.

        Args:
          path: The file.
          size: Its bytes, with its log.
        """
        folder = self._own.folder_bytes
        if folder is not None and time.monotonic_ns() - self._looked_ns >= _PERIOD_NS:
            self._looked_ns = time.monotonic_ns()
            try:
                taken, writers = _look(os.path.dirname(path) or ".")
            except OSError:  # not known just now
                return self._now
            left = max(folder - taken, 0) // (2 * max(writers, 1))
            self._now = Budget(min(self._own.file_bytes, size + left), folder)
        if self._now.file_bytes < self._own.file_bytes and size >= self._now.values_bytes:
            self.used_up = True
        return self._now


def _look(folder: str) -> tuple[int, int]:
    """Bytes of all recordings in a folder with their logs, and how many are being written.

    The ring beside each of these is not counted: it has holes, and goes when the recording is complete.
    """
    taken = writers = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            log = entry.name.endswith((".pfrec-wal", ".pfrec-journal"))
            if log or entry.name.endswith(".pfrec"):
                try:
                    taken += entry.stat().st_size
                except FileNotFoundError:  # a log that was folded meanwhile
                    continue
                writers += log
    return taken, writers
