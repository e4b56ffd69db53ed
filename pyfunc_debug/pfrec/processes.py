"""Which process writes a recording, and whether it still runs.

A number alone does not tell: numbers are used again, each container has a process 1, and a file is read on other
machines. So it goes with the start time, the machine's boot and the namespace that numbers it; where this system
cannot see the process, a lock on its ring tells. Never a clock: a process that is stopped, or starved, lives.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from typing import Any

from pyfunc_debug.pfrec.ring import is_held, place_of


def identity(pid: int | None = None) -> dict[str, Any]:
    """What tells a process from others: `pid`, and if the system says them `start`, `boot`, `namespace`, `clocks`."""
    pid = os.getpid() if pid is None else pid
    found: dict[str, Any] = {"pid": pid}
    with contextlib.suppress(OSError, ValueError, IndexError):
        found["boot"] = _read("/proc/sys/kernel/random/boot_id").strip()
        found["namespace"] = os.readlink("/proc/self/ns/pid")
        # The name in parentheses may hold anything: what follows the last one is plain (man 5 proc).
        state, *fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        found["start"] = int(fields[18]) if state not in "ZX" or _has_threads(pid) else None
        found["clocks"] = os.readlink("/proc/self/ns/time")  # whose monotonic clock it reads (Linux 5.6)
    return found


def _has_threads(pid: int) -> bool:
    """Whether threads of a process run on after its first: without any, it has ended and nobody has asked how yet."""
    return len(os.listdir(f"/proc/{pid}/task")) > 1


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def lives(pid: int) -> bool:
    """Whether a process of this number runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, and is another user's
        return True
    return True


def writer_lives(path: str, meta: Mapping[str, Any]) -> bool:
    """Whether the process that wrote a recording may still run; True where that cannot be known.

    Args:
      path: The recording.
      meta: Its table `meta`: `pid`, `host`, `process` (an `identity`, and `lock`: its ring has one; not in older ones).
    """
    pid, writer = meta.get("pid"), meta.get("process")
    if not isinstance(pid, int):
        return True
    here = identity(pid)
    if not isinstance(writer, dict) or "boot" not in writer or "boot" not in here:
        return meta.get("host") != socket.gethostname() or lives(pid)
    if writer["boot"] != here["boot"]:  # another machine, or this one was started again
        return meta.get("host") != socket.gethostname()
    if writer.get("namespace") == here.get("namespace"):
        return lives(pid) and writer.get("start") == here.get("start", writer.get("start"))
    # A container: its processes cannot be seen from here.
    return not writer.get("lock") or is_held(place_of(path, meta))
