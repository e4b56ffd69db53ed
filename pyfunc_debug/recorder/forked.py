"""Child processes that stand still or have ended, and who waits for them in this process: what is said of them."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from pyfunc_debug.places import source_line
from pyfunc_debug.program.children import REPLACED, Ended, ended, named
from pyfunc_debug.program.forks import Forks
from pyfunc_debug.program.waiting import FOR_PROCESSES, Waiting, place_of, waiting
from pyfunc_debug.recorder.ticket import Ticket

_FRAMES = 4


def who_waits() -> dict[str, Any]:
    """What a thread of this process waits for that processes do, the main thread first; {} where none does."""
    main = threading.main_thread().ident
    for ident in sorted(sys._current_frames(), key=lambda one: one != main):
        state = waiting(ident)
        if state is not None and state.what in FOR_PROCESSES and state.stack:
            frames = [[one.file, one.line, one.function, one.text] for one in state.stack[-_FRAMES:]]
            return {"what": state.what, "frames": frames}
    return {}


def forked_lines(facts: dict[str, Any], waits: dict[str, Any]) -> list[str]:
    """Lines for stderr.

    Args:
      facts: As `Forks.news` gives them.
      waits: As `who_waits` gives it.
    """
    who = f"{facts['name']}, " if facts["name"] else ""
    at = f", forked at {source_line(*facts['forked'][:2])}" if facts["forked"] else ""
    lines = ["pyfunc-debug: a forked process stands still in TensorFlow:"]
    lines.append(f"  {who}process {facts['process']}{at}, for {facts['age_s']:.0f} s:")
    lines += [f"    {source_line(file, line)} {text}".rstrip() for file, line, _, text in facts["frames"][-_FRAMES:]]
    lines.append(
        f"  TensorFlow had {facts['threads']} threads to run operations on at the fork; a forked process has none"
    )
    if waits:
        file, line, _, text = waits["frames"][-1]
        lines.append(f"  this program waits for {waits['what']}: {source_line(file, line)} {text}".rstrip())
    return lines


def ended_for(forks: Forks, ident: int, state: Waiting) -> tuple[list[Ended], int]:
    """Processes that have ended while a thread waits for their work, and how many have not; [] where none is at fault.

    Args:
      forks: What is known of pools.
      ident: The thread.
      state: What it does.
    """
    if state.what not in FOR_PROCESSES:
        return [], 0
    if state.what == FOR_PROCESSES[0]:
        lost = forks.replaced(getattr(state.on, "_pool", None))
        return ([Ended("", lost, REPLACED, failed=True)] if lost else []), 1
    found, alive = ended()
    known = sorted(named(ident, found), key=lambda one: (not one.failed, one.process))
    if alive and not any(one.failed and not one.waited for one in known):
        return [], alive
    return known, alive


def ended_lines(gone: list[Ended]) -> list[str]:
    """Lines for stderr."""
    return [
        f"    {one.name} {one.how}" if one.how != REPLACED
        else f"    a process of the pool died at its work, and another took its place ({one.process}x)"
        for one in gone[:_FRAMES]
    ]  # fmt: skip


class MainWait:
    """Looks at the main thread, where it waits for processes.

    Args:
      after_s: How long it must wait.
    """

    def __init__(self, after_s: float) -> None:
        self._after_ns = after_s * 1e9
        self._at: tuple[int, int] | None = None
        self._since_ns = 0
        self._told = False

    def look(self, forks: Forks, calls: Mapping[int, Ticket]) -> tuple[dict[str, Any], list[str]] | None:
        """Facts of a main thread that waits for processes that have ended, and lines for stderr, once.

        Args:
          forks: What is known of pools.
          calls: Calls in progress.
        """
        main = threading.main_thread().ident
        if self._told or main is None or "multiprocessing.process" not in sys.modules:
            return None
        at, now = place_of(main), time.monotonic_ns()
        if at is None or at != self._at:
            self._at, self._since_ns = at, now
            return None
        if now - self._since_ns <= self._after_ns or any(one.ident == main for one in list(calls.values())):
            return None
        state = waiting(main)
        if state is None or state.at != at or state.what not in FOR_PROCESSES or not state.stack:
            return None
        gone, alive = ended_for(forks, main, state)
        if not gone:
            return None
        self._told = True
        frames = [(one.file, one.line, one.function, one.text) for one in state.stack]
        age_s = (now - self._since_ns) / 1e9
        lines = [f"pyfunc-debug: nothing moves in the main thread, for {age_s:.0f} s: it waits for {state.what}"]
        lines += [f"    {source_line(file, line)} {text}".rstrip() for file, line, _, text in frames[-_FRAMES:]]
        return {
            "age_s": round(age_s, 1), "what": state.what, "pool": 0, "lock": True, "frames": frames, "main": True,
            "ended": [dataclasses.asdict(one) for one in gone], "alive": alive, "sources": [one[0] for one in frames],
        }, [*lines, *ended_lines(gone)]  # fmt: skip
