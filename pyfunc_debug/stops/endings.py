"""Evaluations of breakpoints' expressions, any number at a time, that Ctrl-C can end where they never return.

The exception is sent to the thread (`broker.end_evaluation` does the same at a prompt), and may come at any line of
Python there. So `evaluate` is left only when it has come or none was sent: it never gets into the body.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_MOST_JUMPS = 1000
"""CPython raises what another thread sent at a jump backwards; one is enough."""
_TICK_S = 0.001


class Interrupted(Exception):  # noqa: N818 - what happened, no error of anybody's
    """Ctrl-C ended an expression of a breakpoint."""

    def __str__(self) -> str:
        return "interrupted by Ctrl-C"


class _End:
    """The end of one evaluation; `asked` is None until it is known whether that was still running."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.asked: bool | None = None


class Endings:
    """Which threads evaluate an expression of a breakpoint, and what was asked to end."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._running: dict[int, int] = {}  # by thread: the number of its evaluation
        self._ends: dict[int, _End] = {}  # by thread: the newest that was asked for

    # -- on the bodies' threads ---------------------------------------------------------------------------------------

    def evaluate(self, read: Callable[[], T]) -> T:
        """What `read` returns.

        Raises:
          Interrupted: Ctrl-C ended it.
        """
        me = threading.get_ident()
        if me in self._running:  # the expression of a node that an expression runs
            return read()
        number = next(self._numbers)
        try:
            self._running[me] = number
            try:
                value = read()
            finally:
                self._running.pop(me, None)
                ended = self._ended(me, number)
        except KeyboardInterrupt:
            self._running.pop(me, None)
            if not self._ended(me, number):  # the program's own
                raise
            ended = True
        if ended:
            raise Interrupted
        return value

    def _ended(self, me: int, number: int) -> bool:
        """Whether an evaluation that is over was asked to end; what was sent to it has come then, or comes here."""
        end = self._ends.get(me)
        if end is None or end.number != number:
            return False
        while end.asked is None:  # another thread is about to say so
            time.sleep(_TICK_S)
        await_interrupt()
        return end.asked

    # -- on the thread that has the signal ----------------------------------------------------------------------------

    def end(self, patience_s: float) -> bool:
        """Ends, with KeyboardInterrupt, what is being evaluated and goes on for a while.

        Asked again for the same evaluation, it ends the process as Ctrl-C does.

        Args:
          patience_s: How long an evaluation on TensorFlow's threads may go on: most end in microseconds. The main
            thread waits for this decision meanwhile.

        Returns:
          Whether there was any.
        """
        running, main = dict(self._running), threading.main_thread().ident
        if any(self._goes_on(ident) for ident in running):
            end_process()
        if any(ident != main for ident in running):
            time.sleep(patience_s)
        asked = [self._ask(ident, number, ident != main) for ident, number in running.items()]
        return any(asked)

    def _ask(self, ident: int, number: int, send: bool) -> bool:
        end = self._ends[ident] = _End(number)
        going_on = self._running.get(ident) == number  # then it finds the end that is asked for
        if going_on and send:  # on the main thread the signal's handler raises it
            send_interrupt(ident)
        end.asked = going_on
        return going_on

    def going_on(self, timeout_s: float, back: bool = False) -> list[int]:
        """Waits until what was asked to end has ended.

        Args:
          timeout_s: How long.
          back: Whether the exceptions that were sent to those that have not are taken back.

        Returns:
          The threads of those that have not, without the main one: there a signal's handler ends calls in C.
        """
        end_s = time.monotonic() + timeout_s
        while True:
            left = [one for one in self._running.copy() if self._goes_on(one) and one != threading.main_thread().ident]
            if not left or time.monotonic() >= end_s:
                break
            time.sleep(_TICK_S)
        for ident in left if back else ():
            take_back(ident)
        return left

    def can_end(self, ident: int) -> bool:
        """Whether what this thread does now is an evaluation that was asked to end."""
        return self._goes_on(ident)

    def _goes_on(self, ident: int) -> bool:
        end = self._ends.get(ident)
        return end is not None and end.asked is True and self._running.get(ident) == end.number


def end_process() -> None:
    """Ends the process as Ctrl-C ends one that does not handle it."""
    ctypes.pythonapi.PyOS_setsig(signal.SIGINT, None)  # signal.signal() is the main thread's
    os.kill(os.getpid(), signal.SIGINT)


def send_interrupt(ident: int) -> None:
    """Raises KeyboardInterrupt in the Python code of a thread."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt))


def take_back(ident: int) -> None:
    """Takes back what was sent to a thread and has not come yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), None)
    # CPython goes on looking for it until one has come, on any thread; Python 3.11 never stops looking in a call that
    # is traced (DO_TRACING of RESUME in Python/ceval.c).
    with contextlib.suppress(KeyboardInterrupt):
        send_interrupt(threading.get_ident())
        await_interrupt()


def await_interrupt() -> None:
    """What was sent to this thread comes here at the latest."""
    for _ in range(_MOST_JUMPS):
        pass
