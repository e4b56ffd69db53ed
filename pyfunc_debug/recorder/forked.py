"""What is said of a forked process that stands still, and who waits for it in this process."""

from __future__ import annotations

import sys
import threading
from typing import Any

from pyfunc_debug.places import source_line
from pyfunc_debug.program.waiting import FOR_PROCESSES, waiting

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
    lines = ["pyfunc_debug: a forked process stands still in TensorFlow:"]
    lines.append(f"  {who}process {facts['process']}{at}, for {facts['age_s']:.0f} s:")
    lines += [f"    {source_line(file, line)} {text}".rstrip() for file, line, _, text in facts["frames"][-_FRAMES:]]
    lines.append(
        f"  TensorFlow had {facts['threads']} threads to run operations on at the fork; a forked process has none"
    )
    if waits:
        file, line, _, text = waits["frames"][-1]
        lines.append(f"  this program waits for {waits['what']}: {source_line(file, line)} {text}".rstrip())
    return lines
