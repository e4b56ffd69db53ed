"""Scripted prompts, and the promise that every test leaves the process as it was."""

from __future__ import annotations

import io
import pdb
import signal
import sys

import pytest

from pyfunc_debug.stops.terminal import Terminal


class Scripted:
    """A prompt whose lines are given; `text` is the dialogue, with the lines that were typed."""

    def __init__(self, lines):
        self.out = io.StringIO()
        self.terminal = _Echo(list(lines), self.out)

    @property
    def text(self):
        return self.out.getvalue()


class _Echo(Terminal):
    def __init__(self, lines, out):
        super().__init__(io.StringIO(), out)
        self.lines = lines

    def can_answer(self, stop):
        return bool(self.lines)

    def ask(self, stop, prompt):
        line = self.lines.pop(0) if self.lines else None
        self.tell(stop, f"{prompt}{line if line is not None else ''}\n")
        return line


@pytest.fixture
def script():
    """`script("n", "p x", "c")` answers the stops that follow."""
    from pyfunc_debug.switchboard import board

    before = list(board.broker.fronts)

    def use(*lines):
        scripted = Scripted(lines)
        board.broker.fronts[:] = [scripted.terminal]
        return scripted

    yield use
    board.broker.fronts[:] = before


@pytest.fixture(autouse=True)
def everything_is_put_back():
    before = (sys.breakpointhook, sys.excepthook, pdb.set_trace, signal.getsignal(signal.SIGINT), sys.gettrace())
    yield
    from pyfunc_debug.switchboard import board

    left = board.rules.all()
    board.rules.clear()
    assert not left, "the test left breakpoints"
    assert board.broker.active is None
    assert board.broker.waiting() == []
    now = (sys.breakpointhook, sys.excepthook, pdb.set_trace, signal.getsignal(signal.SIGINT), sys.gettrace())
    assert all(one is other for one, other in zip(before, now)), (before, now)
