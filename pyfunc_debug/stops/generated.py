"""Code that AutoGraph generated, as the user wrote it.

A body that is defined inside a tf.function, or inside a function of Dataset.map, runs as AutoGraph's file: more lines,
names of AutoGraph's, and a function for each branch and loop, which TensorFlow calls. Here these frames are one frame,
at the user's line, with the user's names.
"""

from __future__ import annotations

import ctypes
import dis
import re
import sys
from types import CodeType, FrameType
from typing import Any

from pyfunc_debug.events import Statements
from pyfunc_debug.program.frames import is_generated
from pyfunc_debug.stops.environment import Environment

_PART = r"(get_state|set_state|if_body|else_body|loop_body|loop_test|extra_test)"
_PARTS = re.compile(rf"{_PART}(_\d+)?")
_HIDDEN = re.compile(rf"ag__|vars_|(fscope|do_return|retval_|break_|continue_|{_PART})(_\d+)?")
_NO_VALUES = ("Undefined", "UndefinedReturnValue")
"""What AutoGraph gives variables that have no value yet."""
_NONE: frozenset[int] = frozenset()
_MISSING = object()


def store(frame: FrameType, names: dict[str, Any]) -> None:
    """Makes what `frame.f_locals` was given stick in the frame."""
    frame.f_locals.update(names)
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


class UserCode:
    """The code object of a user's function, of which AutoGraph made another: the rest is that one's."""

    def __init__(self, code: CodeType, file: str, line: int) -> None:
        self._code = code
        self.co_filename = file
        self.co_firstlineno = line
        self.co_name = code.co_name.removeprefix("tf__")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._code, name)


class UserFrame:
    """A frame of generated code, for pdb.

    Args:
      frames: The frame of the user's function, and those of its branches and loops that it is in, outermost first.
      code: The function as the user knows it.
      line: The user's line.
      names: The user's variables there.
    """

    def __init__(self, frames: list[FrameType], code: UserCode, line: int, names: dict[str, Any]) -> None:
        self.real = frames[0]
        self._frames = frames
        self._line = line
        self.f_code = code
        self.f_globals = self.real.f_globals
        self.f_builtins = self.real.f_builtins
        self.f_back = self.real.f_back
        self.f_lasti = self.real.f_lasti
        self.f_locals = names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserFrame) and other.real is self.real

    def __hash__(self) -> int:
        return hash(self.real)

    @property
    def f_lineno(self) -> int:
        """The user's line."""
        return self._line

    @f_lineno.setter
    def f_lineno(self, line: int) -> None:
        raise ValueError("AutoGraph rewrote this function: there is no jump in it")

    def keep(self, before: dict[str, Any]) -> None:
        """Makes assignments stick: each in the frame that has the variable."""
        for name, value in self.f_locals.items():
            if name in before and before[name] is value:
                continue
            owner = next((one for one in reversed(self._frames) if has(one.f_code, name)), self.real)
            store(owner, {name: value})


def has(code: CodeType, name: str) -> bool:
    """Whether this is one of a function's variables."""
    return name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars


def of_autograph(code: CodeType, name: str, value: Any) -> bool:
    """Whether a variable of a frame of generated code is AutoGraph's own, or has no value yet."""
    handed = code.co_varnames[: code.co_argcount] if _PARTS.fullmatch(code.co_name) else ()
    return name in handed or bool(_HIDDEN.fullmatch(name)) or type(value).__name__ in _NO_VALUES


def _variables(frames: list[FrameType]) -> dict[str, Any]:
    """The user's variables that a function and those of its branches and loops that it is in have now."""
    found: dict[str, Any] = {}
    for frame in frames:
        own = frame.f_code.co_varnames[: frame.f_code.co_argcount] if frame is not frames[0] else ()
        found.update(
            (name, value)
            for name, value in frame.f_locals.items()
            if name not in own and not _HIDDEN.fullmatch(name) and type(value).__name__ not in _NO_VALUES
        )
    return found


class Generated:
    """Frames of generated code during one call.

    Args:
      environment: What knows AutoGraph's source maps.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._statements: dict[int, tuple[CodeType, Statements]] = {}  # those of different files compare equal
        self._last: dict[FrameType, int] = {}
        self._local: dict[int, tuple[CodeType, dict[str, int]]] = {}
        self._left: dict[FrameType, dict[str, tuple[Any, Any]]] = {}
        """By function: what branches and loops left, and what the code around these had under that name then."""

    def base(self, frame: FrameType) -> FrameType | None:
        """The frame of the user's function that a generated frame is, or is a branch or loop of; else None."""
        file = frame.f_code.co_filename
        if not is_generated(file):
            return None
        base: FrameType | None = frame
        while base is not None and self._is_part(base.f_code):
            code, base = base.f_code, base.f_back
            while base is not None and (
                base.f_code.co_filename != file or not any(one is code for one in base.f_code.co_consts)
            ):
                base = base.f_back
        return base

    def _is_part(self, code: CodeType) -> bool:
        if code.co_name == "<lambda>":  # AutoGraph's own, for `and`, `or` and conditional expressions
            return self.statements(code).part
        return _PARTS.fullmatch(code.co_name) is not None

    def statements(self, code: CodeType) -> Statements:
        """What the lines of generated code stand for."""
        found = self._statements.get(id(code))
        if found is None:
            found = self._statements[id(code)] = code, self._environment.statements(code)
        return found[1]

    def at_statement(self, frame: FrameType) -> int | None:
        """The user's line, if a generated frame is about to begin a statement of theirs."""
        return self.statements(frame.f_code).lines.get(frame.f_lineno)

    def joined(self, code: CodeType, line: int) -> frozenset[int]:
        """The user's other lines that AutoGraph made one with that of a statement; none of other code."""
        return self.statements(code).joined.get(line, _NONE) if is_generated(code.co_filename) else _NONE

    def note(self, frame: FrameType) -> int | None:
        """A frame came to a line: the user's; None for one of AutoGraph's own, and for other code."""
        base = self.base(frame)
        line = self.at_statement(frame) if base is not None else None
        if base is not None and line is not None:
            self._last[base] = line
        return line

    def names(self, frame: FrameType) -> dict[str, Any]:
        """The user's variables, in any frame."""
        base = self.base(frame)
        return dict(frame.f_locals) if base is None else self._names(base, self._frames(base, frame))

    def _names(self, base: FrameType, frames: list[FrameType]) -> dict[str, Any]:
        found = _variables(frames)
        for name, (value, before) in self._left.get(base, {}).items():
            if found.get(name, _MISSING) is before:  # else it was set again
                found[name] = value
        return found

    def note_left(self, frame: FrameType) -> None:
        """A frame returns: of a branch or a loop, its variables go on as they do in the user's function.

        AutoGraph makes functions of those, and what no code behind them reads is not handed on.
        """
        base = self.base(frame)
        local = self._local_names(frame.f_code) if base is not None and base is not frame else None
        if not local or base is None:
            return
        frames = self._frames(base, frame)
        names, around = self._names(base, frames), _variables(frames[:-1])
        self._left.setdefault(base, {}).update(
            (name, (names[name], around.get(name, _MISSING))) for name in local if name in names
        )

    def dropped(self, frame: Any, name: str) -> str:
        """A sentence where a name, not known in a frame, is that of a variable that AutoGraph dropped, or will."""
        base = self.base(getattr(frame, "real", frame))
        if base is None or (has(base.f_code, name) and name not in base.f_locals):  # the latter: it is not set yet
            return ""
        lines = self._where_local(base.f_code, name)
        if not lines:
            return ""
        at = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, sorted(lines)))}"
        return (
            f"AutoGraph drops {name} at the end of the branch or loop that sets it ({at}): nothing behind it reads it"
        )

    def unsure(self, frame: FrameType) -> str:
        """A sentence about variables that may be older here than in the user's function, where nobody saw it run."""
        base = self.base(frame)
        if base is None or base in self._left:
            return ""
        here = self.seen(frame, frame.f_lineno).f_lineno
        where = {name: self._where_local(base.f_code, name) for name in _variables([base]) if has(base.f_code, name)}
        old = {name: min(lines) for name, lines in where.items() if lines and min(lines) < here}
        return " ".join(
            f"{name} may be older here than in your function: what line {line} sets stays in its branch or loop."
            for name, line in sorted(old.items())
        )

    def _where_local(self, code: CodeType, name: str) -> set[int]:
        """The user's lines that set a variable which ends with a branch or a loop."""
        found: set[int] = set()
        for part in code.co_consts:
            if isinstance(part, CodeType) and self._is_part(part):
                line = self._local_names(part).get(name)
                if line is not None:
                    found.add(self._environment.user_line(part.co_filename, line)[1])
                found |= self._where_local(part, name)
        return found

    def _local_names(self, code: CodeType) -> dict[str, int]:
        """The user's variables that a branch or a loop sets for itself, and the first line of its file that does."""
        found = self._local.get(id(code))
        if found is None:
            lines: dict[str, int] = {}
            other, line = set(code.co_varnames[: code.co_argcount]), code.co_firstlineno
            starts = dict(dis.findlinestarts(code))
            own = {*code.co_varnames, *code.co_cellvars}
            for one in dis.get_instructions(code):
                line = starts.get(one.offset) or line
                if one.opname.startswith(("STORE_FAST", "STORE_DEREF")):
                    names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
                    for name in names[:1] if one.opname == "STORE_FAST_LOAD_FAST" else names:
                        lines.setdefault(name, line)
                elif one.opname in (
                    "DELETE_FAST",
                    "DELETE_DEREF",
                    "LOAD_FAST_AND_CLEAR",
                ):  # the last: [... for name in]
                    other.add(one.argval)
            kept = {name: at for name, at in lines.items() if name in own - other and not _HIDDEN.fullmatch(name)}
            found = self._local[id(code)] = code, kept
        return found[1]

    def _frames(self, base: FrameType, frame: FrameType) -> list[FrameType]:
        found: list[FrameType] = []
        one: FrameType | None = frame
        while one is not None:
            if one is frame or one is base or self.base(one) is base:
                found.append(one)
            if one is base:
                break
            one = one.f_back
        return found[::-1]

    def seen(self, frame: FrameType, line: int) -> Any:
        """A frame as pdb is to see it: itself, or a `UserFrame`."""
        base = self.base(frame)
        if base is None:
            return frame
        code, user_line = base.f_code, self._environment.user_line
        file, first = user_line(code.co_filename, code.co_firstlineno)
        if file == code.co_filename:  # no map is known
            return frame
        at = self._last.get(base) or user_line(frame.f_code.co_filename, line)[1]
        frames = self._frames(base, frame)
        return UserFrame(frames, UserCode(code, file, first), at, self._names(base, frames))

    def stack(self, entries: list[tuple[FrameType, int]]) -> list[tuple[Any, int]]:
        """A stack, outermost first, in which a function with its branches and loops is one entry."""
        found: list[tuple[Any, int]] = []
        for frame, line in entries:
            one = self.seen(frame, line)
            if one is frame:
                found.append((frame, line))
                continue
            if found and found[-1][0] == one:
                found.pop()
            found.append((one, one.f_lineno))
        return found
