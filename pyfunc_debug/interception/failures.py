"""From TensorFlow's exception back to the one that left the body.

TensorFlow turns a body's exception into text. Every `tf.errors` object is born in `OpError.__init__`
(framework/errors_impl.py), also those that C++ raises: there the original is attached as `pyfunc_exception`, found by a
mark that travelled in the text (a note, Python 3.11+) or, before that, by the text itself, newest first.

An exception holds frames, and they hold what its callers hold: none may live longer for our sake than without us. It
is kept here until TensorFlow's exception is born and holds it; from then on this one is known by a weak reference.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from pyfunc_debug.interception.names import private
from pyfunc_debug.program.frames import failure_frames, is_user

_KEEP = 32
"""How many failures are remembered; each keeps its frames alive, and with them their tensors."""
_MARK = "[pyfunc_debug failure {}]"
# py_func.cc joins the lines of a traceback with one more newline.
_FOUND = re.compile(r"\[pyfunc_debug failure (\d+)\](?:\n\n?)?")
_SHORTEST_TEXT = 3
_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_OURS = re.compile(rf'  File "(?:{re.escape(_PACKAGE)}[/\\\\]|[^"\n]*[/\\\\]pyfunc-debug")[^\n]*\n\n?')
_COUNT = " values, but expects to see "
_WRONG_COUNT = re.compile(
    r"ValueError: (pyfunc_\d+ returns \d+ values, but expects to see \d+ values\.)\nTraceback.*?ValueError: \1\n*",
    re.DOTALL,
)
"""A node with a call id counts its results itself (interception/differentiation.py); it is said as TensorFlow does."""


def ends_data(error: BaseException) -> bool:
    """Whether an exception that leaves a body is not a failure: the iterator of a Dataset.from_generator is at its end.

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


def forget_our_frames(error: BaseException) -> None:
    """Takes our frames out of TensorFlow's text of where a node was made: those of the command that runs the program.

    TensorFlow puts that text in when the exception is there already, so that it is asked for at the end.
    """
    text = getattr(error, private.OP_MESSAGE, None)
    if isinstance(text, str) and " defined at (most recent call last):" in text:
        with suppress(AttributeError):
            setattr(error, private.OP_MESSAGE, _OURS.sub("", text))


class FailedCall:
    """A body's exception and the number of the call in the recording.

    Attributes:
      call: The number, if the call is recorded.
      text: How the exception appears in TensorFlow's text; empty where it reaches the user itself.
      marked: Whether it carries our mark.
    """

    __slots__ = ("_error", "_holder", "_through", "call", "marked", "text")

    def __init__(self, error: BaseException, call: int | None, text: str = "", marked: bool = False) -> None:
        self._error: BaseException | None = error
        self._holder: weakref.ref[Any] | None = None
        self._through = False
        self.call = call
        self.text = text
        self.marked = marked

    @property
    def error(self) -> BaseException | None:
        """The exception; None if nothing has it any more."""
        if self._holder is None:
            return self._error
        holder = self._holder()
        return getattr(holder, "pyfunc_exception", None) if self._through else holder

    def leave_to(self, holder: BaseException, gone: Callable[[Any], None], through: bool = False) -> None:
        """Lives for as long as `holder` and no longer: the exception itself or, `through` it, TensorFlow's own."""
        self._holder = weakref.ref(holder, gone)
        self._through = through
        self._error = None

    def let_go(self) -> None:
        """Keeps nothing alive."""
        self._error = None

    def unmark(self, number: int) -> None:
        """Takes our mark off the exception."""
        error = self.error if self.marked else None
        if error is not None:
            _unmark(error, number)
        self.marked = False


class Failures:
    """The newest failures, and the hook that ties TensorFlow's exceptions to them.

    Attributes:
      keep: Whether failures stay until the recording ends, though the program lets go of them: for whoever asks later.
    """

    def __init__(self, keep: bool = False) -> None:
        self.keep = keep
        self._numbers = itertools.count(1)
        self._kept: dict[int, FailedCall] = {}
        self._direct: dict[int, tuple[int | None, int]] = {}
        """By id() of an exception that takes no weak reference: its call, and id() of the code that it came from."""

        self.call_of: Callable[[Any], int | None] = lambda ticket: None
        """The number in the recording of an observer's ticket."""

        self.on_stop_iteration: Callable[[str, BaseException], None] = lambda token, error: None
        """Called with each StopIteration of the user's that leaves a body. Dataset.from_generator's own are normal."""

        self.on_failure: Callable[[BaseException], None] = lambda error: None
        """Called with each exception that has left a body, before TensorFlow makes text of it."""

        self.on_known: Callable[[BaseException], None] = lambda error: None
        """Called with an exception that has left a body, as the program learns of it. Must not raise."""

    def add(self, error: BaseException, token: str, ticket: Any, becomes_text: bool = True) -> None:
        """Remembers an exception that is leaving a body. Never raises.

        Args:
          error: The exception.
          token: Its node.
          ticket: The observer's ticket of the call.
          becomes_text: Whether TensorFlow will turn it into text; an eager numpy_function's reaches the user itself.
        """
        try:
            self.on_failure(error)
            call = self.call_of(ticket)
            if becomes_text:
                number = next(self._numbers)
                # Our frame is taken off; where no other is left TensorFlow writes no notes.
                marked = getattr(error.__traceback__, "tb_next", None) is not None and _mark(error, number)
                self._kept[number] = FailedCall(error, call, _text(error), marked)
            else:
                self._add_direct(error, call)
                self.on_known(error)
            for number in list(self._kept)[:-_KEEP]:
                self._drop(number)
            if isinstance(error, StopIteration) and failure_frames(error.__traceback__):
                self.on_stop_iteration(token, error)
        except Exception:  # an exception class of the user's with a hostile __str__: TensorFlow's error goes without
            return

    def _add_direct(self, error: BaseException, call: int | None) -> None:
        number = next(self._numbers)
        failed = FailedCall(error, call)
        if not self.keep:
            try:
                failed.leave_to(error, self._forgetting(number))
            except TypeError:  # Python's own exceptions take no weak references
                self._direct.pop(id(error), None)  # an older one of this address is dead
                self._direct[id(error)] = call, next(_codes(error), 0)
                for one in list(self._direct)[:-_KEEP]:
                    self._direct.pop(one, None)
                return
        self._kept[number] = failed

    def newest_first(self) -> list[tuple[int | None, BaseException]]:
        """The failures that are remembered and whose exceptions are alive: number of the call, and exception."""
        direct = []
        for error in _shown():
            call, code = self._direct.get(id(error), (None, 0))
            if code in _codes(error):  # else it is another one, in the same place of memory
                direct.append((call, error))
        kept = [(failed.call, failed.error) for failed in list(self._kept.values())[::-1]]
        return [*direct, *((call, error) for call, error in kept if error is not None)]

    def end(self) -> None:
        """Takes our marks off, and lets go of what is not to be kept for whoever asks later."""
        for number, failed in list(self._kept.items()):
            failed.unmark(number)
            if not self.keep:
                failed.let_go()

    def _drop(self, number: int) -> None:
        failed = self._kept.pop(number, None)
        if failed is not None:
            failed.unmark(number)

    def _forgetting(self, number: int) -> Callable[[Any], None]:
        kept = self._kept

        def gone(holder: Any) -> None:
            kept.pop(number, None)

        return gone

    def _leave_to(self, number: int, op_error: BaseException) -> None:
        """TensorFlow's exception holds the original from now on."""
        failed = self._kept.get(number)
        if failed is not None and not self.keep:
            failed.leave_to(op_error, self._forgetting(number), through=True)

    def op_error_init(self, original: Any) -> Any:
        """The replacement of `OpError.__init__`; the parameters are read by `OpError.__reduce__`."""
        kept, leave_to = self._kept, self._leave_to

        def known(error: BaseException) -> None:
            self.on_known(error)

        def __init__(self: Any, node_def: Any, op: Any, message: Any, error_code: Any, *args: Any) -> None:  # noqa: N807
            found = None
            if isinstance(message, str) and _COUNT in message:
                message = _WRONG_COUNT.sub(r"\1\n", message)
            if kept and isinstance(message, str):
                try:
                    number, found, message = _find(kept, message)
                except Exception:  # never in the way of TensorFlow's own error
                    found = None
            original(self, node_def, op, message, error_code, *args)
            if found is not None:
                self.pyfunc_exception = found
                leave_to(number, self)
                known(found)

        return __init__


def _shown() -> Iterator[BaseException]:
    """The exceptions that are being handled or were displayed last, and what led to them."""
    todo: list[Any] = [sys.exc_info()[1], getattr(sys, "last_exc", None), getattr(sys, "last_value", None)]
    seen: set[int] = set()
    while todo:
        error = todo.pop(0)
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        todo += [error.__cause__, error.__context__]
        yield error


def _codes(error: BaseException) -> Iterator[int]:
    """id() of the user's code that an exception came through, the body's first: TensorFlow may take its own away."""
    traceback = error.__traceback__
    while traceback is not None:
        if is_user(traceback.tb_frame.f_code.co_filename):
            yield id(traceback.tb_frame.f_code)
        traceback = traceback.tb_next


def _find(kept: dict[int, FailedCall], message: str) -> tuple[int, BaseException | None, str]:
    """Number and exception that a text came from, and the text without our marks."""
    match = _FOUND.search(message)
    if match is not None:
        number = int(match.group(1))
        failed = kept.get(number)
        message = _FOUND.sub("", message)
        error = failed.error if failed is not None else None
        if failed is not None:
            failed.unmark(number)  # Session.run makes a second exception from the first one's text
        return number, error, message
    for number, failed in list(kept.items())[::-1]:
        if failed.text and not failed.marked and failed.text in message:
            error = failed.error
            if error is not None:
                return number, error, message
    return 0, None, message


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
