"""The kernel's side of a panel: questions that come early or while a recording opens slowly are answered in the end."""

from __future__ import annotations

import queue
import threading

import pytest

from jupyter_ext import channel as channels
from jupyter_ext.channel import Channel
from pyfunc_debug.api.recording import Recording
from tests.limits import HANG_S
from tests.report import recordings


class Widget:
    """What a channel needs of a widget: it keeps what was sent to the page."""

    comm = object()

    def __init__(self):
        self.sent: queue.Queue = queue.Queue()

    def on_msg(self, callback):
        self.receive = callback

    def observe(self, callback, name):
        pass

    def send(self, content, buffers=None):
        self.sent.put(content)

    def replies(self):
        """Ids and answers of the next replies."""
        while True:
            content = self.sent.get(timeout=HANG_S)
            if content["type"] == "replies":
                return {reply["id"]: reply["answers"] for reply in content["replies"]}


def question(view, number, method="overview"):
    return {"type": "request", "id": number, "widget": view.panel_id, "queries": [{"method": method, "params": {}}]}


@pytest.fixture
def channel():
    channel = Channel()
    yield channel
    channel.close()


@pytest.fixture
def recording(tmp_path):
    recording = Recording(recordings.small(tmp_path / "train.pfrec", steps=5, values="none"))
    yield recording
    recording.close()


def test_a_page_that_asks_before_its_widget_is_attached_is_answered_then(channel, recording):
    early, other = channel.expect(recording), channel.expect(recording)
    assert channel.request(question(early, "1")), "the panel is known, so the page need not try elsewhere"
    attached, late = Widget(), Widget()
    channel.attach(other, attached)
    channel.request(question(other, "2"))
    assert attached.replies()["2"][0]["result"]["calls"] == 90, "nobody waits for another's widget"
    assert late.sent.empty()
    channel.attach(early, late)
    assert late.replies()["1"][0]["result"]["name"] == "train.pfrec"


def test_a_page_that_is_slow_is_told_less_often(channel, recording):
    view = channel.expect(recording)
    rests = []
    for showing in (0, 4, 60, 10**400, "soon", None, -5, float("nan")):
        channel.request({**question(view, "1"), "showing_ms": showing})
        channel.request({**question(view, "2"), "showing_ms": 1})  # the same panel shown a second time
        rests.append(view.rest_s())
        view.showing = 0.0  # as after a push
    assert rests == [0.2, 0.2, 1.5, 2.0, 0.2, 0.2, 0.2, 0.2]


def test_questions_asked_again_while_a_recording_opens_are_answered_together(channel, recording, monkeypatch):
    gate, opening = threading.Event(), threading.Event()
    opened = []

    def slowly(*arguments):
        opening.set()
        gate.wait(HANG_S)
        opened.append(arguments[0])
        return really(*arguments)

    really = channels.Answers
    monkeypatch.setattr(channels, "Answers", slowly)
    view, widget = channel.expect(recording), Widget()
    channel.attach(view, widget)
    channel.request(question(view, "1"))
    assert opening.wait(HANG_S)
    # The page has given the first up, and asks again.
    channel.request(question(view, "2"))
    channel.request(question(view, "3", "ledger"))
    gate.set()
    assert set(widget.replies()) == {"1"}
    assert set(widget.replies()) == {"2", "3"}
    assert len(opened) == 1, "it is opened once"


class Clock:
    """Time as a channel reads it; it passes only while the channel sleeps."""

    thread_time = staticmethod(lambda: 0.0)

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_panel_that_asks_without_end_gets_ten_messages_and_then_ten_a_second(recording, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(channels, "time", clock)
    channel, done, sent = Channel(), threading.Event(), []
    view = channel.expect(recording)

    class Asking(Widget):
        """A page that asks the next question when one is answered."""

        def send(self, content, buffers=None):
            if content["type"] != "replies":
                return
            sent.append(clock.now)
            if len(sent) < 40:
                channel.request(question(view, str(len(sent))))
            else:
                done.set()

    channel.attach(view, Asking())
    channel.request(question(view, "0"))
    assert done.wait(HANG_S)
    channel.close()
    assert sent[:10] == [0.0] * 10, "a click is answered at once"
    assert all(at > 0.1 * number - 1e-6 for number, at in enumerate(sent[10:], 1)), sent


def test_a_recording_that_cannot_be_opened_says_so_to_the_page(channel, recording, tmp_path):
    view, widget = channel.expect(recording), Widget()
    channel.attach(view, widget)
    (tmp_path / "train.pfrec").write_bytes(b"damaged")
    channel.request(question(view, "1"))
    assert "not a recording" in widget.replies()["1"][0]["error"]


def test_a_panel_that_is_made_while_the_channel_looks_at_all_does_not_end_it(channel, recording):
    class Making(Widget):
        """A view whose looking at lets another thread make a panel just then."""

        widget, is_open, gone, path = None, False, "", ""

        @property
        def live(self):
            if len(channel._views) < 10:
                channel.expect(recording)
            return False

    channel._views["making"] = Making()
    channel._wake.set()
    for number in ("1", "2", "3"):
        view, widget = channel.expect(recording), Widget()
        channel.attach(view, widget)
        channel.request(question(view, number))
        assert widget.replies()[number][0]["result"]["calls"] == 90
