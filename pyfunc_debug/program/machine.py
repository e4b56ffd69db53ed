"""What else the machine did meanwhile: the CPU time of other processes."""

from __future__ import annotations

import os
import time

_LEAST_S = 0.5
"""Linux counts in hundredths of a second for each core: of a shorter time it says too little."""
_BUSY = (0, 1, 2, 5, 6, 7)
"""Fields of /proc/stat's line `cpu`: user, nice, system, irq, softirq, and steal, which another guest has (proc(5))."""


class Beside:
    """The CPU time of all other processes since it was made.

    Children of this process are its own where they have ended and it waited for them.
    """

    def __init__(self) -> None:
        self._begin_s = time.monotonic()
        self._own_s, self._all_s = _own_s(), _all_s()

    def share(self) -> float | None:
        """The share of all cores of this machine that other processes used, from 0 to 1; None where it is not known.

        Source: /proc/stat and times(2).
        """
        now_s, elapsed_s = _all_s(), time.monotonic() - self._begin_s
        if now_s is None or self._all_s is None or elapsed_s < _LEAST_S:
            return None
        others_s = (now_s - self._all_s) - (_own_s() - self._own_s)
        return round(min(1.0, max(0.0, others_s / (elapsed_s * (os.cpu_count() or 1)))), 3)


def _own_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _all_s() -> float | None:
    try:
        with open("/proc/stat") as file:
            fields = file.readline().split()[1:]
        return sum(int(fields[one]) for one in _BUSY) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
