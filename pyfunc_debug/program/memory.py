"""How much memory this process has."""

from __future__ import annotations

import os


def resident_bytes() -> int:
    """Bytes of memory that this process has; 0 where that cannot be asked."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
