"""Watches for calls that do not end: which they are, where they stand, and what they wait for. Said once, and recorded.

A thread that looks once a second. A call counts when it is older than the limit, its thread takes no CPU and its Python
does not move: one that works for long is left alone, and so is one that a busy machine gives no core. While C code has
the GIL, nobody can look.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from pyfunc_debug.events import Notice
from pyfunc_debug.places import source_line
from pyfunc_debug.program.bell import Bell, pause
from pyfunc_debug.program.printable import tell
from pyfunc_debug.program.threads import hide_from_debuggers
from pyfunc_debug.program.waiting import Waiting, cpu_ticks, runnable, waiting
from pyfunc_debug.recorder.ticket import Ticket

_LOOK_S = 1.0
_BUSY_TICKS = 10
"""A thread works if it used this many clock ticks of CPU (a hundred a second) between two looks."""
_TEXT_FRAMES = 4


class HangWatch:
    """Looks at the calls in progress.

    Args:
      open_calls: Calls in progress, by number.
      body: Name of a token's body.
      notice: Tells the recording: rule, token, call, facts.
      after_s: How old a call must be.
      say: Tells the user; stderr by default.

    Attributes:
      gather: Makes open calls of those that began at least this many ns ago, whichever way they took (`HotPath`).
    """

    def __init__(
        self, open_calls: dict[int, Ticket], body: Callable[[str], str], notice: Callable[..., None], after_s: float,
        say: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self._open = open_calls
        self._body = body
        self._notice = notice
        self._after_s = after_s
        self._say = say or tell
        self.gather: Callable[[int], object] = lambda least_ns: None
        self._seen: dict[int, tuple[tuple[int, int], int | None]] = {}
        self._reported: set[int] = set()
        self._ended = Bell()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._watch, name="pyfunc_debug hang", daemon=True)
        hide_from_debuggers(self._thread)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stops looking."""
        self._ended.ring()
        if self._thread.is_alive() and os.getpid() == self._process:
            self._thread.join(5.0)

    def _watch(self) -> None:
        between = pause(min(_LOOK_S, self._after_s / 2))
        while not self._ended.wait(between):
            try:
                self.look()
            except Exception as error:  # a thread may end while we look at it
                self._notice(Notice.HANG_TROUBLE, None, None, error=f"{type(error).__name__}: {error}")
                return

    def look(self) -> None:
        """Looks once; calls that stood still since the last time are reported."""
        now = time.monotonic_ns()
        self.gather(int(self._after_s * 1e9))
        old = [one for one in list(self._open.values()) if now - one.start_ns > self._after_s * 1e9]
        still: list[tuple[Ticket, Waiting]] = []
        seen: dict[int, tuple[tuple[int, int], int | None]] = {}
        for ticket in old:
            state = waiting(ticket.ident)
            if state is None or ticket.end_ns or ticket.call not in self._open:
                continue
            ticks = cpu_ticks(ticket.thread)
            seen[ticket.call] = (state.at, ticks)
            before = self._seen.get(ticket.call)
            if before is None or state.stopped or before[0] != state.at:
                continue
            if ticks is not None and before[1] is not None and ticks - before[1] > _BUSY_TICKS:
                continue
            if runnable(ticket.thread):
                continue
            still.append((ticket, state))
        self._seen = seen
        if still and any(ticket.call not in self._reported for ticket, _ in still):
            new = [one for one in still if one[0].call not in self._reported]
            self._reported.update(ticket.call for ticket, _ in new)
            self._tell(new, still, now)

    def _tell(self, new: list[tuple[Ticket, Waiting]], still: list[tuple[Ticket, Waiting]], now: int) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        pool = len(still) >= cores and len(still) > 1 and all(state.lock for _, state in still)
        lines = []
        for ticket, state in new:
            age = (now - ticket.start_ns) / 1e9
            where = [f"{source_line(one.file, one.line)} {one.text}".rstrip() for one in state.stack]
            facts: dict[str, Any] = {
                "age_s": round(age, 1), "what": state.what, "pool": len(still) if pool else 0, "lock": state.lock,
                "frames": [[one.file, one.line, one.function, one.text] for one in state.stack],
            }  # fmt: skip
            self._notice(Notice.HANG, ticket.token, ticket.call, **facts)
            waits = f"waits for {state.what}" if state.what else "is in C code"
            lines.append(f"  call #{ticket.call} of {self._body(ticket.token)}, for {age:.0f} s: {waits}")
            lines += [f"    {line}" for line in where[-_TEXT_FRAMES:]]
        if pool:
            lines.append(
                f"  {len(still)} calls wait at once, as many as TensorFlow's pool has threads: nobody may be left to "
                "do what they wait for"
            )
        self._say("\n".join(["pyfunc_debug: nothing moves in these calls:", *lines]))
