"""From TensorFlow's exception back to the one that left the body.

TensorFlow turns a body's exception into text. Every `tf.errors` object is born in `OpError.__init__`
(framework/errors_impl.py), also those that C++ raises: there the original is attached as `pyfunc_exception`, found by a
mark that travelled in the text (a note, Python 3.11+) or, before that, by the text itself, newest first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from pyfunc_debug.program.frames import failure_frames

_KEEP = 32
"""So many failures are remembered; each keeps its frames, and with them their tensors, alive."""
_MARK = "[pyfunc_debug call #{}]"
# py_func.cc joins the lines of a traceback with one more newline.
_FOUND = re.compile(r"\[pyfunc_debug call #(\d+)\](?:\n\n?)?")
_SHORTEST_TEXT = 3
_COUNT = " values, but expects to see "
_WRONG_COUNT = re.compile(
    r"ValueError: (pyfunc_\d+ returns \d+ values, but expects to see \d+ values\.)\nTraceback.*?ValueError: \1\n*",
    re.DOTALL,
)
"""A node with a call id counts its results itself (interception/differentiation.py); it is said as TensorFlow does."""


def ends_data(error: BaseException) -> bool:
    """Whether an exception that leaves a body is no failure: the iterator of a Dataset.from_generator is at its end.

    The body is TensorFlow's own (data/ops/from_generator_op.py) and calls `next` on the user's iterator, which says by
    StopIteration that there is no more. That may come out of a `__next__` of the user's.
    """
    if not isinstance(error, StopIteration):
        return False
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_name == "generator_py_func" and code.co_filename.endswith("from_generator_op.py"):
            return True
        traceback = traceback.tb_next
    return False


class FailedCall:
    """A body's exception, the node's token, and the observer's ticket of the call."""

    __slots__ = ("error", "marked", "text", "ticket", "token")

    def __init__(self, error: BaseException, token: str, ticket: Any, text: str, marked: bool) -> None:
        self.error = error
        self.token = token
        self.ticket = ticket
        self.text = text
        self.marked = marked


class Failures:
    """The newest failures, and the hook that ties TensorFlow's exceptions to them."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._kept: dict[int, FailedCall] = {}
        self.on_stop_iteration: Callable[[str, BaseException], None] = lambda token, error: None
        """Hears of each StopIteration of the user's that leaves a body. Dataset.from_generator's own are normal."""

        self.on_failure: Callable[[], None] = lambda: None
        """Called whenever an exception has left a body."""

    def add(self, error: BaseException, token: str, ticket: Any, becomes_text: bool = True) -> None:
        """Remembers an exception that is leaving a body. Never raises.

        Args:
          error: The exception.
          token: Its node.
          ticket: The observer's ticket of the call.
          becomes_text: Whether TensorFlow will turn it into text; an eager numpy_function's reaches the user itself.
        """
        try:
            self.on_failure()
            number = next(self._numbers)
            self._kept[number] = FailedCall(
                error, token, ticket, _text(error) if becomes_text else "", becomes_text and _mark(error, number)
            )
            while len(self._kept) > _KEEP:
                self._drop(next(iter(self._kept)))
            if isinstance(error, StopIteration) and failure_frames(error.__traceback__):
                self.on_stop_iteration(token, error)
        except Exception:  # an exception class of the user's with a hostile __str__: TensorFlow's error goes without
            return

    def newest_first(self) -> list[FailedCall]:
        """The failures that are remembered."""
        return list(self._kept.values())[::-1]

    def forget(self) -> None:
        """Lets go of all of them, and takes our marks off those that no exception of TensorFlow's led to."""
        for number in list(self._kept):
            self._drop(number)

    def _drop(self, number: int) -> None:
        failed = self._kept.pop(number, None)
        if failed is not None and failed.marked:
            _unmark(failed.error, number)

    def op_error_init(self, original: Any) -> Any:
        """The replacement of `OpError.__init__`; the parameters are read by `OpError.__reduce__`."""
        kept = self._kept

        def __init__(self: Any, node_def: Any, op: Any, message: Any, error_code: Any, *args: Any) -> None:  # noqa: N807
            found = None
            if isinstance(message, str) and _COUNT in message:
                message = _WRONG_COUNT.sub(r"\1\n", message)
            if kept and isinstance(message, str):
                try:
                    found, message = _find(kept, message)
                except Exception:  # never in the way of TensorFlow's own error
                    found = None
            original(self, node_def, op, message, error_code, *args)
            if found is not None:
                self.pyfunc_exception = found

        return __init__


def _find(kept: dict[int, FailedCall], message: str) -> tuple[BaseException | None, str]:
    """The exception that a text came from, and the text without our marks."""
    match = _FOUND.search(message)
    if match is not None:
        failed = kept.get(int(match.group(1)))
        message = _FOUND.sub("", message)
        if failed is None:
            return None, message
        _unmark(failed.error, int(match.group(1)))
        failed.marked = False  # Session.run makes a second exception from the first one's text
        return failed.error, message
    for failed in list(kept.values())[::-1]:
        if failed.text and not failed.marked and failed.text in message:
            return failed.error, message
    return None, message


def _text(error: BaseException) -> str:
    """The exception as it appears in TensorFlow's text."""
    text = f"{type(error).__name__}: {error}"
    return text if len(text) >= _SHORTEST_TEXT else ""


def _mark(error: BaseException, number: int) -> bool:
    add_note = getattr(error, "add_note", None)  # Python 3.11
    if add_note is None:
        return False
    for note in list(getattr(error, "__notes__", ())):  # the same object raised again: one mark at a time
        if isinstance(note, str) and _FOUND.fullmatch(note):
            error.__notes__.remove(note)  # type: ignore[attr-defined]  # Python 3.11
    add_note(_MARK.format(number))
    return True


def _unmark(error: BaseException, number: int) -> None:
    notes = getattr(error, "__notes__", None)
    mark = _MARK.format(number)
    if isinstance(notes, list) and mark in notes:
        notes.remove(mark)
        if not notes:
            del error.__notes__  # type: ignore[attr-defined]  # Python 3.11
