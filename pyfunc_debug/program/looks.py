"""A thread of ours that looks at the program again and again, until it is stopped."""

from __future__ import annotations

import os
from collections.abc import Callable

from pyfunc_debug.program.bell import Bell, pause
from pyfunc_debug.program.threads import daemon_thread


class Looks:
    """Calls a function at even intervals, on a daemon thread that debuggers leave alone.

    Args:
      name: The thread's.
      between_s: Seconds between two calls.
      look: What is called.
      trouble: What an exception in `look`, which ends the thread, is given to.
    """

    def __init__(
        self, name: str, between_s: float, look: Callable[[], object], trouble: Callable[[Exception], object]
    ) -> None:
        self._between = pause(between_s)
        self._look = look
        self._trouble = trouble
        self._ended = Bell()
        self._process = os.getpid()
        self._thread = daemon_thread(self._run, f"pyfunc_debug {name}")

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stops looking, and waits for a look that is under way; in a forked process there is nothing to wait for."""
        self._ended.ring()
        if self._thread.is_alive() and os.getpid() == self._process:
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._ended.wait(self._between):
            try:
                self._look()
            except Exception as error:
                self._trouble(error)
                return
