"""The IDE that is attached to this process by debugpy: stops of ours are held there, on any thread, at any event."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from pyfunc_debug.program.frames import is_generated
from pyfunc_debug.stops.generated import of_autograph

_LEFT_ALONE = "pydev_do_not_trace"


def attached() -> bool:
    """Whether an IDE debugs this process through debugpy."""
    if "debugpy.server.api" not in sys.modules:  # asking would import it, and it replaces sys.breakpointhook
        return False
    try:
        return bool(sys.modules["debugpy"].is_client_connected())
    except (AttributeError, KeyError):
        return False


def show_this_thread() -> None:
    """Has pydevd trace this thread. `debugpy.debug_this_thread` traces all, each time that it is called."""
    import pydevd

    pydevd.settrace(suspend=False, trace_only_current_thread=True, patch_multiprocessing=False, notify_stdin=False)


def keep_off(on: bool) -> None:
    """Has pydevd leave this thread's trace function as it is, or not, on Python 3.11 and older.

    With each stop pydevd gives the frames of all other threads its own trace function, and that takes the thread's
    (pydevd_thread_lifecycle.py, `suspend_all_threads`); and `debugpy.debug_this_thread`, which a program may call on
    any thread, replaces the trace function of all threads (pydevd_tracing.py, `set_trace_to_threads`).

    Args:
      on: Call it on the thread, just before its trace function becomes ours; False when it is given back.
    """
    if sys.version_info >= (3, 12) or (on and not attached()):
        return
    if not on:
        known: Any = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]  # noqa: SLF001 - makes none
        if known is not None:
            vars(known).pop(_LEFT_ALONE, None)
        return
    thread: Any = threading.current_thread()  # made for a thread of C++, as by pydevd, so that it can have the mark
    if thread is threading.main_thread():
        return
    from _pydevd_bundle.pydevd_thread_lifecycle import suspend_threads_lock

    with suspend_threads_lock:  # pydevd holds it while it stops the others
        setattr(thread, _LEFT_ALONE, True)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if "pydevd" in getattr(type(frame.f_trace), "__module__", "") + getattr(frame.f_trace, "__module__", ""):
                del frame.f_trace
            frame = frame.f_back


def hold(
    frame: FrameType,
    error: BaseException | None,
    user_line: Callable[[str, int], tuple[str, int]],
    place: tuple[str, int] | None = None,
) -> bool:
    """Stops in the IDE until it goes on. The stack begins with this frame, whoever called this.

    pydevd's own stop of a thread (pydevd.py, `do_wait_suspend`): its `settrace` would stop at a later line, or
    in no line of a call that has ended.

    Args:
      frame: Where it stops.
      error: The exception that left the body, where that is the reason: the stack is that of its traceback.
      user_line: The user's file and line for one that AutoGraph generated, which the IDE shows instead.
      place: The user's file and line that this frame is at, where AutoGraph's line stands for another, or none.

    Returns:
      Whether it goes on with a step.
    """
    from _pydevd_bundle import pydevd_constants
    from _pydevd_bundle.pydevd_additional_thread_info import set_additional_thread_info
    from _pydevd_bundle.pydevd_comm_constants import CMD_SET_BREAK

    debugger, thread = pydevd_constants.get_global_debugger(), threading.current_thread()
    if debugger is None:
        return False
    _show_as_written(debugger, frame, error, user_line, place)
    info = set_additional_thread_info(thread)
    monitoring: Any = sys.modules.get("_pydevd_sys_monitoring.pydevd_sys_monitoring")
    suspend = getattr(monitoring, "suspend_current_thread_tracing", None)
    before = suspend() if suspend is not None else False  # what is evaluated at the stop does not stop in itself
    info.is_tracing += 1
    try:
        if error is not None:
            raised = (type(error), error, error.__traceback__)
            debugger.do_stop_on_unhandled_exception(thread, frame, None, raised)
            return False
        debugger.set_suspend(thread, CMD_SET_BREAK)
        debugger.do_wait_suspend(thread, frame, "line", None)
    finally:
        info.is_tracing -= 1
        if before:
            monitoring.resume_current_thread_tracing()
    return bool(info.pydev_step_cmd != -1)


def _show_as_written(
    debugger: Any, frame: FrameType | None, error: BaseException | None, user_line: Any, at: tuple[str, int] | None
) -> None:
    """Has the IDE show lines of AutoGraph's files as the user's, also after steps.

    pydevd asks its source mapping for the line of each frame that it shows. An entry of that would move the IDE's
    breakpoints in the user's file, too; what it remembers of answers does not.
    """
    answers = getattr(getattr(debugger, "source_mapping", None), "_cache", None)
    codes: list[Any] = []
    top = frame
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    if any(is_generated(code.co_filename) for code in codes):
        _hide_names()
    traceback = error.__traceback__ if error is not None else None
    while traceback is not None:
        codes.append(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    while codes and isinstance(answers, dict):
        code = codes.pop()
        file = code.co_filename
        if not is_generated(file):
            continue
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        for line in {line for _, _, line in code.co_lines() if line}:
            shown = user_line(file, line)
            if shown[0] != file:
                answers[line, "client", file] = *shown, True
    if at is not None and top is not None and isinstance(answers, dict) and is_generated(top.f_code.co_filename):
        answers[top.f_lineno, "client", top.f_code.co_filename] = *at, True


_hiding: list[Any] = []
"""pydevd's class of a frame's variables, while it hides some."""


def _hide_names() -> None:
    """Has the IDE show no variables of AutoGraph's own (ag__, fscope_1, do_return_1) beside the user's."""
    kind = getattr(sys.modules.get("_pydevd_bundle.pydevd_suspended_frames"), "_FrameVariable", None)
    inherited = getattr(kind, "_group_entries", None)
    if kind is None or inherited is None or "_group_entries" in vars(kind):
        return

    def _group_entries(variable: Any, entries: Any, *args: Any, **named: Any) -> Any:
        code = getattr(getattr(variable, "frame", None), "f_code", None)
        if isinstance(code, CodeType) and is_generated(code.co_filename):
            entries = [one for one in entries if not of_autograph(code, str(one[0]), one[1])]
        return inherited(variable, entries, *args, **named)

    _hiding.append(kind)
    kind._group_entries = _group_entries  # noqa: SLF001 - there is no public way


def show_names() -> None:
    """Puts pydevd's own back."""
    while _hiding:
        delattr(_hiding.pop(), "_group_entries")
