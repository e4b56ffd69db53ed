"""Whether a recording still has room where it is, and whether it still is where it was."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from pyfunc_debug.pfrec.losses import Loss

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_RESERVE = 128 << 10
"""So much of a disk is never used up: how the recording ended, and what was lost, is written there."""


def no_room(folder: str, size: int, log: int, more: int) -> Loss | None:
    """Why there is no room for a batch: the disk, or the limit on this process's files; None if there is.

    Args:
      folder: Where the recording is.
      size: Bytes of the database when its log is folded into it.
      log: Bytes of the log.
      more: What the batch takes, which goes into the log first.
    """
    with contextlib.suppress(OSError, AttributeError):
        disk = os.statvfs(folder)
        if disk.f_bavail * disk.f_frsize < _RESERVE + log + 2 * more:
            return Loss.DISK
    if resource is not None:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        if limit != resource.RLIM_INFINITY and max(size, log) + more + _RESERVE > limit:
            return Loss.LIMIT
    return None


@dataclass(frozen=True)
class Place:
    """Which file was opened under a path.

    Attributes:
      file: Its device and number.
      descriptor: One of this process's that has it open, on Linux. To open it once more and close that would take
        SQLite's locks away.
    """

    file: tuple[int, int]
    descriptor: int | None

    @classmethod
    def of(cls, path: str) -> Place:
        """What is there now, opened by this process."""
        found = os.stat(path)
        file = (found.st_dev, found.st_ino)
        with contextlib.suppress(OSError):
            for name in os.listdir("/proc/self/fd"):
                with contextlib.suppress(OSError):
                    one = os.stat(f"/proc/self/fd/{name}")
                    if (one.st_dev, one.st_ino) == file:
                        return cls(file, int(name))
        return cls(file, None)

    def now(self, path: str) -> str | None:
        """Where the file is now: `path`, another one if it was moved, None if it was deleted."""
        try:
            found = os.stat(path)
            if (found.st_dev, found.st_ino) == self.file:
                return path
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:  # not known just now
            return path
        with contextlib.suppress(OSError):
            link = f"/proc/self/fd/{self.descriptor}"
            if self.descriptor is not None and os.stat(link).st_nlink:
                moved = os.readlink(link)
                if (os.stat(moved).st_dev, os.stat(moved).st_ino) == self.file:
                    return moved
        return None
