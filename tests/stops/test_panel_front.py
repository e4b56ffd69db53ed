"""The panel's side of a stop, with a page that is a thread: pings, commands for one prompt only, silence."""

from __future__ import annotations

import queue
import threading
import types

import pytest

import pyfunc_debug as pfd
from jupyter_ext import announcer, panel_front
from tests.limits import HANG_S


class Page:
    """Answers pings, and types `lines`; `stale` repeats each command, as a double click does."""

    def __init__(self, front_of, lines, answers=True):
        self.states = queue.SimpleQueue()
        self.lines = list(lines)
        self.answers = answers
        self.said = []
        self.views = []
        self.front = front_of(self.send)
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()

    def send(self, state):
        self.states.put(state)
        return True

    def _live(self):
        done = None
        while True:
            state = self.states.get()
            if state is None:
                return
            if state["ping"] and self.answers:
                self.front.request({"command": "pong", "ping": state["ping"]}, "control")
            view = state["stop"]
            if view is None or "seq" not in view or (view["id"], view["seq"]) == done or not self.lines:
                continue
            command = {"command": "line", "stop": view["id"], "seq": view["seq"], "line": self.lines[0]}
            line = self.lines.pop(0)
            self.views.append(view)  # before it is answered: the test may go on with the answer
            if self.front.request(command, "control")["status"] == "ok":
                done = (view["id"], view["seq"])
                self.said.append(self.front.request(command, "control")["status"])  # the second click
            else:
                self.lines.insert(0, line)
                self.views.pop()


@pytest.fixture
def page():
    from pyfunc_debug.switchboard import board

    class Cell:
        key = "cell"

    made = []

    def use(*lines, answers=True):
        one = Page(lambda send: panel_front.PanelFront(Cell(), send), lines, answers)
        board.broker.fronts.insert(0, one.front)
        made.append(one)
        return one

    yield use
    for one in made:
        board.broker.fronts.remove(one.front)
        one.front.close()
        one.states.put(None)


def body(x):
    y = x * 2
    return y


def test_the_panel_steps_prints_and_continues_and_a_second_click_is_stale(tf, page, monkeypatch):
    monkeypatch.setattr(panel_front, "_PING_S", HANG_S)
    seen = page("n", "p y", "c")
    breakpoint_ = pfd.break_on("body")
    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    assert float(function(tf.constant(4.0))) == 8.0
    breakpoint_.remove()
    assert breakpoint_.outcomes == {"stopped": 1}
    first, second, third = seen.views
    assert [one["name"] for one in first["locals"]] == ["x"]
    assert [one["name"] for one in second["locals"]] == ["x", "y"]
    assert [line["text"].strip() for line in first["source"] if line["current"]] == ["y = x * 2"]
    assert "numpy=8.0" in "\n".join(third["console"])
    assert seen.front.way == "control"


def test_a_panel_that_does_not_answer_is_passed_over_once_a_cell(tf, page, monkeypatch):
    monkeypatch.setattr(panel_front, "_PING_S", 0.05)
    silent = page(answers=False)
    breakpoint_ = pfd.break_on("body")
    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    for _ in range(3):
        assert float(function(tf.constant(4.0))) == 8.0
    breakpoint_.remove()
    assert breakpoint_.outcomes == {"nobody to answer": 3}
    assert silent.front._ping == 1


def test_a_ping_that_a_page_opened_too_late_to_hear_is_said_again(monkeypatch):
    """And the page's own hello waits behind questions that take long."""
    monkeypatch.setattr(panel_front, "_PING_S", HANG_S)
    monkeypatch.setattr(announcer, "_AGAIN_S", 0.01)
    pings = []

    class Late:
        def send(self, state):
            pings.append(state["ping"])
            if len(pings) > 1:
                front.request({"command": "pong", "ping": state["ping"]}, "control")

    front = panel_front.PanelFront(types.SimpleNamespace(key=1), lambda state: sender.announce(state))
    sender = announcer.Announcer(lambda: [Late()], lambda: front.state() if front.unacknowledged() else None)
    assert front.can_answer(types.SimpleNamespace(front=None))
    sender.close()
    front.close()
    assert pings[:2] == [1, 1]


def test_a_pause_while_no_body_runs_stops_the_next_call_once(tf, page, monkeypatch):
    monkeypatch.setattr(panel_front, "_PING_S", HANG_S)
    seen = page("c")
    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    for _ in range(2):  # the second is the same request, not another one
        said = seen.front.request({"command": "pause"}, "control")["status"]
        assert said == "No body runs now: the next call stops before its first line."
    assert [float(function(tf.constant(value))) for value in (4.0, 5.0)] == [8.0, 10.0]
    assert [view["node"].rpartition(".")[2] for view in seen.views] == ["body"]
    [rule] = pfd.breakpoints()
    rule.remove()
    assert (rule.where, rule.outcomes) == ("*", {"stopped": 1})


def test_commands_for_another_prompt_are_stale(page):
    front = page().front
    assert front.request({"command": "line", "stop": 1, "seq": 1, "line": "c"}, "comm")["status"] == "stale"
    assert front.request({"command": "dance"}, "comm")["status"] == "unknown"
    assert front.request({"command": "hello"}, "comm")["state"]["stop"] is None
