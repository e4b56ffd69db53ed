"""Reading stacks of other threads, so that it harms no program: what is read must not live on.

On Python 3.11 a search for garbage meanwhile may hang or crash a program.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType

_HARMS = sys.version_info[:2] == (3, 11)
_readers: list[None] = []
_searched: list[None] = []
"""Something in it: the program's searches are switched off by us, and are to come back."""


@contextlib.contextmanager
def no_search() -> Iterator[None]:
    """No search for garbage begins in it: for `sys._current_frames()`, `f_back` and `f_locals` of other threads.

    Python 3.11 makes the frames that are asked for then, and to make an object may begin a search. What that finds may
    give the GIL away: while `sys._current_frames()` holds the interpreter's lock, for which a thread that ends waits
    with the GIL (python/cpython#106883, fixed in 3.11.9 for that function alone); or until the frame that is read is
    gone. Since Python 3.12 searches begin elsewhere; before 3.11 frames were there.
    """
    if not _HARMS:
        yield
        return
    _readers.append(None)
    if gc.isenabled():
        _searched.append(None)
        gc.disable()
    try:
        yield
    finally:
        _readers.pop()
        if not _readers and _searched:
            _searched.clear()
            gc.enable()
            if _readers:  # one that began in between found them switched off
                _searched.append(None)
                gc.disable()


def _in_child() -> None:
    """Those who read in the parent when it forked are not here."""
    _readers.clear()
    if _searched:
        _searched.clear()
        gc.enable()


if _HARMS and hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)


def other_frames() -> dict[int, FrameType]:
    """The innermost frame of each other thread.

    A function that kept its own frame among these in a variable would be a cycle: until the next search for garbage
    all frames in it, and what their variables hold, would live on: the program would see its objects go later.
    """
    found = sys._current_frames()  # documented
    del found[threading.get_ident()]
    return found
