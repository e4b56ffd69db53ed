"""Run time: every call of every node passes through `FuncRegistry.__call__`, also of graphs traced long before.

C++ calls the one object `script_ops._py_funcs`, and Python looks `__call__` up on its class, so replacing the class
attribute sees them all (script_ops.py). Eager tf.numpy_function and py_func never reach the registry: they are seen in
`py_func_common`. This is the hot path: no lock, no I/O, no import, no formatting.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable, Container
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from pyfunc_debug.events import Observer
from pyfunc_debug.interception.failures import Failures, ends_data
from pyfunc_debug.interception.patches import disguise
from pyfunc_debug.interception.tokens import plain

_OURS = "pyfunc_debug.interception."


class CallInProgress(NamedTuple):
    """A call that a thread is in.

    Attributes:
      outer: The call around this one on the same thread, or None.
      token, args: The node's, and the call's arguments as the observer sees them.
      ticket: What the observer gave for it; `ENTERING` before.
      given: The arguments as TensorFlow passed them, where these are more: gradient nodes with call ids.
      body: What is called, where TensorFlow does not register it.
      observer: To whom it is reported, for the call of a gradient node.
    """

    outer: Any
    token: str
    args: Any
    ticket: Any
    given: Any = None
    body: Any = None
    observer: Observer | None = None


ENTERING: Any = object()
IN_PROGRESS: dict[int, Any] = {}
"""By thread (`get_ident`), the fields of its innermost `CallInProgress`, or None. Each thread changes its own entry:
no lock is needed.

A plain tuple, since making an object of each call costs 2 us in place. A call stands here as soon as its body may run;
one whose observer must know more than token and arguments already before, with `ENTERING`. Not a threading.local:
TensorFlow makes new state for its threads in each call, and with it all of these.
"""


def fields_of(thread: int) -> Any:
    """The fields of this thread's innermost call, or None."""
    show_shortcuts()
    return IN_PROGRESS.get(thread)


def show_shortcuts() -> None:
    """Puts calls that took the shortcut into IN_PROGRESS, where they are only when somebody looks."""
    for show in _SHOWS:
        show(IN_PROGRESS)


_SHOWS: set[Callable[[dict[int, Any]], None]] = set()
"""`Shortcut.show`, once there was one."""


def innermost_call(entered: bool = True) -> CallInProgress | None:
    """The innermost call that this thread is in; with `entered` one whose body may be running."""
    fields = fields_of(get_ident())
    while fields is not None:
        call = CallInProgress(*fields)
        if call.ticket is not ENTERING or not entered:
            return call
        fields = call.outer
    return None


def keep_ticket(ticket: Any) -> None:
    """Gives this thread's innermost call a ticket until it ends; `leave` and `fail` do not get it."""
    thread = get_ident()
    fields = fields_of(thread)
    if fields is not None and fields[3] is not ENTERING:
        IN_PROGRESS[thread] = (*fields[:3], ticket, *fields[4:])


def drop_our_frame(error: BaseException) -> None:
    """Takes our frames off the traceback, so that TensorFlow's error text shows only its own and the user's.

    Only for an `except` block that ends in a bare `raise`: that does not add its frame again. The caller's frame is the
    first; a gradient's tape may be one further in.
    """
    traceback = error.__traceback__
    if traceback is not None:
        error.__traceback__ = traceback = traceback.tb_next
        if sys.version_info < (3, 11):
            _raise_with(error, traceback)
    while traceback is not None and traceback.tb_next is not None:
        if traceback.tb_next.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
            traceback.tb_next = traceback.tb_next.tb_next
        else:
            traceback = traceback.tb_next


def _raise_with(error: BaseException, traceback: TracebackType | None) -> None:
    """Makes a bare `raise` take this traceback: before CPython 3.11 it takes the one that sys.exc_info() holds."""
    import ctypes

    found = [ctypes.py_object(type(error)), ctypes.py_object(error)]
    found.append(ctypes.py_object() if traceback is None else ctypes.py_object(traceback))
    for item in found:
        ctypes.pythonapi.Py_IncRef(item)  # PyErr_SetExcInfo steals references
    ctypes.pythonapi.PyErr_SetExcInfo(*found)


class _FixedPath:
    """The path of an observer that never swaps its methods."""

    unwanted: Container[str] = ()

    def __init__(self, observer: Observer) -> None:
        self.path = (observer.enter, observer.leave, observer.fail)


class _Nobody:
    """The path where nobody listens."""

    path: Any = (lambda token, args: None, lambda ticket, outputs: outputs, lambda ticket, error: None)
    unwanted: Container[str] = ()


NOBODY: Any = _Nobody()


def call_path(observer: Observer) -> Any:
    """What holds the observer's `enter`, `leave` and `fail` as one attribute `path`, read once as a call begins.

    An observer may have such an attribute of its own and swap it at any time: a call in progress ends as it began. Its
    attribute `unwanted` has the tokens of nodes whose calls nobody asks for: their ticket is None, and none of the
    three is called.
    """
    return observer if hasattr(observer, "path") else _FixedPath(observer)


class _NoProfiler:
    """Where nothing is put into the profiler."""

    level = 0

    @staticmethod
    def wanted() -> bool:
        return False


def registry_call(
    observer: Observer, failures: Failures, others: Container[str] = (), annotations: Any = _NoProfiler
) -> Callable[..., Any]:
    """The replacement of `FuncRegistry.__call__`.

    Args:
      observer: To whom calls are reported.
      failures: Where exceptions are remembered.
      others: Tokens of nodes that report to the observer themselves (`gradients.Gradients.tokens`).
      annotations: `annotations.Annotations`.
    """
    way, in_progress, profiled = call_path(observer), IN_PROGRESS, annotations.wanted

    def replace(original: Any, left_out: Any = None) -> Any:
        """Of `original`; `left_out`: what calls that sampling leaves out run instead, if that is another."""

        def __call__(self: Any, token: str, device: Any, args: Any) -> Any:  # noqa: N807 - it replaces this method
            if token in others:
                event = annotations.begin(plain(token)) if profiled() else None
                try:
                    return original(self, token, device, args)
                except BaseException as error:
                    drop_our_frame(error)
                    raise
                finally:
                    if event is not None:
                        annotations.end(event)
            if token in way.unwanted:
                if not profiled():  # the same with nothing to tell: half the time
                    thread = get_ident()
                    outer = in_progress.get(thread)
                    in_progress[thread] = (outer, token, args, None)
                    try:
                        return original(self, token, device, args)
                    except BaseException as error:
                        if not ends_data(error):
                            failures.add(error, token, None)
                        drop_our_frame(error)
                        raise
                    finally:
                        in_progress[thread] = outer
                enter, leave, fail = _Nobody.path
            else:
                enter, leave, fail = way.path
            try:
                ticket = enter(token, args)
            except BaseException as error:  # the call is ended before its body runs
                failures.add(error, token, None)
                raise  # with our frame: TensorFlow 2.21 crashes on an exception of a py_function without a traceback
            thread = get_ident()
            outer = in_progress.get(thread)
            in_progress[thread] = (outer, token, args, ticket)
            event = annotations.begin(token) if profiled() else None
            try:
                try:
                    try:
                        outputs = original(self, token, device, args)
                    finally:
                        if event is not None:
                            annotations.end(event)
                except BaseException as error:
                    if ends_data(error):
                        leave(ticket, ())
                    else:
                        fail(ticket, error)
                        failures.add(error, token, ticket)
                    drop_our_frame(error)
                    raise
                return outputs if ticket is None else leave(ticket, outputs)
            finally:
                in_progress[thread] = outer

        def raised(error: BaseException, token: str, ticket: Any, path: Any) -> None:
            """Of a call that took the shortcut the body raised: raises it again, as above."""
            _, leave, fail = path
            context = error.__context__
            try:
                raise error
            except BaseException:
                error.__context__ = context
                ended = ends_data(error)
                if ticket is not None:  # else nobody asked for the call
                    if ended:
                        leave(ticket, ())
                    else:
                        fail(ticket, error)
                if not ended:
                    failures.add(error, token, ticket)
                drop_our_frame(error)
                raise

        disguise(__call__, original)
        disguise(raised, original)
        shortcut = getattr(observer, "shortcut", None)
        if shortcut is None:
            return __call__
        short = left_out if left_out is not None else original
        _BOTTOM.add(getattr(short, "__code__", None))
        made = shortcut(__call__, short, others, profiled, in_progress, raised, annotations.level)
        if made is not __call__:
            _SHOWS.add(type(made).show)
        return made

    return replace


_BOTTOM: set[Any] = set()
"""Code of what replacements of `FuncRegistry.__call__` call: a call that took the shortcut has no frame of ours."""


def bottom_frame(frame: FrameType | None) -> FrameType | None:
    """Our innermost frame on this frame's stack, or `_BOTTOM`: what it called is TensorFlow's and the body's."""
    while frame is not None and not _is_ours(frame):
        if frame.f_code in _BOTTOM and not _is_ours(frame.f_back):
            break
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_globals.get("__name__", "").startswith(_OURS)


def eager_numpy_call(
    observer: Observer, executing_eagerly: Callable[[], bool], make: Callable[..., str], failures: Failures,
    annotations: Any = _NoProfiler,
) -> Any:  # fmt: skip
    """The replacement of `script_ops.py_func_common`, which runs the body directly when executing eagerly.

    Args:
      observer: To whom calls are reported.
      executing_eagerly: TensorFlow's own test, as the original uses it.
      make: Tells the observer of the node and returns its token.
      failures: Where exceptions are remembered.
      annotations: `annotations.Annotations`.
    """
    way, in_progress, profiled = call_path(observer), IN_PROGRESS, annotations.wanted

    def replace(original: Any) -> Any:
        def py_func_common(func: Any, inp: Any, Tout: Any, stateful: bool = True, name: Any = None) -> Any:  # noqa: N803
            if not executing_eagerly() or not callable(func):
                return original(func, inp, Tout, stateful, name)
            token = make(func, inp, Tout, stateful)
            returned: list[Any] = []

            def body(*args: Any) -> Any:
                enter, leave, fail = way.path
                thread = get_ident()
                outer = fields_of(thread)
                in_progress[thread] = (outer, token, args, ENTERING, args, func)
                try:
                    ticket = enter(token, args)
                    in_progress[thread] = (outer, token, args, ticket, args, func)
                    event = annotations.begin(token, func) if profiled() else None
                    try:
                        try:
                            outputs = func(*args)
                        finally:
                            if event is not None:
                                annotations.end(event)
                    except BaseException as error:
                        fail(ticket, error)
                        failures.add(error, token, ticket, becomes_text=False)
                        drop_our_frame(error)
                        raise
                    observer.returned(ticket, outputs, Tout)  # nothing is converted to Tout here
                    outputs = leave(ticket, outputs)
                    returned.append(ticket)
                    return outputs
                finally:
                    in_progress[thread] = outer

            try:
                return original(body, inp, Tout, stateful, name)
            except BaseException as error:
                if returned:
                    observer.rejected(returned[0], error)
                drop_our_frame(error)
                raise
            finally:
                observer.node_gone(token)

        return py_func_common

    return replace
