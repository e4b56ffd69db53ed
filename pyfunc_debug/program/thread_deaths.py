"""Threads of the program that died of an exception, and what they did for others: who waits for that waits for ever.

Python calls `threading.excepthook` then. It is replaced while this watches, and called as before.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any

from pyfunc_debug.program.error_text import error_text
from pyfunc_debug.program.frames import is_user, line_text
from pyfunc_debug.program.lock_holders import value

_DOES = re.compile(r"([A-Za-z_][\w.]*)\.(put|put_nowait|get|get_nowait|set|notify|notify_all|release)\(")
_SERVES = {
    "an item of a queue": ("put", "put_nowait"),
    "room in a queue": ("get", "get_nowait"),
    "a threading event or condition": ("set", "notify", "notify_all"),
    "a semaphore": ("release",),
}
"""What a thread waits for, and the methods by which another ends that."""
_MOST = 50


@dataclass(frozen=True)
class Death:
    """A thread that died, for one that waits for it.

    Attributes:
      thread: Its name.
      error: What it died of: `KeyError: 9`.
      file, line: The user's line that raised.
      does: What it would have called: `frames.put`.
      at: The line of that call, in `does_file`.
    """

    thread: str
    error: str
    file: str
    line: int
    does: str
    does_file: str
    at: int


@dataclass(frozen=True)
class _Use:
    thing: weakref.ref[Any]
    method: str
    death: Death


class ThreadDeaths:
    """Notes what threads die of."""

    def __init__(self) -> None:
        self._uses: list[_Use] = []
        self._previous: Callable[[Any], Any] | None = None
        self._hook = self._died
        self._on = False

    def watch(self) -> None:
        """Notes deaths from now on."""
        self._on, self._previous = True, threading.excepthook
        threading.excepthook = self._hook

    def rest(self) -> None:
        """Notes no more; the program's hook is what it was, unless the program has set another since."""
        self._on = False
        if threading.excepthook is self._hook and self._previous is not None:
            threading.excepthook = self._previous

    def of(self, waits_for: str, thing: object) -> Death | None:
        """The thread that died and was to end the waiting for an object; None where none is known.

        Args:
          waits_for: What is waited for, in the words of `Waiting.what`.
          thing: The queue, event, condition or semaphore.
        """
        methods = _SERVES.get(waits_for, ())
        found = [one for one in list(self._uses) if one.method in methods and one.thing() is thing]
        return found[-1].death if found and thing is not None else None

    def _died(self, arguments: Any) -> None:
        try:
            if self._on and len(self._uses) < _MOST and not issubclass(arguments.exc_type, SystemExit):
                self._note(arguments)
        except Exception:  # the program's own report is worth more than our note
            self._on = False
        (self._previous or threading.__excepthook__)(arguments)

    def _note(self, arguments: Any) -> None:
        frames = _users(arguments.exc_traceback)
        if not frames:
            return
        last, line = frames[-1]
        name = arguments.thread.name if arguments.thread is not None else "a thread"
        error = error_text(arguments.exc_value)[0]
        for frame, _ in frames:
            for at, text in _lines(frame.f_code):
                for owner, method in _DOES.findall(text):
                    try:
                        thing = weakref.ref(value(frame, owner.split(".")))
                    except (KeyError, AttributeError, TypeError):
                        continue
                    file = last.f_code.co_filename
                    death = Death(name, error, file, line, f"{owner}.{method}", frame.f_code.co_filename, at)
                    self._uses.append(_Use(thing, method, death))


def _users(traceback: TracebackType | None) -> list[tuple[FrameType, int]]:
    """The user's frames of a traceback and their lines, outermost first."""
    found = []
    while traceback is not None:
        if is_user(traceback.tb_frame.f_code.co_filename):
            found.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return found


def _lines(code: CodeType) -> list[tuple[int, str]]:
    numbers = sorted({line for _, _, line in code.co_lines() if line is not None})
    return [(line, line_text(code.co_filename, line)) for line in numbers]
