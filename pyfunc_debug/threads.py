"""Threads of ours: debuggers leave them alone."""

from __future__ import annotations

import threading


def hide_from_debuggers(thread: threading.Thread) -> None:
    """Lets a thread of ours go on while debugpy holds the others at a breakpoint. Call it before `start`."""
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]  # pydevd looks for these two
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
