"""Processes that this one started with multiprocessing and that have ended: who waits for them waits for ever."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from pyfunc_debug.program.frames import is_user
from pyfunc_debug.program.garbage import no_search

REPLACED = "replaced"
"""How a process of a pool ended, of which nothing else is known: `process` is their number."""


@dataclass(frozen=True)
class Ended:
    """A process that has ended.

    Attributes:
      name: What multiprocessing calls it: `Process-1`.
      process: Its number.
      how: `ended with exit code 1`, `was killed by SIGKILL`, in words.
      failed: Whether it did not end well.
      variable: The variable of the line that waits which holds it, or a list of it and others; "" where none does.
      among: Whether that is a list.
      waited: Whether the program has waited for it, or asked whether it is alive.
    """

    name: str
    process: int
    how: str
    failed: bool
    variable: str = ""
    among: bool = False
    waited: bool = False


def ended() -> tuple[list[tuple[Any, Ended]], int]:
    """Objects of multiprocessing for processes that have ended, with what is known of these; and how many have not.

    Without those that the program has waited for and that ended well, or that it ended: by `terminate`, or with a pool.
    They are not waited for: that is the program's to do. Linux tells of those that nobody has waited for yet, in
    /proc/PID/stat (proc(5): `state`, and `exit_code` as waitpid gives it).
    """
    module = sys.modules.get("multiprocessing.process")
    found: list[tuple[Any, Ended]] = []
    alive = 0
    for one in list(getattr(module, "_dangling", ())):
        started = getattr(one, "_popen", None)
        if started is None or getattr(one, "_parent_pid", None) != os.getpid():
            continue
        code = _code(started)
        if code is None:
            alive += 1
        else:
            waited = started.returncode is not None
            known = waited and (code in (0, -signal.SIGTERM) or "PoolWorker" in one.name)  # the program ended it
            if not known:
                found.append((one, Ended(one.name, started.pid, _words(code), code != 0, waited=waited)))
    return found, alive


def _code(started: Any) -> int | None:
    """The exit code of a process, negative for a signal; None while it runs, or where that is not known."""
    code = getattr(started, "returncode", None)
    if isinstance(code, int):
        return code
    with (
        contextlib.suppress(OSError, ValueError, IndexError),
        open(f"/proc/{started.pid}/stat", encoding="ascii") as file,
    ):
        fields = file.read().rpartition(")")[2].split()
        if fields[0] in "ZX":
            return os.waitstatus_to_exitcode(int(fields[-1]))
    return None


def _words(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


@no_search()
def named(ident: int, processes: list[tuple[Any, Ended]]) -> Iterator[Ended]:
    """The same with the variables of a thread's innermost line of the user's that hold them."""
    frame: FrameType | None = sys._current_frames().get(ident)
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back
    known = {} if frame is None else {**frame.f_globals, **frame.f_locals}
    return iter([_named(known, one, facts) for one, facts in processes])


def _named(known: dict[str, Any], process: Any, facts: Ended) -> Ended:
    for name, kept in known.items():
        if type(kept) in (list, tuple) and any(one is process for one in kept):
            return replace(facts, variable=name, among=True)
    for name, kept in known.items():
        if kept is process:
            return replace(facts, variable=name)
    return facts
