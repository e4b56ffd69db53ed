"""coverage.py on threads of C++: it has `threading` trace each new thread (threading.settrace), and C++ asks nobody.

Such a thread is known to Python for one call only, so coverage's tracer is set before each body. It is made once for
a thread: coverage keeps every tracer that it makes. Where coverage uses sys.monitoring it sees all threads by itself.
"""

from __future__ import annotations

import sys
import threading
from _thread import get_native_id
from typing import Any

from pyfunc_debug.program.threads import own_thread

_tracers: dict[int, tuple[Any, Any]] = {}  # by native thread id: who made the tracer, and the tracer


def coverage_traces() -> bool:
    """Whether coverage.py measures this process by trace functions."""
    return _beginner() is not None


def let_coverage_see() -> None:
    """Has coverage trace what the current thread runs from here on. No-op where it does, or where it is not there."""
    beginner = _beginner()
    if beginner is None or sys.gettrace() is not None or own_thread() is not None:
        return
    made_by, tracer = _tracers.get(get_native_id(), (None, None))
    if made_by is beginner:
        sys.settrace(tracer)
        return
    beginner(sys._getframe(), "call", None)  # as in a new thread of Python's; this frame is the first that it sees
    _tracers[get_native_id()] = beginner, sys.gettrace()


def _beginner() -> Any:
    """What begins coverage's tracing in a new thread, or None."""
    hook = threading.gettrace()
    owner = type(getattr(hook, "__self__", None)).__module__
    return hook if owner.startswith("coverage.") else None
