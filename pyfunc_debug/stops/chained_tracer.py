"""Another tool's trace function on the same thread (coverage's, a user's), which hears what runs while ours is there.

Such a tool may count calls and returns: coverage's tracer in C keeps a stack of the files that it is in. Missing one
would cost it the lines of frames that we do not debug, so every event is passed on to it.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any


def settrace(function: Any) -> None:
    """sys.settrace itself: while debugpy is attached on Python 3.11 and older, sys.settrace is pydevd's and warns."""
    holder = getattr(sys.modules.get("pydevd_tracing"), "TracingFunctionHolder", None)
    (getattr(holder, "_original_tracing", None) or sys.settrace)(function)


def chained_tracer(theirs: Any) -> ChainedTracer | None:
    """None where there is no such tool, or where it is an IDE's debugger, which would stop inside our stop."""
    if theirs is None or "pydevd" in f"{type(theirs).__module__} {getattr(theirs, '__module__', '')}":
        return None
    return ChainedTracer(theirs)


def _ours(function: Any) -> bool:
    return str(getattr(type(getattr(function, "__self__", None)), "__module__", "")).startswith(__package__)


class ChainedTracer:
    """Passes events on, for as long as one call is watched.

    Args:
      theirs: The thread's trace function.
    """

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs
        self._locals: dict[FrameType, Any] = {}

    def adopt(self, frame: FrameType, local: Any) -> None:
        """A frame that is running, and whose trace function ours replaces: theirs if they knew of it before."""
        if local is not None and frame not in self._locals and not _ours(local):
            self._locals[frame] = local

    def tell(self, frame: FrameType, event: str, arg: Any) -> None:
        """Passes an event of one of our trace functions on."""
        if event == "call":
            ours = sys.gettrace()
            self._locals[frame] = self._theirs(frame, event, arg)
            if sys.gettrace() is not ours:  # coverage's tracer in C installs itself at a call
                settrace(ours)
            return
        local = self._locals.pop(frame, None) if event == "return" else self._locals.get(frame)
        if local is not None:
            more = local(frame, event, arg)
            if event != "return" and more is not None:
                self._locals[frame] = more

    def follow(self, frame: FrameType, event: str, arg: Any) -> Any:
        """The trace function of frames that we do not debug."""
        self.tell(frame, event, arg)
        return self.follow

    def unwind(self, frame: FrameType, event: str, bottom: FrameType | None) -> None:
        """An exception leaves a trace function: Python switches tracing off, and reports the frames it ends to nobody.

        Args:
          frame: Where it was raised.
          event: At which event.
          bottom: The first frame that does not end; None for the first that was entered before ours was in place.
        """
        one: FrameType | None = frame.f_back if event == "return" else frame
        while one is not None and one is not bottom:
            local = self._locals.pop(one, None)
            if local is None:
                if bottom is None:
                    return
                local = one.f_trace
            if local is not None:
                local(one, "return", None)
            one = one.f_back

    def give_back(self) -> None:
        """Puts theirs in place again. Frames that began while nothing was traced are entered now, for them."""
        unseen: list[FrameType] = []
        frame: FrameType | None = sys._getframe() if sys.gettrace() is None else None
        while frame is not None and frame.f_trace is None:
            unseen.append(frame)
            frame = frame.f_back
        if frame is not None:
            for one in reversed(unseen):
                one.f_trace = self._theirs(one, "call", None)
        settrace(self._theirs)
