"""One interception for all who want calls: the recorder, the breakpoints, and whatever else a session switches on.

    TensorFlow -> interception -> relay -> recorder
                                        -> stops -> a prompt, with what it asks of the rest: environment

`switches` switches interception on for whoever wants it, off after the last, and plugs all of them into the relay.
"""

from __future__ import annotations

import os

from pyfunc_debug.switchboard.switches import Switchboard

board = Switchboard()
"""This process's."""

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=lambda: board.forget_in_child())

__all__ = ["Switchboard", "board"]
