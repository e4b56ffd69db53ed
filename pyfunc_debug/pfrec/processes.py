"""Whether the process that writes a recording still runs."""

from __future__ import annotations

import os


def lives(pid: int) -> bool:
    """Whether a process of this number runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, and is another user's
        return True
    return True
