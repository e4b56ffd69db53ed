"""Scripted prompts, and the promise that every test leaves the process as it was."""

from __future__ import annotations

import pdb
import signal
import sys

import pytest

from pyfunc_debug.stops.script import Script


@pytest.fixture
def script():
    """`script("n", "p x", "c")` answers the stops that follow."""
    from pyfunc_debug.switchboard import board

    before = list(board.broker.fronts)

    def use(*lines):
        scripted = Script(lines)
        board.broker.fronts[:] = [scripted]
        return scripted

    yield use
    board.broker.fronts[:] = before


@pytest.fixture(autouse=True)
def everything_is_put_back():
    # Python's own pdb leaves a handler behind after `c`, and puts back what it replaced at its next prompt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pdb.Pdb._previous_sigint_handler = None
    before = (sys.breakpointhook, sys.excepthook, pdb.set_trace, signal.getsignal(signal.SIGINT), sys.gettrace())
    yield
    from pyfunc_debug.switchboard import board

    left = board.rules.all()
    board.rules.clear()
    assert not left, "the test left breakpoints"
    assert board.broker.active is None
    assert board.broker.waiting() == []
    now = (sys.breakpointhook, sys.excepthook, pdb.set_trace, signal.getsignal(signal.SIGINT), sys.gettrace())
    assert [(one, other) for one, other in zip(before, now) if one is not other] == []
