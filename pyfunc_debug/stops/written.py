"""Tracebacks through code that AutoGraph generated, as the user wrote it: for pdb, IPython's %debug and pytest --pdb.

They show the frames that a traceback holds. So one is made for each function with its branches and loops, at the
user's line and with the user's variables.
"""

from __future__ import annotations

import ast
import sys
import threading
from types import CodeType, FrameType, TracebackType
from typing import Any

from pyfunc_debug.program.frames import is_generated
from pyfunc_debug.program.threads import hide_from_debuggers
from pyfunc_debug.stops.environment import Environment
from pyfunc_debug.stops.generated import Generated, UserFrame

_TAKER = "the object that takes the frame"
_AUTOGRAPH = "/tensorflow/python/autograph/"


class _Taker:
    """Has the frame that asks for its attribute."""

    frame: FrameType | None = None

    @property
    def take(self) -> None:
        self.frame = sys._getframe(1)


def as_written(traceback: TracebackType | None, environment: Environment) -> TracebackType | None:
    """A traceback, the same one where nothing in it was generated, else another with the user's functions and lines."""
    if not _has_generated(traceback):
        return traceback
    generated = Generated(environment)
    entries: list[tuple[Any, int, int]] = []
    while traceback is not None:
        frame, line = traceback.tb_frame, traceback.tb_lineno
        seen = generated.seen(frame, line)
        if isinstance(seen, UserFrame):
            at = next((n for n, (one, _, _) in enumerate(entries) if one == seen), len(entries))
            entries[at:] = [(seen, -1, seen.f_lineno)]  # a branch or a loop, and how AutoGraph came there, is that line
        elif _AUTOGRAPH not in frame.f_code.co_filename:
            entries.append((frame, traceback.tb_lasti, line))
        traceback = traceback.tb_next
    found: TracebackType | None = None
    for frame, last, line in reversed(entries):
        if isinstance(frame, UserFrame):
            frame = _frame(frame)
            last = frame.f_lasti
        found = TracebackType(found, frame, last, line)
    return found


def _has_generated(traceback: TracebackType | None) -> bool:
    while traceback is not None:
        if is_generated(traceback.tb_frame.f_code.co_filename):
            return True
        traceback = traceback.tb_next
    return False


def _frame(seen: UserFrame) -> FrameType:
    """A real frame, of code without any effect.

    It runs on a thread of its own: a frame holds who called it, and these hold the exception, which would then live
    until Python looks for cycles.
    """
    taker = _Taker()
    code, globals_, names = _code(seen, taker), seen.f_globals, seen.f_locals
    thread = threading.Thread(target=eval, args=(code, globals_, names), daemon=True)
    hide_from_debuggers(thread)
    thread.start()
    thread.join()
    frame, taker.frame = taker.frame, None
    assert frame is not None
    return frame


def _code(seen: UserFrame, taker: _Taker) -> CodeType:
    """Code of one line of the user's, which asks the taker for its attribute. It is in no column: nobody marks one."""
    like = seen.f_code
    first = min(like.co_firstlineno, seen.f_lineno)
    tree = ast.parse(f"{_TAKER!r}.take", mode="eval")
    for one in ast.walk(tree):
        if isinstance(one, ast.expr):
            one.lineno = one.end_lineno = seen.f_lineno - first + 1
            one.col_offset = one.end_col_offset = -1
    code = compile(tree, like.co_filename, "eval")
    constants = tuple(taker if one == _TAKER else one for one in code.co_consts)
    code = code.replace(co_name=like.co_name, co_firstlineno=first, co_consts=constants)
    if sys.version_info >= (3, 11):
        code = code.replace(co_qualname=like.co_name)
    return code
