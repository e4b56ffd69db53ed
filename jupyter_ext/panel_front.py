"""A stop in the panel, the kernel's half: what it sends to the page, and what the page sends.

The panel answers only after it has answered a ping: an open panel does not prove that a person is there. The kernel
sends its state as a whole, again and again until a page has acknowledged it; a page sends commands, each with the stop
and the prompt it was made for. Neither needs to arrive in order, or at all.
"""

from __future__ import annotations

import contextlib
import linecache
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from jupyter_ext import breakpoints
from pyfunc_debug.report.colours import coloured
from pyfunc_debug.stops import Abort, Breakpoint, Stop
from pyfunc_debug.switchboard import board

Json = dict[str, Any]
_PING_S = 1.5
_FRESH_S = 0.5
_GONE = "use the input box"
_LOOK_AGAIN = "look again"
"""Not a line that somebody typed: recognised by identity."""
_MOST_WATCHES = 20
_MOST_PICTURED = 16 << 20


class RunningCell(Protocol):
    """What it must know of the running cell."""

    key: Any


class PanelFront:
    """A `broker.Front`: the panel's buttons and console.

    Args:
      cell: The running cell.
      send: Sends a state to every panel that is shown, on any thread, without waiting; False if there is none.
      home: The name of the running cell's own panel, or None.
      label: What to call a file: cells have names that say nothing.
    """

    name = "the panel"

    def __init__(
        self, cell: RunningCell, send: Callable[[Json], bool], home: Callable[[], str | None] = lambda: None,
        label: Callable[[str], str | None] = lambda file: None,
    ) -> None:  # fmt: skip
        self._cell = cell
        self._send = send
        self._home = home
        self._label = label
        self._lines: queue.SimpleQueue[tuple[int, int, str | None]] = queue.SimpleQueue()
        self._pong = threading.Event()
        self._ping = 0
        self._asking = False
        self._dead: Any = None
        self._proven = 0.0
        self._acknowledged = ""
        self._view: Json | None = None
        self._said_in: Any = object()
        self._next: Breakpoint | None = None
        self.watches: list[str] = []
        """Expressions that are evaluated at each prompt, in the selected frame."""
        self.guest: str | None = None
        """The panel that runs a call again: its stop is that panel's."""
        self.way = "none"
        """How commands come: "control", "comm" or "none"."""
        board.broker.listeners.append(self.announce)

    def close(self) -> None:
        """Stops listening."""
        with contextlib.suppress(ValueError):
            board.broker.listeners.remove(self.announce)

    # -- messages to the page ----------------------------------------------------------------------------------------

    def state(self) -> Json:
        """All that a page needs to draw: the stop or None, who answers it, who waits, and the ping to answer."""
        active = board.broker.active
        front = active.front if active is not None else None
        view = self._view
        if active is None or front is None:
            way, stop = "none", None
        elif front is self:
            way, stop = self.way, view if view is not None and view["id"] == active.id else None
        else:
            way, stop = "stdin", active.brief()
        return {
            "type": "stop",
            "ping": self._ping if self._asking else 0,
            "way": way,
            "now_ns": time.monotonic_ns(),
            "home": self.guest or self._home(),
            "stop": stop,
            "waiting": [stop.brief() for stop in board.broker.waiting()],
        }

    def announce(self) -> None:
        """Sends the state. Whoever sends repeats it until it is acknowledged (see `unacknowledged`)."""
        self._send(self.state())

    def unacknowledged(self) -> bool:
        """Whether a stop is shown that no page has acknowledged, or a ping is not answered: announce it again."""
        if self._asking and not self._pong.is_set():
            return True  # the page was opened after it, and its hello waits behind questions that take long
        view = self._view
        return view is not None and self._acknowledged != f"{view['id']}:{view['seq']}"

    # -- what the page says -------------------------------------------------------------------------------------------

    def request(self, content: Json, way: str) -> Json:
        """Takes a command of a page, on the thread it came on: puts it into a queue, and nothing else.

        Args:
          content: `command`: pong (ping), seen (seen: "stop:seq"), hello, release, abort, line (stop, seq, line), watch
            (watches), look, pause, or breakpoints (see `breakpoints.answer`).
          way: "control" or "comm".

        Returns:
          The reply: `status` is ok, stale, "use the input box" or unknown; `state` for hello; for look `running`, what
          `board.look` says, with how files are called.
        """
        command, status = content.get("command"), "ok"
        if command == "breakpoints":
            return breakpoints.answer(content)
        if command == "look":
            return {
                "status": status,
                "running": [self._labelled(one) for one in board.look()],
                "now_ns": time.monotonic_ns(),
            }
        if command == "pause":
            self._dead = None  # somebody is there
            return {"status": status if board.pause(self._stop_next) else self._stop_next()}
        if command == "pong":
            if self._ping and content.get("ping") == self._ping:  # a pong for an older ping proves nothing
                if self.way != "control":
                    self.way = way
                self._pong.set()
        elif command == "seen":
            self._acknowledged = str(content.get("seen", ""))
        elif command == "hello":
            self._dead = None
        elif command == "release":
            board.broker.release()
        elif command == "abort":
            board.broker.interrupt()
        elif command == "line":
            status = self._line(content)
        elif command == "watch":
            status = self._watch(content)
        else:
            status = "unknown"
        return {"status": status, "state": self.state() if command == "hello" else None}

    def _stop_next(self) -> str:
        """Nothing came to a line to pause at: the next call stops before its first one."""
        old = self._next
        if old is None or old.removed or not old.enabled:
            self._next = board.rules.add("*", once=True)
            if old is not None:  # it has stopped its call
                old.remove()
        return "No body runs now: the next call stops before its first line."

    def _watch(self, content: Json) -> str:
        watches = [str(one).strip() for one in content.get("watches") or () if str(one).strip()]
        for one in watches:
            try:
                compile(one, "<watch>", "eval")
            except (SyntaxError, ValueError) as error:
                return f"{one!r} is not a Python expression: {error}"
        self.watches = watches[:_MOST_WATCHES]
        active = board.broker.active
        if active is not None and active.front is self and active.open:
            self._lines.put((active.id, active.seq, _LOOK_AGAIN))
        return "ok"

    @staticmethod
    def picture(array: Any) -> Json | None:
        """A small picture of an array among the locals."""
        from pyfunc_debug.report.pictures import (
            Elements,
            picture,
        )  # NumPy comes with the first stop, not with %load_ext

        return picture(Elements(array)) if array.nbytes <= _MOST_PICTURED else None

    def _line(self, content: Json) -> str:
        active = board.broker.active
        if active is not None and active.front is not self:
            return _GONE
        if active is None or not active.open or (content.get("stop"), content.get("seq")) != (active.id, active.seq):
            return "stale"
        self._proven = time.monotonic()
        self._lines.put((active.id, active.seq, str(content.get("line", ""))))
        return "ok"

    @contextlib.contextmanager
    def visited_by(self, panel_id: str) -> Iterator[None]:
        """Stops are this panel's meanwhile, which is known to be there: no cell need run."""
        self.guest, self._dead = panel_id, None
        try:
            yield
        finally:
            self.guest = None

    # -- broker.Front, on the body's thread ---------------------------------------------------------------------------

    def can_answer(self, stop: Stop) -> bool:
        """Pings the page, unless it has just spoken. One that does not answer is not asked again in this cell."""
        if self._dead is not None and self._dead == self._cell.key:
            return False
        if stop.front is self and time.monotonic() - self._proven < _FRESH_S:
            return True
        self._pong.clear()
        self.way = "none"
        self._ping += 1
        self._asking = True
        try:
            answered = self._send(self.state()) and self._pong.wait(_PING_S)
        finally:
            self._asking = False
        if not answered:
            self._dead = self._cell.key
        return answered

    def ask(self, stop: Stop, prompt: str) -> str | None:
        self._view = self._labelled({**stop.view(), "prompt": prompt})
        self.announce()
        if self._said_in != self._cell.key and self.guest is None and self._home() is None:
            self._said_in = self._cell.key  # the cell shows no panel: say why it does not go on
            print(f"pyfunc_debug: {stop.title} is stopped: see the panel, tab Stop", flush=True)
        while True:
            if stop.aborted:  # also before this front was chosen: then nobody wakes it
                raise Abort("interrupted at a pyfunc_debug stop")
            if stop.released:
                return None
            number, seq, line = self._lines.get()  # without the GIL
            if line is not None and (number, seq) == (
                stop.id,
                stop.seq,
            ):  # else a second click, made for the prompt before
                if line is not _LOOK_AGAIN:
                    return line
                self._view = self._labelled({**stop.view(), "prompt": prompt})  # the same prompt, new watches
                self.announce()

    def _labelled(self, view: Json) -> Json:
        for frame in view.get("frames", ()):
            frame["label"] = self._label(frame["file"])
            if frame["label"] and "console" in view:  # pdb prints a cell's file, a number that nobody knows
                said = f"{frame['file']}("
                view["console"] = [line.replace(said, f"{frame['label']}(") for line in view["console"]]
        if view.get("site"):
            view["site"] = {**view["site"], "label": self._label(view["site"]["file"])}
        lines = linecache.getlines(view["file"]) if view.get("source") and view.get("file") else []
        whole = coloured("".join(lines))
        for line in view.get("source", ()):
            # Of the whole file, as a line may be inside a text of many lines; as it is shown, if that is another text.
            pieces = whole[line["line"] - 1] if 0 < line["line"] <= len(whole) else []
            same = "".join(text for _, text in pieces) == line["text"]
            line["pieces"] = pieces if same else [("", line["text"])]
        return view

    def tell(self, stop: Stop, text: str) -> None: ...  # it is in the view's console

    def closed(self, stop: Stop) -> None:
        self._view = None

    def wake(self, stop: Stop) -> None:
        self._lines.put((0, 0, None))
