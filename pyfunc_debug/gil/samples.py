"""What a probe hands over: samples of one grade, and the record kinds of the native one.

Threads are named by `threading.get_ident()`, which on Linux is pthread_self(). Idents are reused when threads come and
go; every sample carries times as well, and two threads with one ident never live at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

Grade = Literal["native", "op-start", "bound", "none"]

# Kinds of native rows, as in _native.c.
CLOSED, WAITED, HELD, RELEASED = 1, 2, 3, 4

NativeRow = tuple[int, int, int, int, int, int, int, int, int]
"""kind, thread, serial of the op (0: none), and six numbers whose meaning depends on the kind (_native.c)."""

CallTimes = tuple[int, int, int, int]
"""Call id, `threading.get_ident()` of its thread, start_ns, end_ns: what the recorder knows of a finished call."""


Answer = tuple[int, Grade, int | None, int | None, int | None, int | None, tuple[tuple[str, int], ...]]
"""What is known of a call: its id, and the fields of `records.Gil`."""


class OpSpan(NamedTuple):
    """One execution of a py_function-like op, as TensorFlow's profiler saw it: from its begin to its end.

    `line` is the profiler's name of the thread, `xplane.line_of(ident)`.
    """

    line: int
    begin_ns: int
    end_ns: int


class Tick(NamedTuple):
    """One wake-up of the canary.

    Attributes:
      due_ns: When it asked to wake up.
      got_ns: When it ran, with the GIL.
      threads: Idents of other threads with Python frames, each with whether its top frame stood at an instruction
        where the interpreter gives the GIL away.
    """

    due_ns: int
    got_ns: int
    threads: tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """What a probe measured since it was last drained.

    Attributes:
      grade: Which probe measured.
      until_ns: Everything that finished before then is in these samples or in earlier ones.
      native: Rows of the native probe, in the order in which threads held the GIL: a list, or an array of 9 columns.
      ops: Spans of ops from the profiler, for op start.
      windows: When the profiler was on, for op start.
      ticks: Wake-ups of the canary, when it runs.
      names: Names of the Python threads by ident.
      lost: Rows that found the probe's buffer full.
    """

    grade: Grade
    until_ns: int
    native: list[NativeRow] | np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=list)
    ops: list[OpSpan] = field(default_factory=list)
    windows: list[tuple[int, int]] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    lost: int = 0
