"""What `record` does where its program was killed: it completes the recording, says how it ended and what it found.

A process waits for that. The program's own `os.wait()` does not find it, as it is not a child. It has a session of its
own, so that what ends the program by its terminal does not end it, and it is gone as soon as the program is. Only where
Linux tells of a process's end (`pidfd_open`, Linux 5.3), and TensorFlow, which has threads, is not loaded yet.
Elsewhere the next command that reads the recording completes it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import textwrap
import threading
import warnings

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def watch(path: str, quiet: bool = False) -> None:
    """Waits, in a process of its own, for the end of this one. Where TensorFlow is loaded already it does nothing.

    Args:
      path: The recording that this process will write.
      quiet: Whether it says how the program ended, and no findings.
    """
    if not hasattr(os, "pidfd_open") or "tensorflow" in sys.modules or threading.active_count() > 1:
        return
    program = os.getpid()
    try:
        ended = os.pidfd_open(program)
    except OSError:  # an older kernel, or a container that forbids it
        return
    child = -1
    with contextlib.suppress(OSError), warnings.catch_warnings():  # no more processes for this user
        warnings.simplefilter("ignore")  # NumPy's library has threads, which it ends in a fork itself
        child = os.fork()
    if child:
        os.close(ended)
        if child > 0:
            os.waitpid(child, 0)
        return
    try:
        if os.fork() == 0:
            _wait(ended)
            _tell(path, program, quiet)
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


def _tell(path: str, program: int, quiet: bool) -> None:
    from pyfunc_debug.analysis.death import death_lines
    from pyfunc_debug.api.recording import Recording
    from pyfunc_debug.cli import options
    from pyfunc_debug.pfrec import Reader

    if not os.path.exists(path):
        return
    with contextlib.closing(Reader(path)) as reader:  # it completes what was not
        if reader.meta.get("pid") != program or reader.meta.get("state") != "interrupted":
            return
        lines = death_lines(reader)
    width = options.terminal(sys.stderr)[0]
    told = (textwrap.fill(one, width, subsequent_indent="  ") for one in (f"pyfunc-debug: {lines[0]}", *lines[1:]))
    print("", *told, sep="\n", file=sys.stderr, flush=True)
    with contextlib.closing(Recording(path)) as recording:
        found = [] if quiet else [one for one in recording.findings(front="shell") if one.rule != "died"]
    where = os.path.relpath(path)
    options.print_findings(found, width, where)
    print("\n" if found else "", f"recorded in {where}", sep="", file=sys.stderr, flush=True)
