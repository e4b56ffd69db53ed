"""Ctrl-C while a call is stopped.

Python runs signal handlers on the main thread, which is usually inside TensorFlow, waiting for the very body that is
stopped. So a thread of ours gets the signal through `signal.set_wakeup_fd` and ends the stop with Abort; the
handler itself stays silent then, because a KeyboardInterrupt raised while TensorFlow makes its exception corrupts that.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from types import FrameType
from typing import Any

from pyfunc_debug.program.threads import hide_from_debuggers
from pyfunc_debug.stops.broker import Broker


class Interrupts:
    """SIGINT's handler and wake-up descriptor, from `install` to `uninstall`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
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
        thread.start()
        return True

    def uninstall(self) -> None:
        """Puts the handler and the descriptor back, unless somebody replaced them meanwhile."""
        if not self._installed or threading.current_thread() is not threading.main_thread():
            return
        assert self._pair is not None
        self._installed = False
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

    def _handle(self, number: int, frame: FrameType | None) -> Any:
        if self._broker.busy():
            return None  # the thread ends the stop; the program learns of it when TensorFlow has made its exception
        return self._previous(number, frame)

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
                if signal.SIGINT in received:
                    self._broker.interrupt()
