"""Ctrl-C while a call is stopped, a prompt evaluates, or a body runs.

Python runs signal handlers on the main thread, which is usually inside TensorFlow, waiting for the very body that is
stopped. So a thread of ours gets the signal through `signal.set_wakeup_fd` and decides: it ends the evaluation, or
the stop with Abort, or stops the body that runs. The handler itself stays silent then, because a KeyboardInterrupt
raised while TensorFlow makes its exception corrupts that. Whatever we do not take is the program's, as without us.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import importlib
import os
import queue
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from pyfunc_debug.program.threads import hide_from_debuggers
from pyfunc_debug.stops.broker import Broker
from pyfunc_debug.stops.pause import Pause
from pyfunc_debug.stops.stop import Stop

_DECISION_S = 1.0
"""How long the handler waits for the thread's decision. It takes microseconds, unless somebody took the descriptor."""
_PYTHON_S = 0.2
"""How long an evaluation has to come to the exception that was sent to it: Python code looks for it all the time."""
_C_S = 0.5
"""How long a call in C has to end by a signal."""

_c: Any = None
with contextlib.suppress(ImportError):  # it was not built
    _c = importlib.import_module("pyfunc_debug.stops._signals")
    _main = threading.main_thread().ident
    if not _c.lend(_main, _main) or not _c.give_back():  # built by another patch release of Python
        _c = None


class Interrupts:
    """SIGINT's handler and wake-up descriptor, from `install` to `uninstall`.

    Args:
      broker: Who has a stop or an evaluation that can be ended.
      say: Prints a sentence for the user.
      pause: Stops the bodies that run at their next line, and calls what it is given when none came to one; None where
        nothing runs or nobody could answer.
      end_running: Ends the bodies that run, each at its next line; whether any ran.
    """

    def __init__(
        self, broker: Broker, say: Callable[[str], None], pause: Callable[[Callable[[], None]], Pause | None],
        end_running: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._broker = broker
        self._say = say
        self._pause = pause
        self._end_running = end_running
        self._pausing: Pause | None = None
        self._missed = False
        self._blocked = False  # the program has not run Python since a Ctrl-C that was left to it
        self._on_main = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._main_runs)
        self._own = 0  # signals that we sent ourselves and that have not come back yet
        self._decisions: queue.SimpleQueue[bool] = queue.SimpleQueue()  # safe to use in a signal handler
        self._thread: threading.Thread | None = None
        self._previous: Any = None
        self._previous_descriptor = -1
        self._pair: tuple[socket.socket, socket.socket] | None = None
        self._installed = False

    def install(self) -> bool:
        """Takes SIGINT over.

        Returns:
          Whether that was possible: only on the main thread, and not where the program ignores Ctrl-C or has a handler
          outside of Python.
        """
        if self._installed:
            return True
        if threading.current_thread() is not threading.main_thread():
            return False
        previous = signal.getsignal(signal.SIGINT)
        if not callable(previous):
            return False
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        self._pair = (reader, writer)
        self._previous = previous
        self._previous_descriptor = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, self._handle)
        self._installed = True
        thread = threading.Thread(target=self._watch, args=(reader,), name="pyfunc_debug interrupts", daemon=True)
        hide_from_debuggers(thread)
        self._thread = thread
        thread.start()
        return True

    def uninstall(self) -> None:
        """Puts the handler and the descriptor back, unless somebody replaced them meanwhile."""
        if not self._installed or threading.current_thread() is not threading.main_thread():
            return
        assert self._pair is not None
        self._installed = False
        if _c is not None:
            _c.give_back()
        self._cancel_pause()
        mine = self._pair[1].fileno()
        current = signal.set_wakeup_fd(self._previous_descriptor)
        if current != mine:
            signal.set_wakeup_fd(current)
        if signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, self._previous)
        reader, writer = self._pair
        self._pair = None
        writer.close()  # the thread reads the end, and closes its own
        del reader
        if self._thread is not None:
            self._thread.join(_DECISION_S)  # off means that no thread and no descriptor of ours is left

    def _handle(self, number: int, frame: FrameType | None) -> Any:
        if _c is not None:
            _c.give_back()
        decisions = self._decided()
        if self._broker.can_end_evaluation(threading.get_ident()):
            if False in decisions and threading.get_ident() != threading.main_thread().ident:
                self._missed = True  # nobody can answer: it is the program's as well, and that has not had it yet
                _thread.interrupt_main()
            raise KeyboardInterrupt
        if decisions[-1:] == [True] or self._broker.busy():
            return None  # the program learns of an interrupted stop when TensorFlow has made its exception
        return self._previous(number, frame)

    def _decided(self) -> list[bool]:
        """What the thread decided about each signal that was not handled yet."""
        decisions = []
        alive = self._thread is not None and self._thread.is_alive()  # it is not in a forked child
        with contextlib.suppress(queue.Empty):
            decisions.append(self._decisions.get(timeout=_DECISION_S if alive else 0))
            while True:
                decisions.append(self._decisions.get_nowait())
        return decisions

    def _watch(self, reader: socket.socket) -> None:
        with reader:
            while True:
                received = reader.recv(64)
                if not received:
                    return
                if self._previous_descriptor >= 0:
                    try:
                        os.write(self._previous_descriptor, received)  # asyncio's, say
                    except OSError:
                        pass
                if received.count(signal.SIGINT) > self._own:
                    self._own = 0
                    self._decisions.put(self._decide())
                    self._end_in_c()
                else:
                    self._own -= received.count(signal.SIGINT)

    def _decide(self) -> bool:
        """Does what a Ctrl-C is for now; False leaves it to the program."""
        if self._missed:
            self._missed = False
            return False
        if self._broker.end_evaluation() or self._broker.interrupt():
            return True
        if self._broker.endings.end(_PYTHON_S):  # its call stops then
            return self._broker.can_answer(Stop(None, None, None, ""))
        if self._cancel_pause():
            return False  # the second one
        self._pausing = self._pause(self._no_line)
        if self._pausing is not None or (self._blocked and self._end_running()):
            return True
        self._blocked = True
        ctypes.pythonapi.Py_AddPendingCall(self._on_main, None)
        return False

    def _main_runs(self, unused: Any) -> int:
        """On Python's main thread, as soon as it runs Python again: whoever replaces our handler does not matter."""
        self._blocked = False
        return 0

    def _end_in_c(self) -> None:
        """Ends locks and sleeps that a prompt or a breakpoint's expression evaluates on threads of TensorFlow's."""
        broker = self._broker
        # Two exceptions would be one too many: the one that was sent would be raised in `_handle`.
        ident = broker.evaluates_still(_PYTHON_S, back=_c is not None)
        if ident is not None:
            self._send_signal(ident)
            if broker.evaluates_still(_C_S) is not None:
                broker.tell_evaluation("\n*** a call in C does not end: Ctrl-C again ends the program\n")
        for ident in broker.endings.going_on(_PYTHON_S, back=_c is not None):
            self._send_signal(ident)
            if ident in broker.endings.going_on(_C_S):
                self._say("a condition or a log does not end: Ctrl-C again ends the program")

    def _send_signal(self, ident: int) -> None:
        """For a moment that thread is Python's main one, on which what a signal's handler raises ends calls in C."""
        if _c is None or not _c.lend(threading.main_thread().ident, ident):
            return
        # Until `_handle`, which runs there next.
        self._own += 1
        self._decisions.put(True)
        try:
            signal.pthread_kill(ident, signal.SIGINT)
        except OSError:  # the thread has ended: the next signal is the user's
            _c.give_back()
            self._own -= 1
            with contextlib.suppress(queue.Empty):
                self._decisions.get_nowait()

    def _cancel_pause(self) -> bool:
        pausing, self._pausing = self._pausing, None
        if pausing is None or not pausing.waits:
            return False
        pausing.cancel()
        return True

    def _no_line(self) -> None:
        """The bodies that Ctrl-C was to stop returned before they came to a line: it is the program's after all."""
        self._missed = True
        _thread.interrupt_main()
