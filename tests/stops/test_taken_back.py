"""Ctrl-C as a line is on its way to its prompt: a key that no prompt reads, where the terminal sends no signal."""

from __future__ import annotations

import os
import pty
import select
import sys
import threading
import types

import pytest

from pyfunc_debug.stops import terminal
from tests.limits import HANG_S


class Screen:
    """Both ends of a terminal; what is typed, and what was written."""

    def __init__(self):
        self.ours, theirs = pty.openpty()
        self.keyboard = os.fdopen(os.dup(theirs), encoding="utf-8")
        self.output = os.fdopen(theirs, "w", encoding="utf-8")
        self.seen = ""

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def wait(self, text):
        while text not in self.seen:
            assert select.select([self.ours], [], [], HANG_S)[0], f"only {self.seen!r}"
            self.seen += os.read(self.ours, 65536).decode()
        self.seen = self.seen[self.seen.index(text) + len(text) :]


@pytest.fixture
def screen(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdin", screen.keyboard)
    yield screen
    screen.keyboard.close()
    screen.output.close()
    os.close(screen.ours)


@pytest.fixture
def asked(screen):
    """The line that a prompt reads, on a thread."""
    stop, lines = types.SimpleNamespace(aborted=False, released=False, complete=lambda before, word: []), []
    front = terminal.Terminal(stdout=screen.output)
    thread = threading.Thread(target=lambda: lines.append(front.ask(stop, "(body #1) ")), daemon=True)

    def answer():
        thread.join(HANG_S)
        front.close()
        return lines

    return thread, answer


def test_without_an_editor(screen, asked, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    thread, answer = asked
    read, keys = terminal._line, ["\x03"]

    def read_as_it_is_pressed(stdin):
        line = read(stdin)
        if keys:
            screen.type(keys.pop())  # before the terminal is as it was: no signal is sent
            select.select([stdin], [], [])
        return line

    monkeypatch.setattr(terminal, "_line", read_as_it_is_pressed)
    thread.start()
    screen.wait("(body #1) ")
    screen.type("c\n")
    screen.wait("*** Ctrl-C took back: c")
    screen.wait("(body #1) ")
    screen.type("where\n")
    assert answer() == ["where"]


def test_what_else_is_typed_ahead_is_the_next_line(screen, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    stop = types.SimpleNamespace(aborted=False, released=False)
    front = terminal.Terminal(stdout=screen.output)
    screen.type("n\n\np x\nc\n")
    assert [front.ask(stop, "") for _ in range(4)] == ["n", "", "p x", "c"]
    screen.type("n\n\n")
    assert [front.ask(stop, "") for _ in range(2)] == ["n", ""]
    front.close()


def test_with_an_editor(screen, asked, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    thread, answer = asked
    thread.start()
    screen.wait("(body #1)")
    screen.type("c\r\x03")  # one read has both
    screen.wait("*** Ctrl-C took back: c")
    screen.wait("(body #1)")
    screen.type("where\r")
    assert answer() == ["where"]
