"""`breakpoint()` and `pdb.set_trace()`: in a body they open a prompt of ours, elsewhere they are what they were."""

from __future__ import annotations

import pdb
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Hooks:
    """`sys.breakpointhook` and `pdb.set_trace`, from `install` to `uninstall`.

    Args:
      stop: Called with the frame; whether it was in a body.
    """

    def __init__(self, stop: Callable[[FrameType], bool]) -> None:
        self._stop = stop
        self._breakpointhook: Any = None
        self._set_trace: Any = None
        self._ours: Any = None

    def install(self) -> None:
        """Puts both in place. Again, when somebody (debugpy on attaching) replaced the first meanwhile."""
        if sys.breakpointhook != self._break:
            self._breakpointhook = sys.breakpointhook
            sys.breakpointhook = self._break
        if self._ours is None:
            original = self._set_trace = pdb.set_trace

            def set_trace(*args: Any, **named: Any) -> Any:
                if self._stop(sys._getframe(1)):
                    return None
                if args or set(named) - {"header"} or getattr(original, "__module__", "") != "pdb":
                    return original(*args, **named)
                debugger = pdb.Pdb()
                if named.get("header") is not None:
                    debugger.message(named["header"])
                return debugger.set_trace(sys._getframe(1))  # the original would stop in this function

            self._ours = pdb.set_trace = set_trace

    def uninstall(self) -> None:
        """Puts the originals back; one that somebody else has replaced is left to them."""
        if self._breakpointhook is not None and sys.breakpointhook == self._break:
            sys.breakpointhook = self._breakpointhook
        self._breakpointhook = None
        if self._ours is not None and pdb.set_trace is self._ours:
            pdb.set_trace = self._set_trace
        self._ours = self._set_trace = None

    def _break(self, *args: Any, **named: Any) -> Any:
        frame = sys._getframe(1)
        if self._stop(frame):
            return None
        hook = self._breakpointhook or sys.__breakpointhook__
        if hook is sys.__breakpointhook__ and not args and not named:
            return _stock(frame)
        return hook(*args, **named)


def _stock(frame: FrameType) -> Any:
    """What Python's own hook does, seen from the user's frame and not from ours."""
    import os

    if os.environ.get("PYTHONBREAKPOINT", "pdb.set_trace") not in ("", "pdb.set_trace"):
        return sys.__breakpointhook__()
    return pdb.Pdb().set_trace(frame)
