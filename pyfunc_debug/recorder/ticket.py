"""One call on its way from the hot path to the file."""

from __future__ import annotations

from collections.abc import Sequence
from time import thread_time_ns
from typing import TYPE_CHECKING, Any

from pyfunc_debug.values import Held

NOT_MEASURED = -1
EMPTY, KEPT, AFTER = 1, 2, 3
"""Where values have no room any more: none is taken; they are taken as ever; they were taken after the body had run."""


class Ticket:
    """Filled in by the `HotPath`; read by the writer thread. On Linux a type of _hot.c with the same attributes.

    `end_ns` 0 means that the body still runs. `entered_ns` is before our work, `start_ns` right before the body.
    `thread` is the operating system's number, `ident` is threading.get_ident(). `cpu_start_ns` and `cpu_ns` are
    `NOT_MEASURED` for most short calls, see hot.py.

    `pair` says of a gradient call, where interception knows: the call it belongs to, the call whose tape was used,
    which outputs of the forward node its inputs belong to, and which inputs its outputs.

    `light`: sampling leaves it out, unless it turns out to be worth keeping (sampling.py); `args` are its arguments
    until then, `extra` is why it was kept. `kept`: it is stored whatever sampling says.
    `given` is what the kernel is about to compare with Tout: an array's dtype, False where it holds Python objects;
    True for another value; of several values a tuple of these; None where that is not known.
    `late`: `EMPTY`, `KEPT` or `AFTER` where values have no room any more; then `args` are kept until the end, too.
    """

    __slots__ = (
        "args", "call", "cpu_ns", "cpu_start_ns", "end_ns", "entered_ns", "extra", "failure", "given", "ident",
        "inputs", "kept", "late", "light", "outputs", "pair", "policy", "recorder", "room", "runs", "start_ns",
        "thread", "token", "values_ns",
    )  # fmt: skip

    call: int
    recorder: Any
    token: str
    thread: int
    ident: int
    entered_ns: int
    policy: int
    runs: Sequence[Any]
    inputs: Sequence[Held] | None
    outputs: Sequence[Held] | None
    room: int
    values_ns: int
    start_ns: int
    end_ns: int
    cpu_start_ns: int
    cpu_ns: int
    failure: tuple[str, Any] | None
    pair: tuple[int | None, int | None, tuple[int, ...], tuple[int, ...]] | None
    light: bool
    kept: bool
    late: int
    extra: str | None
    given: Any
    args: Any

    def __init__(self) -> None:
        self.room = self.values_ns = self.end_ns = self.late = 0
        self.inputs = self.outputs = self.failure = self.pair = self.extra = self.given = self.args = None
        self.light = self.kept = False


def cpu_since(start_ns: int) -> int:
    """CPU time of this thread since then, which may be `NOT_MEASURED`."""
    return NOT_MEASURED if start_ns == NOT_MEASURED else thread_time_ns() - start_ns


if not TYPE_CHECKING:
    try:
        from pyfunc_debug.recorder._hot import Ticket as _InC
    except ImportError:  # no compiler when it was installed, or another system
        pass
    else:
        if all(hasattr(_InC, name) for name in Ticket.__slots__):  # else it was built from an older source
            Ticket = _InC

__all__ = ["AFTER", "EMPTY", "KEPT", "NOT_MEASURED", "Ticket", "cpu_since"]
