"""What runs in bodies now, without stopping any: the node, the call, the thread, the stack and the locals.

Runs no code of the user's: a value whose `repr` the program could have written is shown by its type alone.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

from pyfunc_debug.places import source_line
from pyfunc_debug.program.garbage import no_search
from pyfunc_debug.stops.stop import one_line, source

_MOST_LOCALS = 60
_TEXT = 200
_ARRAYS = ("ndarray", "EagerTensor")


@dataclass(frozen=True)
class RunningCall:
    """A call whose body a thread runs.

    Attributes:
      body: The body's name, of a gradient call `∇` and that of the forward one.
      call: The call's number, or None where nobody counts the calls.
      thread: The thread's name.
      since_ns: When the body began (time.monotonic_ns), or None where nobody records it.
      stopped: Whether it is held at a stop of ours: its prompt shows it.
      stack: The user's frames and lines, outermost first.
    """

    body: str
    call: int | None
    thread: str
    since_ns: int | None
    stopped: bool
    stack: list[tuple[FrameType, int]]

    def view(self, user_line: Callable[[str, int], tuple[str, int]]) -> dict[str, Any]:
        """What a front draws: plain dictionaries, lists, text and numbers."""
        frame, line = self.stack[-1]
        frames = [
            {"function": one.f_code.co_name.removeprefix("tf__"), "file": file, "line": at}
            for one, where in self.stack
            for file, at in [user_line(one.f_code.co_filename, where)]
        ]
        return {
            "node": self.body, "call": self.call, "thread": self.thread, "since_ns": self.since_ns,
            "stopped": self.stopped, **frames[-1], "frames": frames, "source": source(frame, line),
            # On Python before 3.13 a frame keeps what was looked at until it ends; that of a stop may hold changes.
            "locals": [] if self.stopped else _locals(frame),
        }  # fmt: skip


def look_text(views: list[dict[str, Any]], now_ns: int) -> str:
    """What `RunningCall.view` gave, for a terminal."""
    lines = []
    for view in views:
        call = "" if view["call"] is None else f" #{view['call']}"
        age = "" if view["since_ns"] is None else f", for {(now_ns - view['since_ns']) / 1e9:.1f} s"
        lines.append(f"{view['node']}{call} {'is stopped' if view['stopped'] else 'runs'} on {view['thread']}{age}")
        lines += [f"  {source_line(one['file'], one['line'])} in {one['function']}" for one in view["frames"]]
        lines += [f"    {one['name']} = {one['text']}" for one in view["locals"]]
    return "\n".join(lines) or "No body runs."


def _locals(frame: FrameType) -> list[dict[str, Any]]:
    with no_search():  # the thread runs on
        found = dict(frame.f_locals)
    return [
        {"name": name, "type": type(value).__name__, "text": _SAFE.repr(value)}
        for name, value in list(found.items())[:_MOST_LOCALS]
        if not isinstance(value, ModuleType) and not name.startswith(("__", "ag__", "@"))
    ]


class _Safe(reprlib.Repr):
    """Values of Python's own types and arrays as text, of others the type: their `repr` may wait for the body."""

    def __init__(self) -> None:
        super().__init__()
        self.maxother = self.maxstring = self.maxlong = _TEXT

    def repr1(self, x: Any, level: int) -> str:
        kind = type(x)
        if kind.__name__ in _ARRAYS and kind.__module__.startswith(("numpy", "tensorflow")):
            return one_line(x)[:_TEXT]
        if kind.__module__ == "builtins":
            if kind in (int, float, complex, bool, bytes, type(None), range, slice):
                return repr(x)[:_TEXT]
            if kind in (str, list, tuple, dict, set, frozenset):
                return super().repr1(x, level)
        return f"<{kind.__name__}>"


_SAFE = _Safe()
