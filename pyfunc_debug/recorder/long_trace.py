"""A graph trace, a `fit`, or the program that the main thread is in for long: shown to who knows the endless ones."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from pyfunc_debug.program.garbage import no_search

TRACE = frozenset({"func_graph_from_py_func"})
"""TensorFlow's function that traces: framework/func_graph.py."""
EPOCHS = frozenset({"fit", "evaluate", "predict"})
"""Keras' methods that go through data: backend/tensorflow/trainer.py."""
PROGRAM = frozenset({"<module>"})
"""The program itself, with the loops that are written in it."""
_LOOKS = 20
"""How often a trace that may end is shown."""


class LongTrace:
    """Looks at the main thread.

    Args:
      after_s: How long it must be in one trace.
      endless: Why the trace in this frame does not end, as text; empty where it may.
      functions: Names of the functions whose outermost call is the trace.
    """

    def __init__(self, after_s: float, endless: Callable[[FrameType], str], functions: frozenset[str] = TRACE) -> None:
        self._functions = functions
        self._after_ns = after_s * 1e9
        self._endless = endless
        self._in: int | None = None
        self._since_ns = 0
        self._looks = 0

    @no_search()
    def look(self) -> str:
        """What is to be said; nothing where the main thread is in no trace, or that was said."""
        main = threading.main_thread().ident
        frame = sys._current_frames().get(main) if main is not None else None
        outer, one = None, frame
        while one is not None:
            outer = id(one) if one.f_code.co_name in self._functions else outer
            one = one.f_back
        now = time.monotonic_ns()
        if outer is None or outer != self._in or frame is None:
            self._in, self._since_ns, self._looks = outer, now, 0
            return ""
        if now - self._since_ns <= self._after_ns or self._looks >= _LOOKS:
            return ""
        self._looks += 1
        if self._functions is PROGRAM:  # it is long by itself: one look in that time, as often as it takes
            self._looks, self._since_ns = 0, now
        told = self._endless(frame)
        if told:
            self._looks = _LOOKS
        return told
