"""`breakpoint()` and `pdb.set_trace()`: in a body they open a prompt of ours, elsewhere they are what they were.

Where PYTHONBREAKPOINT names another debugger, or none, `breakpoint()` is not touched. A hook that a program or a tool
has put in place is asked where nobody can answer ours.
"""

from __future__ import annotations

import os
import pdb
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Hooks:
    """`sys.breakpointhook` and `pdb.set_trace`, from `install` to `uninstall`.

    Args:
      stop: Called with the frame, the header of `set_trace`, and whether somebody else can be asked: whether it was in
        a body and is taken care of.
    """

    def __init__(self, stop: Callable[[FrameType, str | None, bool], bool]) -> None:
        self._stop = stop
        self._breakpointhook: Any = None
        self._set_trace: Any = None
        self._ours: Any = None
        self._break = _Hook(self._hook_for)

    def install(self) -> None:
        """Puts both in place. Again, when somebody (debugpy on attaching) replaced the first meanwhile."""
        if sys.breakpointhook is not self._break and _wants_pdb():
            self._breakpointhook = sys.breakpointhook
            sys.breakpointhook = self._break
        if self._ours is None:
            original = self._set_trace = pdb.set_trace

            def set_trace(*args: Any, **named: Any) -> Any:
                frame = sys._getframe(1)
                if self._stop(frame, named.get("header"), False):
                    return None
                debugger = None if args or set(named) - {"header"} else _debugger(original)
                if debugger is None:
                    return original(*args, **named)
                if named.get("header") is not None:
                    debugger.message(named["header"])
                return debugger.set_trace(frame)  # the original would stop in this function

            self._ours = pdb.set_trace = set_trace

    def uninstall(self) -> None:
        """Puts the originals back; one that somebody else has replaced is left to them."""
        if self._breakpointhook is not None and sys.breakpointhook is self._break:
            sys.breakpointhook = self._breakpointhook
        self._breakpointhook = None
        if self._ours is not None and pdb.set_trace is self._ours:
            pdb.set_trace = self._set_trace
        self._ours = self._set_trace = None

    def _hook_for(self, frame: FrameType) -> Any:
        """What `breakpoint()` calls in this frame."""
        hook = self._breakpointhook or sys.__breakpointhook__
        if _wants_pdb() and self._stop(frame, None, hook is not sys.__breakpointhook__):
            return _done
        return hook


class _Hook:
    """`sys.breakpointhook`. What it leaves to another hook is called as without us: no frame of ours is below it.

    Python calls what the property `__call__` gives once that has returned.
    """

    def __init__(self, choose: Callable[[FrameType], Any]) -> None:
        self._choose = choose

    @property
    def __call__(self) -> Any:
        return self._choose(sys._getframe(1))


def _done(*args: Any, **named: Any) -> None:
    """The call was stopped, or will be."""


def _wants_pdb() -> bool:
    """Whether `breakpoint()` means pdb (PEP 553)."""
    return os.environ.get("PYTHONBREAKPOINT", "") in ("", "pdb.set_trace")


def _debugger(set_trace: Any) -> Any:
    """What this `set_trace` prompts with; None is not known.

    That is pdb, IPython's debugger in its kernel, or pytest's, which gives the terminal back first.
    """
    module = getattr(set_trace, "__module__", "")
    if module in ("pdb", "IPython.core.debugger"):
        return sys.modules[module].Pdb()
    of_pytest = getattr(getattr(set_trace, "__self__", None), "_init_pdb", None)
    return of_pytest("set_trace") if of_pytest is not None else None
