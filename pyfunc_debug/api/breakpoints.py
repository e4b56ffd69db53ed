"""What a user calls to stop calls: `break_on`, `breakpoints`, `answers`, `post_mortem`."""

from __future__ import annotations

import contextlib
import functools
import pdb
import sys
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

from pyfunc_debug.api.replay import same_as_recorded
from pyfunc_debug.errors import NotKeptError
from pyfunc_debug.program.frames import is_user, user_traceback
from pyfunc_debug.records import Call
from pyfunc_debug.stops import Breakpoint
from pyfunc_debug.stops.display import original_of, with_callers
from pyfunc_debug.stops.script import Script
from pyfunc_debug.switchboard import board


def break_on(
    where: str, *, when: str = "before", condition: str | None = None, hits: int = 1, once: bool = False,
    policy: str | float = "wait", prompt: str | None = None, log: str | None = None, keep: str | None = None,
) -> Breakpoint:  # fmt: skip
    """Stops calls of a node, with a prompt in the body's frame. Works without a recording, and for older graphs.

    Args:
      where: A glob over body and op names, a `file.py:line` or a token.
      when: "before" the body's first line, "after" it has returned, "error": at the line that raised, or "gradient".
      condition: A Python expression over what the body sees (its parameters, closure and module), `inputs`, `outputs`,
        `call`, `np`, `tf`. Tensors are NumPy arrays in it. One that raises stops the call and shows the error; where
        nobody can answer it is reported once, and counted.
      hits: The first hit that stops, from 1.
      once: Whether to stop only once.
      policy: What a call does while another one is stopped: "wait", "skip", or how many seconds to wait.
      prompt: "debugger" to stop in an attached IDE (debugpy), before prepared answers too. Without it an IDE that is
        attached gets the stop, else whoever can answer.
      log: Expressions to write to stderr and into the recording, for each call; it does not stop then.
      keep: "locals" to keep the variables there in the recording; it does not stop then.

    Returns:
      The breakpoint: `disable()`, `enable()`, `remove()`, `hits`, `outcomes`.

    Raises:
      BadOptionError: an option makes no sense.
      UnsupportedTensorFlowError: calls cannot be seen on this TensorFlow.

    Example:
      stop = pfd.break_on("augment*", condition="np.isnan(x).any()")
      train_step(batch)
      stop.remove()
      pfd.break_on("augment*", log="x.shape, x.max()")
    """
    return board.rules.add(where, when, condition, hits, once, policy, prompt, log, keep)


def breakpoints() -> list[Breakpoint]:
    """The breakpoints of this process.

    Returns:
      All of them, oldest first; `print` shows how often each was hit.

    Example:
      for stop in pfd.breakpoints():
          stop.disable()
    """
    return list(board.rules.all())


@contextlib.contextmanager
def answers(*lines: str) -> Iterator[Script]:
    """Answers the stops of a `with` block with prepared lines, as if somebody typed them.

    Args:
      *lines: Command lines, one for each prompt. When they have been used up, the stopped call goes on; later stops ask
        whoever else can answer.

    Yields:
      The dialogue: `str()` is everything that was printed and typed, `left` the lines that nobody asked for.

    Example:
      with pfd.answers("p x", "n", "c") as dialogue:
          train_step(batch)
      print(dialogue)
    """
    script = Script(lines)
    board.broker.fronts.insert(0, script)
    try:
        yield script
    finally:
        board.broker.fronts.remove(script)


def post_mortem(call: Call | int | None = None) -> None:
    """Opens pdb at the user's frame of a failed call, with its locals alive.

    Args:
      call: A call of the recording going on, or of the last one; None for the newest failed call.

    Raises:
      NotKeptError: no call failed, or its exception is gone. It lives for as long as the program has it; at a prompt
        (a notebook, IPython, `python -i`) the 32 newest are kept.

    Example:
      pfd.post_mortem()  # the newest failure
      pfd.post_mortem(next(recording.calls(status="error")))
    """
    error = _failure(call)
    original = original_of(error) or error
    _look(_debugger(), original, with_callers(_holder(original), board.as_written))


def debug(call: Call) -> None:
    """Opens pdb in a call: a post-mortem if it failed and its frames are kept, else its body again on its inputs.

    Args:
      call: A call of a recording that this process made.

    Raises:
      NotKeptError: the body cannot run again; the message says why.
    """
    if call.status == "error":
        try:
            post_mortem(call)
            return
        except NotKeptError:
            pass  # it failed longer ago: its body can still run again
    debugger = _debugger()
    try:
        outputs = call.replay(functools.partial(_run, debugger, f"call #{call.id}"))
    except NotKeptError:
        raise
    except Exception as error:
        if not debugger.quitting:  # TensorFlow may make another exception of a BdbQuit
            _look(debugger, error)
        return
    same = same_as_recorded(call, outputs)
    if same is not None:
        what = "what was recorded" if same else "something else than was recorded: it depends on more than its inputs"
        print(f"call #{call.id} returned {what}")


def _debugger() -> Any:
    """IPython's debugger where that is there, else pdb."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return (shell.debugger_cls if shell is not None else pdb.Pdb)()


def _run(debugger: Any, title: str, function: Callable[..., Any], *args: Any) -> Any:
    """Calls a body and stops at its first line; not in TensorFlow's wrappers of it, before or after."""

    def first_line(frame: FrameType) -> None:
        del debugger.user_call, debugger.user_line
        debugger.user_line(frame)

    here = debugger.stop_here
    debugger.reset()
    debugger.stop_here = lambda frame: is_user(frame.f_code.co_filename) and here(frame)
    debugger.user_call = lambda frame, arguments: None
    debugger.user_line = first_line
    traced = sys.gettrace()
    print(f"{title} runs again on its recorded inputs, with all its effects")
    sys.settrace(debugger.trace_dispatch)
    try:
        return function(*args)
    finally:
        sys.settrace(traced)
        del debugger.stop_here


def _holder(error: BaseException) -> BaseException:
    """The exception that this one reached the program in: it knows who called the bodies around."""
    found, depth = error, 0
    handled = (sys.exc_info()[1], getattr(sys, "last_exc", None), getattr(sys, "last_value", None))
    for one in (*handled, *(failed for _, failed in board.failures())):
        inner: BaseException | None = one
        steps = 0
        while inner is not None and inner is not error:
            inner, steps = getattr(inner, "pyfunc_exception", None), steps + 1
        if one is not None and inner is error and steps > depth:
            found, depth = one, steps
    return found


def _look(debugger: Any, error: BaseException, traceback: TracebackType | None = None) -> None:
    """The prompt at the user's frame of an exception."""
    traceback = traceback or board.as_written(user_traceback(error.__traceback__) or error.__traceback__)
    if traceback is None:
        raise NotKeptError(f"{type(error).__name__} has no frames to look at")
    print(f"{type(error).__name__}: {error}")
    debugger.reset()
    debugger.interaction(None, traceback)


def _failure(call: Call | int | None) -> BaseException:
    failed = board.failures()
    if call is None:
        if not failed:
            raise NotKeptError(
                "no call failed in the last recording, or since while breakpoints were on, or its exception is gone: "
                "it lives for as long as the program has it"
            )
        # Dataset.from_generator ends its data with a StopIteration of its own: nothing of the user's is in it.
        return next((error for _, error in failed if user_traceback(error.__traceback__)), failed[0][1])
    number = call if isinstance(call, int) else call.id
    for kept, error in failed:
        if kept == number and (isinstance(call, int) or _is_of(error, call)):
            return error
    if isinstance(call, Call) and call.status != "error":
        raise NotKeptError(f"call {number} did not fail: call.replay() runs its body again")
    raise NotKeptError(f"the frames of call {number} are gone: they live for as long as the program has its exception")


def _is_of(error: BaseException, call: Call) -> bool:
    """Whether a failure can be that of a call: a newer recording numbers its calls from 1 again."""
    return call.failure is not None and type(original_of(error) or error).__name__ == call.failure.type
