"""Frames of generators: where one is left and entered again, as CPython's bytecode and trace events have it."""

from __future__ import annotations

import dis
import inspect
from types import CodeType, FrameType
from typing import Any, TypeAlias

Resumed: TypeAlias = tuple[CodeType, int]
"""A frame that is to be entered again: its code and its id, since the frame itself would keep its variables."""

_RETURNS = {dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap}
_YIELD = dis.opmap["YIELD_VALUE"]


def identity(frame: FrameType) -> Resumed:
    """What `frame` is known by when it is entered again."""
    return frame.f_code, id(frame)


def is_generator(frame: FrameType) -> bool:
    """Whether it is a generator's."""
    return bool(frame.f_code.co_flags & inspect.CO_GENERATOR)


def delegates(frame: FrameType) -> bool:
    """Whether a frame is being entered again in a `yield from`."""
    code, last = frame.f_code.co_code, frame.f_lasti
    if last < 0:
        return False
    near = [(dis.opname[code[at]], code[at + 1]) for at in (last, last + 2) if at + 1 < len(code)]
    return any(name == "YIELD_FROM" or (name == "RESUME" and argument & 3 == 2) for name, argument in near)


def is_left(frame: FrameType) -> bool:
    """Whether it is a generator's that has yielded, and can be entered again."""
    return is_generator(frame) and (_at_yield(frame) or delegates(frame))


def _at_yield(frame: FrameType) -> bool:
    """Whether it yielded last: CPython 3.13.0 has it at the instruction behind that."""
    code, last = frame.f_code.co_code, frame.f_lasti
    return code[last] == _YIELD or (dis.opname[code[last]] == "RESUME" and code[last + 1] & 3 == 1)


def returns(frame: FrameType, value: Any) -> bool:
    """Whether a return event is one: Python also reports it, with None, of a frame that an exception leaves.

    That of a generator is one where it yields: it returns at its end.
    """
    last = frame.f_code.co_code[frame.f_lasti]
    if is_generator(frame):
        return last not in _RETURNS and (value is not None or _at_yield(frame))
    return value is not None or last in _RETURNS
