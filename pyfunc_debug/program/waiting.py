"""What a thread of this process is doing now: its Python stack, and what it waits for, as far as Python knows."""

from __future__ import annotations

import builtins
import inspect
import itertools
import linecache
import os
import re
import sys
import threading
from dataclasses import dataclass
from types import FrameType

from pyfunc_debug.places import source_line
from pyfunc_debug.program.frames import is_installed, is_keras, is_tensorflow, is_user, line_text
from pyfunc_debug.program.garbage import no_search, other_frames
from pyfunc_debug.program.lock_holders import Holder, holder, thread_name, value
from pyfunc_debug.records import Frame

_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_OWNER = re.compile(r"owner=(\d+)")
_LIBRARY = {
    ("threading.py", "wait"): "a threading event or condition",
    ("threading.py", "join"): "another thread to end",
    ("threading.py", "_wait_for_tstate_lock"): "another thread to end",
    ("threading.py", "acquire"): "a semaphore",
    ("queue.py", "get"): "an item of a queue",
    ("queue.py", "put"): "room in a queue",
    ("_base.py", "result"): "the result of a future",
    ("pool.py", "wait"): "the result of a multiprocessing pool",
    ("connection.py", "_recv"): "data from another process",
    ("connection.py", "_poll"): "data from another process",
    ("popen_fork.py", "poll"): "another process to end",
    ("popen_fork.py", "wait"): "another process to end",
    ("subprocess.py", "_try_wait"): "another process to end",
    ("subprocess.py", "communicate"): "another process to end",
    ("socket.py", "readinto"): "data from the network",
    ("ssl.py", "read"): "data from the network",
    ("getpass.py", "unix_getpass"): "an answer to getpass()",
}
FOR_PROCESSES = (
    "the result of a multiprocessing pool", "the result of a future", "data from another process",
    "another process to end",
)  # fmt: skip
"""What other processes may have to do."""
_QUESTIONS = {
    ("getpass.py", "unix_getpass"),  # asks at /dev/tty
    ("kernelbase.py", "_input_request"),  # input() and getpass() in a notebook
    ("prompt.py", "prompt"),  # prompt_toolkit's
}
"""File and function on the stack of a thread that asks where a person sees it."""
_PROMPTS = {
    ("bdb.py", "trace_dispatch"),  # pdb, ipdb, pudb
    ("cmd.py", "cmdloop"),  # pdb's post-mortem
    ("debugger.py", "interaction"),  # that of ipdb and pudb
    ("pydevd.py", "do_wait_suspend"),  # an IDE
}
"""File and function on the stack of a thread that another debugger holds."""
_CALLS = os.path.join("tensorflow", "python", "ops", "script_ops.py")
"""TensorFlow calls bodies from there."""
_STOPS = f"pyfunc_debug{os.sep}stops"
"""Frames of ours that hold a call at a stop."""
_OF_TENSORFLOW = (" inside TensorFlow", ", to run what this line asked for")
_PLAIN = (int, float, bool, str)
_SHORT = 60
_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
_WITH = re.compile(r"\bwith\s+([A-Za-z_][\w.]*)")
_FOR = re.compile(r"for .+ in ([A-Za-z_][\w.]*):")
_ACQUIRE = re.compile(r"([A-Za-z_][\w.]*)\.acquire\(")


@dataclass(frozen=True)
class Waiting:
    """What a thread does.

    Attributes:
      stack: The user's lines, outermost first.
      what: What it waits for, in words; empty where Python does not know.
      lock: Whether it waits for something that another thread of this process must do.
      at: Which instruction it is at: the same twice means that Python did not move.
      stopped: Whether it is held at a stop, ours or one of another debugger, or asks the user something he sees.
      own: How many of the last lines of `stack` are the body's and of what it called.
      holder: The thread that holds the lock that it waits for, where stacks show that.
      on: The queue, event or semaphore of Python's library that it waits for.
      keras: The object of Keras' whose method waits for it there, where one does.
    """

    stack: tuple[Frame, ...]
    what: str
    lock: bool
    at: tuple[int, int]
    stopped: bool
    own: int = 0
    holder: Holder | None = None
    on: object = None
    keras: KerasWait | None = None


@dataclass(frozen=True)
class KerasWait:
    """A wait for an object of Python's library inside Keras.

    Attributes:
      owner: Name of the type whose method waits: `OrderedEnqueuer`; "" for a function.
      method: Its name.
      ended: Whether a thread that the object keeps has ended: nobody does its work any more.
    """

    owner: str
    method: str
    ended: bool

    @property
    def name(self) -> str:
        """`OrderedEnqueuer.get`."""
        return f"{self.owner}.{self.method}" if self.owner else self.method


@no_search()
def waiting(ident: int) -> Waiting | None:
    """What the thread with this `threading.get_ident()` does now; None if it runs no Python."""
    frame = sys._current_frames().get(ident)
    if frame is None:
        return None
    at = _place(frame)
    what, lock, held = _reason(frame)
    stack: list[Frame] = []
    own = 0
    stopped = _asks(frame) and os.isatty(0) and os.isatty(1)  # else nobody may see what is asked
    one: FrameType | None = frame
    while one is not None:
        file = one.f_code.co_filename
        stopped = stopped or _STOPS in file
        stopped = stopped or (os.path.basename(file), one.f_code.co_name) in _PROMPTS | _QUESTIONS
        if is_user(file):
            stack.append(Frame(file, one.f_lineno, one.f_code.co_name, line_text(file, one.f_lineno)))
        elif not own and file.endswith(_CALLS):
            own = len(stack)
        one = one.f_back
    return Waiting(
        tuple(reversed(stack)), what, lock, at, stopped, own, held, _thing(frame), _in_keras(frame) if what else None
    )


@no_search()
def place_of(ident: int) -> tuple[int, int] | None:
    """Where a thread is, as `Waiting.at` says it. Reads no variable: that would keep it alive."""
    frame = sys._current_frames().get(ident)
    return None if frame is None else _place(frame)


def _place(frame: FrameType) -> tuple[int, int]:
    return id(frame.f_code), frame.f_lasti


@no_search()
def in_bodies(but: int | None = None) -> bool:
    """Whether another thread runs Python for TensorFlow now, also while nobody watches calls.

    Args:
      but: A thread that does not count.
    """
    for ident, top in other_frames().items():
        one: FrameType | None = top if ident != but else None
        while one is not None:
            if one.f_code.co_filename.endswith(_CALLS):
                return True
            one = one.f_back
    return False


Place = tuple[str, int]
"""File and first line of a function, or file and line of a statement."""


@no_search()
def bodies_at_work() -> list[tuple[Place, Place]]:
    """The bodies that other threads run for TensorFlow now, each with the innermost line of the user's that it is in.

    Lines of installed packages count for those that called them. Bodies that are held at a stop are left out.
    """
    found: list[tuple[Place, Place]] = []
    for top in other_frames().values():
        line: Place | None = None
        body: Place | None = None
        one: FrameType | None = top
        while one is not None:
            code = one.f_code
            file = code.co_filename
            if _STOPS in file:
                break
            if is_user(file):
                body = file, code.co_firstlineno
                if line is None and not is_installed(file):
                    line = file, one.f_lineno
            elif file.endswith(_CALLS):
                if line is not None and body is not None:
                    found.append((body, line))
                break
            one = one.f_back
    return found


@no_search()
def empty_loops(ident: int, body: Frame) -> dict[int, str]:
    """What each `for` of a body that a thread runs goes through, by its line, where that is empty: `{11: "files"}`."""
    one = _frame_of(ident, body)
    found: dict[int, str] = {}
    if one is None:
        return found
    for line in sorted({line for _, _, line in one.f_code.co_lines() if line is not None}):
        match = _FOR.match(line_text(one.f_code.co_filename, line))
        try:
            if match is not None and len(value(one, match[1].split("."))) == 0:
                found[line] = match[1]
        except (KeyError, AttributeError, TypeError):
            continue
    return found


@no_search()
def plain_values(ident: int, body: Frame) -> dict[str, str]:
    """The numbers and short texts among the variables of a body that a thread runs: `{"i": "13"}`."""
    one = _frame_of(ident, body)
    found = dict(one.f_locals) if one is not None else {}
    return {name: repr(kept) for name, kept in found.items() if type(kept) in _PLAIN and len(repr(kept)) <= _SHORT}


@no_search()
def yields(ident: int, body: Frame) -> bool:
    """Whether a body that a thread runs is a generator."""
    one = _frame_of(ident, body)
    return one is not None and bool(one.f_code.co_flags & inspect.CO_GENERATOR)


def _frame_of(ident: int, body: Frame) -> FrameType | None:
    """The innermost frame of a body on a thread's stack. Its caller sees to it that no search for garbage begins."""
    one = sys._current_frames().get(ident)
    while one is not None and (one.f_code.co_filename, one.f_code.co_name) != (body.file, body.function):
        one = one.f_back
    return one


def _reason(frame: FrameType) -> tuple[str, bool, Holder | None]:
    """What it waits for, whether that is another thread's doing, and who holds it, if it is a lock."""
    if _asks(frame):
        return "a line of standard input", False, None
    one: FrameType | None = frame
    found = lock = ""
    held: Holder | None = None
    while one is not None and not is_user(one.f_code.co_filename):
        code = one.f_code
        if is_keras(code.co_filename) and found and not lock and not found.endswith(_OF_TENSORFLOW):
            pass  # Keras waits for it itself, as in `queue.get()`
        elif is_tensorflow(code.co_filename):
            lock = lock or _lock(one)[0]
            found = f"{lock}{_OF_TENSORFLOW[0]}" if lock else f"TensorFlow{_OF_TENSORFLOW[1]}"
        else:
            found = _LIBRARY.get((os.path.basename(code.co_filename), code.co_name), found)
        one = one.f_back
    if one is None:
        return "", False, None
    if not found:
        found, held = _lock(one)
    return found, bool(found), held


def _thing(frame: FrameType) -> object:
    """The object whose method of Python's library waits: of a queue the queue, not the condition inside of it."""
    one: FrameType | None = frame
    found: object = None
    while one is not None and not is_user(one.f_code.co_filename):
        if (os.path.basename(one.f_code.co_filename), one.f_code.co_name) in _LIBRARY:
            found = one.f_locals.get("self", found)
        one = one.f_back
    return found


def _in_keras(frame: FrameType) -> KerasWait | None:
    """The method of Keras' that waits in Python's library, called by the user's line; None where none does."""
    one: FrameType | None = frame
    waits = False
    while one is not None and not is_user(one.f_code.co_filename):
        file, name = one.f_code.co_filename, one.f_code.co_name
        if is_keras(file):
            owner = one.f_locals.get("self") if waits else None
            threads = [kept for kept in getattr(owner, "__dict__", {}).values() if isinstance(kept, threading.Thread)]
            ended = any(kept.ident is not None and not kept.is_alive() for kept in threads)
            return KerasWait("" if owner is None else type(owner).__name__, name, ended) if waits else None
        if is_tensorflow(file):
            return None
        waits = waits or (os.path.basename(file), name) in _LIBRARY
        one = one.f_back
    return None


def _asks(frame: FrameType) -> bool:
    """Whether what the frame calls now is input(), or reads standard input."""
    for name in _called(frame):
        if name.startswith("sys.stdin."):
            return True
        try:
            if value(frame, name.split(".")) is builtins.input:
                return True
        except (KeyError, AttributeError, TypeError):
            continue
    return False


def _called(frame: FrameType) -> list[str]:
    """Name of the function that a frame calls now, as written; before Python 3.11 those of all calls in its line."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    if not hasattr(frame.f_code, "co_positions"):
        return _CALL.findall(line_text(file, line))
    line, _, column, _ = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if line is None or column is None:  # python -X no_debug_ranges
        return []
    match = _CALL.match(linecache.getline(file, line).encode()[column:].decode(errors="replace"))
    return [match[1]] if match else []


def _lock(frame: FrameType) -> tuple[str, Holder | None]:
    """`the lock lock, held by Dummy-3 at train.py:12` if the frame's line takes a lock that is taken; else empty."""
    text = line_text(frame.f_code.co_filename, frame.f_lineno)
    match = _WITH.search(text) or _ACQUIRE.search(text)
    if match is None:
        return "", None
    try:
        found = value(frame, match[1].split("."))
    except (KeyError, AttributeError, TypeError):
        return "", None
    if not isinstance(found, _LOCKS) or "unlocked" in repr(found):
        return "", None
    owner = _OWNER.search(repr(found))
    held = holder(found, frame)
    if held is not None and held.itself:
        return f"the lock {match[1]}, which this thread itself took at {source_line(held.file, held.taken)}", held
    ident = int(owner[1]) if owner is not None else held.ident if held is not None else None
    if ident is None:
        return f"the lock {match[1]}", None
    where = _line_of(ident)
    return f"the lock {match[1]}, held by {thread_name(ident)}{f' at {where}' if where else ''}", held


@no_search()
def _line_of(ident: int) -> str:
    one = sys._current_frames().get(ident)
    while one is not None:
        if is_user(one.f_code.co_filename):
            return source_line(one.f_code.co_filename, one.f_lineno)
        one = one.f_back
    return ""


_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 10_000_000


def ran_ns(native_id: int) -> int | None:
    """How long a thread of this process was on a core so far, or waited for one; None where that cannot be read.

    Source: Linux' /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst); where it is not there the CPU
    time of /proc/PID/task/TID/stat, in hundredths of a second.
    """
    try:
        with open(f"/proc/self/task/{native_id}/schedstat", encoding="ascii") as file:
            on_a_core, waited, *_ = file.read().split()
        return int(on_a_core) + int(waited)
    except (OSError, ValueError):
        fields = _stat(native_id)
        return (int(fields[11]) + int(fields[12])) * _TICK_NS if fields else None


def waits_begun(native_id: int) -> int | None:
    """How often a thread of this process began to wait for something so far; None where that cannot be read.

    Source: `voluntary_ctxt_switches` of Linux' /proc/PID/task/TID/status, proc(5).
    """
    try:
        with open(f"/proc/self/task/{native_id}/status", encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches:")), None)
    except OSError:
        return None


def runnable(native_id: int) -> bool:
    """Whether a thread of this process runs, or would if a busy machine gave it a core: it waits for nothing else."""
    fields = _stat(native_id)
    return bool(fields) and fields[0] == "R"


def _stat(native_id: int) -> list[str]:
    """What Linux says of a thread, from its state on (proc(5), /proc/pid/stat); empty where that cannot be read."""
    try:
        with open(f"/proc/self/task/{native_id}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []
