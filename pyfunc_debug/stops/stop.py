"""One call that is stopped, or waits to be: what it is, and a snapshot of it that any front can draw."""

from __future__ import annotations

import itertools
import linecache
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any, Protocol

from pyfunc_debug.events import NodeFacts
from pyfunc_debug.program.frames import is_user
from pyfunc_debug.program.threads import current_name
from pyfunc_debug.stops.rules import Breakpoint

_NUMBERS = itertools.count(1)
_SHOWN = 300
_LINES_AROUND = 12
"""A panel shows fifteen lines or more."""
_MOST_CHILDREN = 30
_DEPTH = 3
_MOST_READ = 4_000_000
"""Elements of an array that are read for its range."""
_MOST_LOCALS = 200

_STOPPING = ("pyfunc_debug.stops.", "pyfunc_debug.switchboard.")

Picture = Callable[[Any], "dict[str, Any] | None"]
"""Makes a small picture of an array, or None."""


class Abort(RuntimeError):  # noqa: N818 - it is not an error of the program
    """Ends a body whose stop was quit or interrupted.

    An ordinary exception on purpose: a KeyboardInterrupt in a body corrupts TensorFlow's error (pybind11).
    """


def end_in_body(abort: Abort) -> None:
    """Cuts what comes after the body's line off a traceback: our frames, and those of pdb between them."""
    entry = abort.__traceback__
    while entry is not None and entry.tb_next is not None:
        if entry.tb_next.tb_frame.f_globals.get("__name__", "").startswith(_STOPPING):
            entry.tb_next = None
        entry = entry.tb_next


class Front(Protocol):
    """Where a stop is shown and answered: a terminal, a notebook's input box, the panel.

    `ask` and `tell` are called on the stopped body's thread.
    """

    name: str

    def can_answer(self, stop: Stop) -> bool:
        """Whether somebody is there, now."""

    def ask(self, stop: Stop, prompt: str) -> str | None:
        """The next command line, or None when nobody will answer any more. Raises Abort when `wake` says so."""

    def tell(self, stop: Stop, text: str) -> None:
        """Output of the prompt."""

    def closed(self, stop: Stop) -> None:
        """The stop went on."""

    def wake(self, stop: Stop) -> None:
        """The stop was aborted or released from elsewhere: `ask` must return. Called on any thread."""


class Stop:
    """One call at a breakpoint.

    Attributes:
      id: Its number in this process.
      name: The body's name, of a gradient call that of the forward one.
      node, call: The node's facts (None for a `breakpoint()` outside known nodes) and the call's number.
      breakpoint: The rule that hit; None for `breakpoint()`.
      seq: Counts prompts: a command carries the one it was made for.
      condition_error: What its breakpoint's condition raised, or that its log was interrupted, if it stopped for that.
      front: Who answers it now.
      open: Whether it is at its prompt.
      running_since: Since when (time.monotonic) it runs on, after a step, without having come back to its prompt.
      spans: When it was held, in ns of `time.monotonic_ns()`: each from when it wanted its turn, over when it got that
        (None if it did not), to when it went on (None while it is held). Each prompt makes one.
      complete: What a word that ends a line may become: takes the line up to there, and the word.
      locals: Gives the variables where it stops, while it asks for its turn.
      interrupted: Whether somebody ended the call there.
      aborted: Set when it is interrupted.
      released: Set when it is to go on without an answer.
    """

    def __init__(
        self, node: NodeFacts | None, call: int | None, rule: Breakpoint | None, why: str,
        inputs: Any = (), names: tuple[str, ...] = (), name: str | None = None,
    ) -> None:  # fmt: skip
        self.id = next(_NUMBERS)
        self.name = name or (node.body.name if node is not None else "breakpoint()")
        self.node = node
        self.call = call
        self.breakpoint = rule
        self.why = why
        self.inputs = inputs
        self.names = names
        self.outputs: Any = None
        self.thread = current_name()
        self.ident = threading.get_ident()
        self.native_id = threading.get_native_id()
        self.since_ns = time.monotonic_ns()
        self.spans: list[list[int | None]] = []
        self.interrupted = False
        self.seq = 0
        self.open = False
        self.running_since: float | None = None
        self.aborted = False
        self.released = False
        self.front: Front | None = None
        self.outer: Stop | None = None
        self.policy: str | float = rule.policy if rule is not None else "wait"
        self.condition_error = ""
        self.describe: Callable[[], dict[str, Any]] = dict
        self.locals: Callable[[], dict[str, Any]] = dict
        self.complete: Callable[[str, str], list[str]] = lambda line, word: []

    @property
    def title(self) -> str:
        """`augment #12`."""
        return f"{self.name} #{self.call}" if self.call is not None else self.name

    def brief(self) -> dict[str, Any]:
        """What a list of stops shows."""
        return {
            "id": self.id, "node": self.name, "call": self.call, "thread": self.thread, "why": self.why,
            "rule": self.breakpoint.text() if self.breakpoint is not None else None,
            "since_ns": self.since_ns, "policy": self.policy,
            "site": self._site(),
        }  # fmt: skip

    def _site(self) -> dict[str, Any] | None:
        """The user's line that made the node."""
        if self.node is None or not self.node.stack:
            return None
        frame = self.node.stack[-1]
        return {"file": frame.file, "line": frame.line, "function": frame.function}

    def view(self) -> dict[str, Any]:
        """All that a front draws: plain dictionaries, lists, text and numbers. Made again at each prompt."""
        return {**self.brief(), "seq": self.seq, **self.describe()}


def snapshot(
    stack: list[tuple[FrameType, int]],
    index: int,
    user_line: Callable[[str, int], tuple[str, int]],
    picture: Picture | None = None,
) -> dict[str, Any]:
    """The stack, the source around the current line, and the locals of the selected frame."""
    frame, line = stack[index]
    file, shown = user_line(frame.f_code.co_filename, line)
    return {
        "index": index, "file": file, "line": shown, "function": frame.f_code.co_name,
        "source": source(frame, line),
        "frames": [
            {"function": one.f_code.co_name, "file": one.f_code.co_filename, "line": at} for one, at in stack
        ],
        "locals": [
            variable(name, value, picture)
            for name, value in list(frame.f_locals.items())[:_MOST_LOCALS]
            if not _hidden(frame, name, value)
        ],
    }  # fmt: skip


def variable(name: str, value: Any, picture: Picture | None = None, depth: int = _DEPTH) -> dict[str, Any]:
    """A name and its value for a front: `name`, `type`, `text`, and where there are `range`, `picture`, `children`.

    Never runs code of the value's type but `repr`: children are those of dicts, lists, tuples, sets and of the
    instance's own `__dict__`.
    """
    shown: dict[str, Any] = {"name": name, "type": type(value).__name__, "text": one_line(value)}
    try:
        array = _as_array(value)
        if array is not None:
            if (found := _range(array)) is not None:
                shown["range"] = found
            if picture is not None and (drawn := picture(array)) is not None:
                shown["picture"] = drawn
        elif depth and (children := _children(value)):
            shown["children"] = [variable(key, one, picture, depth - 1) for key, one in children[:_MOST_CHILDREN]]
            if len(children) > _MOST_CHILDREN:
                shown["more"] = len(children) - _MOST_CHILDREN
    except Exception:  # a value may do anything when it is looked at: its text is there
        return shown
    return shown


def _children(value: Any) -> list[tuple[str, Any]]:
    if type(value) is dict:
        return [(one_line(key), one) for key, one in list(value.items())]
    if type(value) in (list, tuple):
        return [(f"[{i}]", one) for i, one in enumerate(value)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(str(field), one) for field, one in zip(value._fields, value)]
    if isinstance(value, (type, ModuleType)) or callable(value):
        return []
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    return [(name, one) for name, one in own.items() if not name.startswith("__")] if type(own) is dict else []


def _as_array(value: Any) -> Any:
    """The elements of a NumPy array or an eager tensor; None of anything else."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        return value
    if type(value).__name__ == "EagerTensor" and getattr(value.dtype, "name", "") not in (
        "string",
        "variant",
        "resource",
    ):
        return value.numpy()
    return None


def _range(array: Any) -> str | None:
    import numpy as np

    if array.size < 2 or array.size > _MOST_READ or array.dtype.kind not in "biuf":
        return None
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    odd = array.size - finite.size
    words = f"{odd:,} NaN or Inf" if odd else ""
    if not finite.size:
        return words
    return f"{finite.min():.4g} to {finite.max():.4g}{', ' + words if words else ''}"


def source(frame: FrameType, line: int) -> list[dict[str, Any]]:
    """Numbered lines around the current one."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    first = max(line - _LINES_AROUND, min(frame.f_code.co_firstlineno, line), 1)
    return [
        {"line": number, "text": text.rstrip("\n"), "current": number == line}
        for number, text in enumerate(lines[first - 1 : first + 2 * _LINES_AROUND], first)
    ]


def _hidden(frame: FrameType, name: str, value: Any) -> bool:
    if name.startswith("__") and name.endswith("__") and name not in ("__return__", "__exception__"):
        return True
    if frame.f_code.co_name != "<module>":
        return False
    return name.startswith("_") or isinstance(value, (type, type(os))) or name in ("In", "Out", "exit", "quit", "open")


def one_line(value: Any) -> str:
    """A value as one line of text. Never raises: a hostile `repr` is named after its error."""
    try:
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if shape is not None and dtype is not None:
            return _array(value, dtype)
        text = repr(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    text = text.replace("\n", " ")
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def lines_of(names: dict[str, Any]) -> list[str]:
    """Variables for a recording: `name = value`, without modules and Python's own."""
    return [
        f"{name} = {one_line(value)}"
        for name, value in list(names.items())[:_MOST_LOCALS]
        if not isinstance(value, ModuleType) and not (name.startswith("__") and name.endswith("__"))
    ]


def _array(value: Any, dtype: Any) -> str:
    import numpy as np

    name = getattr(dtype, "name", str(dtype))
    if not hasattr(value, "numpy") and not isinstance(value, (np.ndarray, np.generic)):
        return f"{type(value).__name__} {name}{list(value.shape)}"
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    text = np.array2string(array, threshold=6, edgeitems=2, precision=4).replace("\n", "")
    return f"{name}{list(array.shape)} {text}"[:_SHOWN]


def user_stack(stack: list[tuple[FrameType, int]]) -> list[tuple[FrameType, int]]:
    """The frames of a stack that the user wrote."""
    return [entry for entry in stack if is_user(entry[0].f_code.co_filename)]
