"""Runs a program on a real pseudo-terminal and talks to it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time

from tests import forked
from tests.limits import HANG_S


def talk(arguments, script, timeout_s=HANG_S, fresh=False, terminal="dumb", stdout=None, **options):
    """Runs a program on a terminal.

    Args:
      arguments: The command line.
      script: Pairs: a text, or a compiled pattern, to wait for, and what to type then.
      timeout_s: A watchdog: the program is killed and the test fails.
      fresh: Python starts a program of Python's itself; else it is forked with TensorFlow imported.
      terminal: Its TERM; on a dumb one lines are not edited.
      stdout: A file descriptor where its stdout is not the terminal; of a program that is forked.
      **options: Its `cwd` and `env`.

    Returns:
      All that was on the screen, and the exit code.
    """
    ours, theirs = pty.openpty()
    options["env"] = {**(options.get("env") or os.environ), "TERM": terminal}
    if arguments[0] == sys.executable and not fresh:
        process = forked.Program(
            arguments[1:], stdin=theirs, stdout=theirs if stdout is None else stdout, stderr=theirs, terminal=True,
            **options,
        )  # fmt: skip
    else:
        process = subprocess.Popen(
            arguments, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **options,
        )  # fmt: skip
    os.close(theirs)
    screen, seen, end = "", 0, time.monotonic() + timeout_s

    def more():
        nonlocal screen
        left = end - time.monotonic()
        if left <= 0 or not select.select([ours], [], [], left)[0]:  # it may print for ever
            process.kill()
            raise AssertionError(f"nothing that was waited for happened:\n{screen[-100_000:]}")
        try:
            text = os.read(ours, 65536).decode(errors="replace")
        except OSError:  # Linux: the other side is closed
            text = ""
        screen += text
        return bool(text)

    try:
        for wanted, typed in script:
            pattern = wanted if isinstance(wanted, re.Pattern) else re.compile(re.escape(wanted))
            while not pattern.search(screen, seen):
                assert more(), f"ended before {wanted!r}:\n{screen}"
            seen = len(screen)
            os.write(ours, typed.encode())
        while more():
            pass
        return screen, process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)
