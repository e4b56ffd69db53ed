"""What a failed body looks like when its exception reaches the top: the user's frames first, then TensorFlow's error.

Nothing is changed before an exception is displayed: only `sys.excepthook`, and in IPython the shell's `showtraceback`,
are replaced while on, and both are the originals again after.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from pyfunc_debug.program.file_limit import room_for_files
from pyfunc_debug.program.frames import is_user, user_traceback
from pyfunc_debug.stops.stop import Abort

_RAISERS = ("pyfunc_debug.stops.interrupts", "pyfunc_debug.switchboard.relay")
"""Modules of ours in which a KeyboardInterrupt of the program's is raised."""
Written = Callable[[TracebackType | None], TracebackType | None]
"""A traceback without AutoGraph's code in it, for one that may have some (`stops.written`)."""
_SIGINT_STATUS = 130
"""What a shell says of a program that Ctrl-C ended."""


def original_of(error: BaseException | None) -> BaseException | None:
    """The exception that left the body, for TensorFlow's exception; the innermost one when bodies are nested."""
    found, seen = None, set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        found, error = error, getattr(error, "pyfunc_exception", None)
    return found if len(seen) > 1 else None


def chain(error: BaseException, written: Written) -> None:
    """Makes the original the direct cause of TensorFlow's exception, with the user's frames first, for good.

    For an exception that leaves a `with record():` block: it is displayed when nothing of ours is there any more.
    """
    drop_handler_frame(error)
    original = getattr(error, "pyfunc_exception", None)
    if original is None:
        return
    original.__traceback__ = written(_from_first_user_frame(original.__traceback__))
    if error.__cause__ is None:
        error.__cause__ = original
    last = error.__traceback__
    tail = user_traceback(original.__traceback__)
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is not None and tail is not None and last.tb_frame is not _last_frame(tail):
        last.tb_next = tail  # pdb.pm() and %debug open at the innermost frame


def drop_handler_frame(error: BaseException) -> None:
    """Takes the frame of ours that raised a KeyboardInterrupt off the end of its traceback: Python's own has none."""
    if not isinstance(error, KeyboardInterrupt):
        return
    one = error.__traceback__
    while one is not None and one.tb_next is not None:
        if one.tb_next.tb_frame.f_globals.get("__name__") in _RAISERS:
            one.tb_next = one.tb_next.tb_next
        else:
            one = one.tb_next


@contextlib.contextmanager
def _chained(error: BaseException | None, written: Written) -> Iterator[None]:
    """The same while an exception is displayed, and undone after."""
    original = getattr(error, "pyfunc_exception", None)
    if error is None or original is None or error.__cause__ is not None:
        yield
        return
    suppressed, traceback = error.__suppress_context__, original.__traceback__
    original.__traceback__ = written(_from_first_user_frame(traceback))
    error.__cause__ = original
    try:
        yield
    finally:
        error.__cause__ = None
        error.__suppress_context__ = suppressed
        original.__traceback__ = traceback


def _from_first_user_frame(traceback: TracebackType | None) -> TracebackType | None:
    first = traceback
    while first is not None and not is_user(first.tb_frame.f_code.co_filename):
        first = first.tb_next
    return first or traceback


def _last_frame(traceback: TracebackType) -> Any:
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame


def with_callers(error: BaseException | None, written: Written) -> TracebackType | None:
    """The user's frames of TensorFlow's exception, from who called it to where the innermost body raised."""
    entries: list[TracebackType] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = {id(entry.tb_frame) for entry in entries}  # `chain` has put the body's at the end of its caller's
        one = user_traceback(error.__traceback__)
        while one is not None:
            if id(one.tb_frame) not in frames:
                entries.append(one)
            one = one.tb_next
        error = getattr(error, "pyfunc_exception", None)
    found: TracebackType | None = None
    for entry in reversed(entries):
        found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return written(found)


def remember_for_debuggers(error: BaseException | None, written: Written) -> None:
    """Makes `pdb.pm()` and `%debug` open at the user's frame."""
    original = original_of(error)
    traceback = with_callers(error, written) if original is not None else None
    if original is not None and traceback is not None:
        _remember(error if isinstance(error, KeyboardInterrupt) else original, traceback)


def _remember(error: BaseException, traceback: TracebackType | None) -> None:
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, traceback
    error.__traceback__ = traceback  # which IPython's %debug takes on every Python
    if sys.version_info >= (3, 12):
        sys.last_exc = error


class Display:
    """The two hooks.

    Args:
      take_interrupt: Whether a stop was interrupted and that was not reported yet; asking ends it.
      written: Takes AutoGraph's code out of a traceback.
      shown: Told of each exception after it was displayed.
    """

    def __init__(
        self,
        take_interrupt: Callable[[], bool],
        written: Written,
        shown: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._take_interrupt = take_interrupt
        self._written = written
        self._shown = shown
        self._excepthook: Any = None
        self._shell: Any = None

    def install(self) -> None:
        """Puts both in place. Doing it again does nothing."""
        if self._excepthook is None:
            self._excepthook = sys.excepthook
            sys.excepthook = self._display
        shell = _shell()
        if self._shell is None and shell is not None and "showtraceback" not in vars(shell):
            self._shell = shell
            shell.showtraceback = self._showtraceback

    def uninstall(self) -> None:
        """Takes both away; one that somebody else has replaced is left to them."""
        if self._excepthook is not None and sys.excepthook == self._display:
            sys.excepthook = self._excepthook
        self._excepthook = None
        shell, self._shell = self._shell, None
        if shell is not None and vars(shell).get("showtraceback") == self._showtraceback:
            del shell.showtraceback

    def _interrupt(self, error: BaseException | None) -> KeyboardInterrupt | None:
        ended = isinstance(error, Abort) or isinstance(original_of(error), Abort)
        if ended and self._take_interrupt():
            return KeyboardInterrupt("interrupted at a pyfunc_debug stop")
        return None

    def _display(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        with room_for_files(str(error)):
            self._displayed(kind, error, traceback)

    def _displayed(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        hook = self._excepthook or sys.__excepthook__
        interrupt = self._interrupt(error)
        if interrupt is not None:
            hook(KeyboardInterrupt, interrupt, self._where(error))
            _remember(interrupt, with_callers(error, self._written))
            if not at_a_prompt():
                _end(_SIGINT_STATUS)
            return
        drop_handler_frame(error)
        with _chained(error, self._written):
            hook(kind, error, traceback)
        self._shown(error)  # while its traceback still has TensorFlow's frames
        remember_for_debuggers(error, self._written)

    def _showtraceback(self, exc_tuple: Any = None, *args: Any, **named: Any) -> Any:
        shell = self._shell
        show = type(shell).showtraceback
        error = exc_tuple[1] if exc_tuple is not None else sys.exc_info()[1]
        interrupt = self._interrupt(error)
        if interrupt is not None:
            result = show(shell, (KeyboardInterrupt, interrupt, self._where(error)), *args, **named)
            _remember(interrupt, with_callers(error, self._written))
            return result
        if error is not None:
            drop_handler_frame(error)
        with _chained(error, self._written):
            result = show(shell, exc_tuple, *args, **named)
        if error is not None:
            self._shown(error)  # while its traceback still has TensorFlow's frames
        original = original_of(error)
        if original is not None:
            remember_for_debuggers(error, self._written)
            traceback = with_callers(error, self._written)
            if traceback is not None and hasattr(shell, "InteractiveTB"):
                shell.InteractiveTB.tb = traceback
        return result

    def _where(self, error: BaseException | None) -> TracebackType | None:
        """The user's lines at which a call was ended."""
        original = original_of(error) or error
        return self._written(user_traceback(original.__traceback__)) if original is not None else None


def _end(status: int) -> None:
    """Ends the program with this status, the process after its exit handlers, and leaves out what Python does then.

    A pipeline of the program still calls bodies then, and a thread of C++ that wants the GIL while Python takes itself
    apart is ended inside TensorFlow before Python 3.14: the process aborts (26 of 60 on a busy machine) or hangs.
    """

    def last() -> None:
        atexit.unregister(last)
        atexit._run_exitfuncs()  # noqa: SLF001 - the others; no public way
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # closed, or None
                stream.flush()
        os._exit(status)

    atexit.register(last)
    raise SystemExit(status)


def at_a_prompt() -> bool:
    """Whether a person types at Python, and may ask later about what failed: IPython, a notebook, `python -i`."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or _shell() is not None


def _shell() -> Any:
    """IPython's shell, where there is one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
