"""What `record` still does where its program was killed: it completes the recording and says how the program ended.

A process waits for that. The program's own `os.wait()` does not find it, as it is not a child. It has a session of its
own, so that what ends the program by its terminal does not end it, and it is gone as soon as the program is. Only where
Linux tells of a process's end (`pidfd_open`, Linux 5.3) and the program has no thread yet; elsewhere the next command
that reads the recording completes it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def watch(path: str) -> None:
    """Waits, in a process of its own, for the end of this one. Where there are threads already it does nothing.

    Args:
      path: The recording that this process will write.
    """
    if not hasattr(os, "pidfd_open") or len(os.listdir("/proc/self/task")) > 1:
        return
    program = os.getpid()
    try:
        ended = os.pidfd_open(program)
    except OSError:  # an older kernel, or a container that forbids it
        return
    child = -1
    with contextlib.suppress(OSError):  # no more processes for this user
        child = os.fork()
    if child:
        os.close(ended)
        if child > 0:
            os.waitpid(child, 0)
        return
    try:
        if os.fork() == 0:
            _wait(ended)
            _tell(path, program)
    finally:
        os._exit(0)


def _wait(ended: int) -> None:
    """Returns as the program has ended. Holds nothing meanwhile that others wait for: no pipe."""
    os.setsid()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    select.select([ended], [], [])


def _tell(path: str, program: int) -> None:
    from pyfunc_debug.analysis.death import death_lines
    from pyfunc_debug.pfrec import Reader

    if not os.path.exists(path):
        return
    with contextlib.closing(Reader(path)) as reader:  # it completes what was not
        if reader.meta.get("pid") != program or reader.meta.get("state") != "interrupted":
            return
        lines = death_lines(reader)
    name = os.path.relpath(path)
    print(
        "\n".join((f"\npyfunc-debug: {lines[0]}", *lines[1:], f"recorded in {name} (pyfunc-debug doctor {name})")),
        file=sys.stderr, flush=True,
    )  # fmt: skip
