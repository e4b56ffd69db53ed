"""How a panel and the kernel talk: one thread answers all panels and sends the answers.

Requests come over the control channel, which a kernel serves while a cell is busy or stopped, or over the widget's
comm. Whoever receives one only puts it into a queue. Messages are batched and few: a server drops what exceeds its rate
limit, and the recorded program should not notice that somebody looks.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from jupyter_ext.announcer import Announcer
from pyfunc_debug.errors import PyfuncDebugError
from pyfunc_debug.program.threads import daemon_thread
from pyfunc_debug.report import html
from pyfunc_debug.report.answers import Answers
from pyfunc_debug.report.pytest_file import test_name

if TYPE_CHECKING:
    from jupyter_ext.from_call import Replay

Json = dict[str, Any]
MESSAGE_TYPE = "pyfunc_debug_request"
_log = logging.getLogger("pyfunc_debug")

_RATE = 10.0
"""Messages a second, with as much in reserve: a click is answered at once, a stream is not."""
_PUSH_S = 0.2
_DUTY = 40.0
"""The pause between two pushes is this many times the CPU seconds that the last answer took: at most 2.5 %."""
_PAGE_DUTY = 25.0
"""And this many times what the page needed to show it: it may run on the program's own cores."""
_REST_S = 2.0
"""The page never makes it longer than this many seconds: the panel stays alive."""
_MAX_OPEN = 4
"""Panels whose columns stay in memory; older ones read their file again when somebody looks."""


class View:
    """One panel's side of the kernel: its widget, its recording, and what was last sent to it."""

    def __init__(self, panel_id: str, recording: Any) -> None:
        self.panel_id = panel_id
        self.widget: Any = None
        self.recording = recording
        self.path: str = recording.path
        self.live = True
        self.gone = ""
        self.pushed = -1
        self.next_push = 0.0
        self.spent = 0.0
        self.showing = 0.0
        self.wishes: dict[str, str] = {}
        self.stops: StopTalk | None = None
        self.replay: Replay | None = None
        self._answers: Answers | None = None

    def rest_s(self) -> float:
        """Seconds from one push to the next: the program should not notice that somebody looks."""
        return max(_PUSH_S, _DUTY * self.spent, min(_PAGE_DUTY * self.showing, _REST_S))

    @property
    def answers(self) -> Answers:
        """The recording as the panel sees it, opened when it is first asked."""
        if self.gone:
            raise PyfuncDebugError(self.gone)
        if self._answers is None:
            temporary = os.path.basename(self.path) == "recording.pfrec"
            name = "this cell" if temporary else os.path.basename(self.path)
            self._answers = Answers(self.path, name, self._findings)
        return self._answers

    def _findings(self) -> Any:
        try:
            return self.recording.findings(front="notebook")
        except Exception:  # a check that fails must not take the panel with it
            _log.exception("pyfunc_debug: the doctor failed")
            return None

    @property
    def is_open(self) -> bool:
        """Whether the file is open for it."""
        return self._answers is not None

    def forget(self) -> None:
        """Frees memory; the next question opens the file again."""
        self._answers = None

    def changed(self) -> bool:
        """Whether there is something new to report."""
        return self._answers is not None and not self.gone and self._answers.changed()


class StopTalk(Protocol):
    """What answers pages about stops: `panel_front.PanelFront`."""

    def state(self) -> Json:
        """All that a page draws of the stop."""

    def unacknowledged(self) -> bool:
        """Whether the state is to be sent again."""

    def request(self, content: Json, way: str) -> Json:
        """Takes a command of a page; the reply."""

    def visited_by(self, panel_id: str) -> contextlib.AbstractContextManager[None]:
        """Around a call that a panel runs again: its stops are that panel's."""


class Channel:
    """The publisher thread and its queue. One for a kernel; made with the first panel."""

    def __init__(self) -> None:
        self._requests: collections.deque[tuple[View, Json]] = collections.deque()
        self._views: dict[str, View] = {}
        self._wake = threading.Event()
        self._reading = threading.Lock()
        self._closed = False
        self.stops: StopTalk | None = None
        self.wishes: dict[str, str] = {}
        """Policies that somebody asked for in a panel, by node: of the next recorded cell."""
        self.announcer = Announcer(self._widgets, self._stop_again)
        self._tokens = _RATE
        self._refilled = time.monotonic()
        self._thread = daemon_thread(self._run, "pyfunc_debug publisher")
        self._thread.start()

    def expect(self, recording: Any) -> View:
        """Makes the view of a panel that is about to be shown: its page may ask before its widget is attached."""
        view = View(uuid.uuid4().hex[:12], recording)
        view.wishes, view.stops = self.wishes, self.stops
        self._views[view.panel_id] = view
        return view

    def attach(self, view: View, widget: Any) -> None:
        """Connects the widget."""
        widget.on_msg(lambda _, content, buffers: self.receive(view, content))
        widget.observe(lambda change: self._drop(view), "comm")
        view.widget = widget
        self._wake.set()

    def _drop(self, view: View) -> None:
        if view.widget.comm is None:
            self._views.pop(view.panel_id, None)

    def request(self, content: Json) -> Json:
        """Takes a request from the control channel.

        Returns:
          The reply: its `status` is unknown if its panel is not known here.
        """
        view = self._views.get(str(content.get("widget")))
        if view is None:
            return {"status": "unknown"}
        if content.get("type") == "stop":
            return self.stops.request(content, "control") if self.stops is not None else {"status": "unknown"}
        self.receive(view, content)
        return {"status": "ok"}

    def receive(self, view: View, content: Json) -> None:
        """Takes a request: puts it into the queue, nothing else."""
        if not isinstance(content, dict):
            return
        if content.get("type") == "request":
            view.showing = max(view.showing, _seconds(content.get("showing_ms")))
            self._requests.append((view, content))
        elif content.get("type") == "stop" and self.stops is not None:
            reply = self.stops.request(content, "comm")
            self.announcer.reply(view.widget, {"type": "stop_reply", "id": content.get("id"), **reply})
        self._wake.set()

    def _widgets(self) -> list[Any]:
        return [view.widget for view in list(self._views.values()) if view.widget is not None]

    def _stop_again(self) -> Json | None:
        return self.stops.state() if self.stops is not None and self.stops.unacknowledged() else None

    def replaced(self, path: str) -> None:
        """Tells panels of an older recording in this file that it is gone."""
        for view in list(self._views.values()):
            if os.path.abspath(view.path) == os.path.abspath(path):
                view.gone = "this recording was replaced by a newer one in the same file"
                view.forget()

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """No file is read meanwhile: the writer can fold its log back."""
        with self._reading:
            yield
        self._wake.set()

    def close(self) -> None:
        """Ends the thread."""
        self._closed = True
        self._wake.set()
        self._thread.join(5)
        self.announcer.close()

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed:
            try:
                self._wake.wait(self._pause())
                self._wake.clear()
                self._answer()
                self._push()
            except Exception:
                _log.exception("pyfunc_debug: the panel's thread had trouble and goes on")
                time.sleep(0.5)

    def _pause(self) -> float | None:
        """How long to sleep without a request: forever when nothing grows."""
        return 0.1 if any(view.live for view in list(self._views.values())) else None

    def _token(self, reserve: float = 0.0) -> bool:
        now = time.monotonic()
        self._tokens = min(_RATE, self._tokens + (now - self._refilled) * _RATE)
        self._refilled = now
        if self._tokens < 1 + reserve:
            return False
        self._tokens -= 1
        return True

    def _answer(self) -> None:
        while not self._closed:
            view = next((view for view, _ in list(self._requests) if view.widget is not None), None)
            if view is None:
                return
            if not self._token():
                time.sleep(1 / _RATE)
                continue
            batch = []
            # All questions of one panel that wait are answered in one message.
            for item in [item for item in list(self._requests) if item[0] is view]:
                self._requests.remove(item)
                batch.append(item[1])
            self._reply(view, batch)

    def _reply(self, view: View, batch: list[Json]) -> None:
        start = time.thread_time()
        replies, buffers = [], list[memoryview]()
        with self._reading:
            try:
                with view.answers.reading() as answers:
                    for content in batch:
                        asked = [_ask(answers, view, query, buffers) for query in content.get("queries", ())]
                        replies.append({"id": content.get("id"), "answers": asked})
            except Exception as error:
                replies = [
                    {"id": content.get("id"), "answers": [{"error": _words(error)} for _ in content.get("queries", ())]}
                    for content in batch
                ]
                buffers = []
        view.widget.send({"type": "replies", "replies": replies}, buffers)
        view.spent += time.thread_time() - start
        self._make_room(view)

    def _make_room(self, newest: View) -> None:
        views = [view for view in list(self._views.values()) if view is not newest and view.is_open]
        for view in views[: max(0, len(views) - _MAX_OPEN + 1)]:
            view.forget()

    def _push(self) -> None:
        now = time.monotonic()
        for view in list(self._views.values()):
            if not view.live or view.widget is None:
                continue
            ended = getattr(view.recording, "state", "stopped") == "stopped"
            if now < view.next_push and not ended:
                continue
            if (view.changed() or ended) and (ended or self._token(_RATE / 2)):
                view.pushed += 1
                view.widget.send({"type": "revision", "revision": view.pushed})
                # The page's questions for this revision are paid for before the next one.
                view.next_push = now + view.rest_s()
                view.spent = view.showing = 0.0
            if ended:
                view.live = False


def _seconds(milliseconds: Any) -> float:
    """What a page says, which may be anything."""
    return min(milliseconds, 1e6) / 1e3 if isinstance(milliseconds, (int, float)) and milliseconds > 0 else 0.0


def _ask(answers: Answers, view: View, query: Json, buffers: list[memoryview]) -> Json:
    try:
        method, params = str(query.get("method")), dict(query.get("params") or {})
        if method in _DEEDS:
            return {"result": _DEEDS[method](view, **params)}
        result, arrays = answers.ask(method, params)
    except Exception as error:
        return {"error": _words(error)}
    layout: dict[str, tuple[str, int, int, int]] = {}
    for name, array in arrays.items():
        layout[name] = (array.dtype.name, len(buffers), 0, int(array.size))
        buffers.append(memoryview(array.tobytes()))
    return {"result": result, "arrays": layout}


def _keep(view: View, *, node: str) -> str:
    """Keeps the values of a node from now on, or in the next recorded cell."""
    if view.recording.keep(node):
        return f"the values of {node}'s calls that begin from now on are kept in full"
    view.wishes[node] = "full"
    return f"the next cell with %%pyfunc_trace keeps them, as with --values '{node}=full'"


def _replay(view: View, *, call: int, edits: Json | None = None, debugger: bool = False) -> Json:
    """Runs a recorded call again."""
    from jupyter_ext.from_call import Replay

    if view.replay is not None and view.replay.outcome()["running"]:
        raise PyfuncDebugError("another call is running again: let it end first")
    visit = view.stops.visited_by(view.panel_id) if debugger and view.stops is not None else None
    if debugger and visit is None:
        raise PyfuncDebugError("nobody could answer a stop here")
    view.replay = Replay(view.recording, int(call), edits or {}, visit)
    return view.replay.start()


def _replayed(view: View) -> Json:
    """What became of it."""
    return view.replay.outcome() if view.replay is not None else {"running": False, "error": "nothing runs"}


def _as_test(view: View, *, call: int, save: bool = False) -> Json:
    """A call as a pytest file: its text; with `save`, or where it needs arrays, files next to the notebook."""
    recording = view.recording
    one = recording.call(int(call))
    stem = test_name(one, next(node for node in recording.nodes() if node.id == one.node))
    test = recording.as_test(one, stem)
    told: Json = {"text": test.text, "name": f"{stem}.py", "notes": list(test.notes), "saved": None}
    if save or test.arrays:
        told["saved"] = test.save(f"{stem}.py")
        told["arrays"] = f"{stem}.npz" if test.arrays else None
    return told


def write_report(view: View) -> str:
    """Writes the report next to the notebook under a name that is free, and returns that name."""
    stem = os.path.splitext(os.path.basename(view.path))[0]
    for number in range(1, 1000):
        name = f"{stem}.html" if number == 1 else f"{stem}-{number}.html"
        if not os.path.exists(name):
            break
    html.write(view.path, name, functools.partial(view.recording.findings, front="notebook"))
    return os.path.abspath(name)


_DEEDS: dict[str, Callable[..., Any]] = {
    "report": write_report, "keep": _keep, "replay": _replay, "replayed": _replayed, "test": _as_test,
}  # fmt: skip
"""What a panel asks to be done, beside its questions."""


def _words(error: Exception) -> str:
    if isinstance(error, PyfuncDebugError):
        return str(error)
    _log.debug("pyfunc_debug: a panel's question failed", exc_info=error)
    return f"the kernel could not answer this ({type(error).__name__}: {error})"


class ControlHandler:
    """Listens on the control channel of an ipykernel; `close` takes it away again."""

    def __init__(self, kernel: Any, request: Callable[[Json], Json]) -> None:
        self._kernel = kernel
        self._request = request
        handlers = getattr(kernel, "control_handlers", None)
        self._handlers = handlers if isinstance(handlers, dict) else None
        if self._handlers is not None:
            self._handlers[MESSAGE_TYPE] = self._handle

    async def _handle(self, stream: Any, ident: Any, parent: Json) -> None:
        content = self._request(parent.get("content") or {})
        self._kernel.session.send(stream, MESSAGE_TYPE.replace("request", "reply"), content, parent, ident)

    def close(self) -> None:
        if self._handlers is not None:
            self._handlers.pop(MESSAGE_TYPE, None)
