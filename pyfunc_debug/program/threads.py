"""Threads: those of ours, which debuggers leave alone, and names for those that C++ made."""

from __future__ import annotations

import threading
from _thread import get_ident, get_native_id
from collections.abc import Callable

_numbers: dict[int, int] = {}


def hide_from_debuggers(thread: threading.Thread) -> None:
    """Lets a thread of ours go on while debugpy holds the others at a breakpoint. Call it before `start`."""
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]  # pydevd looks for these two
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]


def daemon_thread(target: Callable[[], None], name: str) -> threading.Thread:
    """A thread that debuggers leave alone (a stop would freeze it), and that never keeps a program alive."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    hide_from_debuggers(thread)
    return thread


def own_thread() -> threading.Thread | None:
    """The current thread if Python made it; None for one of C++, which Python knows for one call only.

    `threading.current_thread()` would make a stand-in for a C++ thread, which the program could see.
    """
    known = threading._active  # type: ignore[attr-defined]  # noqa: SLF001 - what current_thread() reads
    thread: threading.Thread | None = known.get(get_ident())
    return None if thread is None or made_by_cpp(thread) else thread


def made_by_cpp(thread: threading.Thread) -> bool:
    """Whether Python only knows a thread because it once ran Python code, as TensorFlow's own."""
    return isinstance(thread, threading._DummyThread)  # noqa: SLF001 - documented: a "dummy thread object"


def current_name() -> str:
    """The current thread's name: `main`, Python's own, or `TF-3` for the third thread of C++ that was seen."""
    thread = own_thread()
    if thread is None:
        return f"TF-{_numbers.setdefault(get_native_id(), len(_numbers) + 1)}"
    return "main" if thread is threading.main_thread() else str(thread.name)


def name_of(ident: int, native_id: int | None) -> str:
    """The name of another thread, as `current_name` gives it there; of one of C++ with an unknown number its kind."""
    thread = threading._active.get(ident)  # type: ignore[attr-defined]  # noqa: SLF001 - see own_thread
    if thread is not None and not made_by_cpp(thread):
        return "main" if thread is threading.main_thread() else str(thread.name)
    return f"TF-{_numbers.setdefault(native_id, len(_numbers) + 1)}" if native_id is not None else "a TensorFlow thread"


def number_anew() -> None:
    """Threads of C++ are numbered from 1 again: a recording begins."""
    _numbers.clear()
