"""Run time: every call of every node passes through `FuncRegistry.__call__`, also of graphs traced long before.

C++ calls the one object `script_ops._py_funcs`, and Python looks `__call__` up on its class, so replacing the class
attribute sees them all (script_ops.py). Eager tf.numpy_function and py_func never reach the registry: they are seen in
`py_func_common`. This is the hot path: no lock, no I/O, no import, no formatting.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from types import CodeType, FrameType, TracebackType
from typing import Any

from pyfunc_debug.events import Observer
from pyfunc_debug.interception.failures import Failures

HOOKS: set[CodeType] = set()
"""Code of hooks in other modules that also have the local variables `token`, `ticket` and `args`: see `call_around`."""

_OURS = "pyfunc_debug.interception."


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

    def __init__(self, observer: Observer) -> None:
        self.path = (observer.enter, observer.leave, observer.fail)


def call_path(observer: Observer) -> Any:
    """What holds the observer's `enter`, `leave` and `fail` as one attribute `path`, read once as a call begins.

    An observer may have such an attribute of its own and swap it at any time: a call in progress ends as it began.
    """
    return observer if hasattr(observer, "path") else _FixedPath(observer)


def registry_call(observer: Observer, failures: Failures, others: Container[str] = ()) -> Callable[[Any], Any]:
    """The replacement of `FuncRegistry.__call__`.

    Args:
      observer: Who hears of it.
      failures: Where exceptions are remembered.
      others: Tokens of nodes that tell the observer themselves (`gradients.Gradients.tokens`).
    """
    way = call_path(observer)

    def replace(original: Any) -> Any:
        def __call__(self: Any, token: str, device: Any, args: Any) -> Any:  # noqa: N807 - it replaces this method
            if token in others:
                try:
                    return original(self, token, device, args)
                except BaseException as error:
                    drop_our_frame(error)
                    raise
            enter, leave, fail = way.path
            ticket = enter(token, args)
            try:
                outputs = original(self, token, device, args)
            except BaseException as error:
                fail(ticket, error)
                failures.add(error, token, ticket)
                drop_our_frame(error)
                raise
            return leave(ticket, outputs)

        return __call__

    return replace


def call_around(frame: FrameType | None) -> tuple[FrameType, str, Any, Any] | None:
    """The innermost call whose body runs on this frame's stack: our frame below it, token, ticket and arguments.

    The hooks above leave them in their local variables: asking is rare, and costs the hot path nothing.
    """
    while frame is not None:
        if frame.f_code in HOOKS or (frame.f_globals is globals() and "ticket" in frame.f_code.co_varnames):
            found = frame.f_locals
            if "token" in found and "ticket" in found:
                return frame, found["token"], found["ticket"], found.get("args", ())
        frame = frame.f_back
    return None


def eager_numpy_call(
    observer: Observer, executing_eagerly: Callable[[], bool], make: Callable[..., str], failures: Failures
) -> Any:
    """The replacement of `script_ops.py_func_common`, which runs the body directly when executing eagerly.

    Args:
      observer: Who hears of it.
      executing_eagerly: TensorFlow's own test, as the original uses it.
      make: Tells the observer of the node and returns its token.
      failures: Where exceptions are remembered.
    """
    way = call_path(observer)

    def replace(original: Any) -> Any:
        def py_func_common(func: Any, inp: Any, Tout: Any, stateful: bool = True, name: Any = None) -> Any:  # noqa: N803
            if not executing_eagerly() or not callable(func):
                return original(func, inp, Tout, stateful, name)
            token = make(func, inp, Tout, stateful)

            def body(*args: Any) -> Any:
                enter, leave, fail = way.path
                ticket = enter(token, args)
                try:
                    outputs = func(*args)
                except BaseException as error:
                    fail(ticket, error)
                    failures.add(error, token, ticket, becomes_text=False)
                    drop_our_frame(error)
                    raise
                return leave(ticket, outputs)

            try:
                return original(body, inp, Tout, stateful, name)
            except BaseException as error:
                drop_our_frame(error)
                raise

        return py_func_common

    return replace
