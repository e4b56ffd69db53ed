"""What the user's code prints during a graph trace or in a body, by line, trace and call.

`write` of the stream that is sys.stdout at that moment is replaced for as long as the phase lasts, and put back only if
it is still ours. sys.stdout itself stays: IPython sets attributes on it, and redirect_stdout replaces it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from pyfunc_debug.program.frames import is_user
from pyfunc_debug.records import Printed

_MOST = 10_000
_LONGEST = 2_000


class _Tee:
    """The replaced `write` of one stream, shared by all phases that have it as sys.stdout."""

    def __init__(self, stream: Any, write: Any) -> None:
        self.stream = stream
        self.users = 1
        self.own = "write" in stream.__dict__
        self.original = stream.write
        self.write = write


class Prints:
    """Collects what is printed.

    Args:
      locate: Maps lines of generated code to the user's.
      printing: The phase of this thread, its graph trace and its call; None outside of phases.
    """

    def __init__(self, locate: Callable[[str, int], tuple[str, int]], printing: Callable[[], Any]) -> None:
        self._locate = locate
        self._printing = printing
        self._lock = threading.Lock()  # held for bookkeeping only, never while the user's code runs
        self._tees: dict[int, _Tee] = {}
        self._texts: list[list[Any]] = []  # [trace, call, file, line, function, text]
        self._open: dict[int, list[Any]] = {}  # by phase: the last text, which may go on
        self.dropped = 0

    def enter(self) -> Any:
        """A phase begins on this thread.

        Returns:
          What to hand to `leave`: the stream, or None when it cannot be watched.
        """
        stream = sys.stdout
        if stream is None:
            return None
        with self._lock:
            tee = self._tees.get(id(stream))
            if tee is not None:
                tee.users += 1
                return stream
            if not hasattr(stream, "__dict__"):
                return None
            try:
                original = stream.write

                def write(text: str) -> Any:
                    self._note(text)
                    return original(text)

                tee = _Tee(stream, write)
                setattr(stream, "write", write)  # noqa: B010 - mypy knows the streams of typeshed only
            except (AttributeError, TypeError):  # a stream written in C
                return None
            self._tees[id(stream)] = tee
        return stream

    def leave(self, stream: Any) -> None:
        """The phase ends."""
        if stream is None:
            return
        with self._lock:
            tee = self._tees.get(id(stream))
            if tee is None:
                return
            tee.users -= 1
            if tee.users:
                return
            del self._tees[id(stream)]
            if stream.__dict__.get("write") is not tee.write:
                return  # somebody replaced it meanwhile, and may call ours: that passes everything through
            if tee.own:
                stream.write = tee.original
            else:
                del stream.write

    def _note(self, text: Any) -> None:
        printing = self._printing()
        if printing is None or not isinstance(text, str):
            return
        try:
            frame: Any = sys._getframe(2)
            while frame is not None and not is_user(frame.f_code.co_filename):
                frame = frame.f_back
            if frame is None:
                return
            file, line = self._locate(frame.f_code.co_filename, frame.f_lineno)
            function = frame.f_code.co_name.removeprefix("tf__")
            phase, trace, call = printing
            last = self._open.get(id(phase))
            if last is not None and last[2:5] == [file, line, function] and not last[5].endswith("\n"):
                last[5] = (last[5] + text)[:_LONGEST]
                return
            if len(self._texts) >= _MOST:
                self.dropped += 1
                return
            entry = [trace, call, file, line, function, text[:_LONGEST]]
            self._open[id(phase)] = entry
            self._texts.append(entry)
        except Exception:  # a print of the user's must never fail because of us
            self.dropped += 1

    def closed(self, phase: Any) -> None:
        """Nothing more will be printed in this phase."""
        self._open.pop(id(phase), None)

    def texts(self) -> list[Printed]:
        """Everything printed so far, in order."""
        return [Printed(*entry) for entry in list(self._texts)]
