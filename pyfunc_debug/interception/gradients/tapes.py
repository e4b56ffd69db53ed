"""Tapes of single calls, and how long they live: as long as somebody can still ask for the gradient, and no longer.

A call's number travels through TensorFlow's graph as a hidden output. It is in a buffer of ours that TensorFlow uses
without copying (DLPack, 64-byte aligned); when TensorFlow lets go of it, nobody can ask for this gradient any more, and
the tape is dropped.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfunc_debug.interception.calls import drop_our_frame

_SLAB = 512
"""Ids prepared at a time. A slab's memory (64 bytes an id) lives until the last of its ids is dropped."""
_SLOT = 8  # float64 numbers in 64 bytes: TensorFlow copies what is not aligned


class CallTape:
    """What one call left behind for its gradient.

    Attributes:
      number: Of the call among all calls with tapes in this process, from 1.
      token: The node's token.
      tape: A persistent `tf.GradientTape` that recorded the body.
      sources: What the tape watched, one item an input of the node; None where nothing can be asked for.
      outputs: What the body returned, converted.
      second: With `order=2`, another tape, which will record the gradient's computation as well.
      exact: Whether the call ran in exact mode: then its gradient is its own, whatever the mode is later.
      observer, ticket: Who recorded the call, and its ticket.
      times: How often it was differentiated.
      guard: Taken while `second` records: TensorFlow's tapes are not made for two threads at once.
    """

    __slots__ = (
        "exact", "guard", "number", "observer", "outputs", "second", "sources", "tape", "ticket", "times", "token",
    )  # fmt: skip

    def __init__(self, token: str, tape: Any, sources: list[Any], second: Any, exact: bool) -> None:
        self.token = token
        self.tape = tape
        self.sources = sources
        self.second = second
        self.exact = exact
        self.outputs: Any = None
        self.observer: Any = None
        self.ticket: Any = None
        self.number = 0
        self.times = 0
        self.guard = threading.Lock() if second is not None else None

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None) -> Any:
        """What TensorFlow's own gradient asks of the tape that it finds in `script_ops.tape_cache`.

        A gradient node that was made while we were off passes one gradient too many: the hidden output's.
        """
        if isinstance(output_gradients, (list, tuple)):
            output_gradients = output_gradients[: len(target) if isinstance(target, (list, tuple)) else 1]
        self.times += 1
        try:
            return self.tape.gradient(target, sources, output_gradients=output_gradients)
        except BaseException as error:
            drop_our_frame(error)
            raise


class Tapes:
    """All tapes that can still be asked for, by number."""

    def __init__(self, from_capsule: Callable[[Any], Any]) -> None:
        self._from_capsule = from_capsule
        self._tapes: dict[int, CallTape] = {}
        self._ids: deque[Any] = deque()
        self._next = 1
        self._lock = threading.Lock()
        self._watches: dict[int, Any] = {}
        self.kept: dict[int, CallTape] = self._tapes  # for tests and the doctor: len() is the number of live tapes

    def keep(self, tape: CallTape) -> Any:
        """Keeps a tape for as long as the returned tensor's buffer lives.

        Returns:
          A float64 scalar tensor that holds the tape's number.
        """
        buffer = self._buffer()
        tape.number = number = int(buffer)
        self._tapes[number] = tape
        self._watches[number] = weakref.ref(buffer, functools.partial(self._drop, number))
        return self._from_capsule(buffer.__dlpack__())

    def number(self, tape: CallTape) -> int:
        """Keeps a tape until `forget`."""
        tape.number = number = int(self._buffer())
        self._tapes[number] = tape
        return number

    def find(self, number: int) -> CallTape | None:
        """The tape of that number, if anybody could still ask for it."""
        return self._tapes.get(number)

    def forget(self, number: int) -> None:
        """Drops a tape kept by `number`."""
        self._tapes.pop(number, None)

    def _drop(self, number: int, _reference: Any) -> None:
        self._tapes.pop(number, None)
        self._watches.pop(number, None)

    def _buffer(self) -> Any:
        """A 0-d array, 64-byte aligned, that holds a number not used before."""
        while True:
            try:
                return self._ids.popleft()
            except IndexError:
                self._prepare()

    def _prepare(self) -> None:
        with self._lock:
            if self._ids:
                return
            raw = np.empty((_SLAB + 1) * _SLOT)
            start = (-raw.__array_interface__["data"][0]) % 64 // 8
            slab = raw[start : start + _SLAB * _SLOT].reshape(_SLAB, _SLOT)
            slab[:, 0] = np.arange(self._next, self._next + _SLAB)
            self._next += _SLAB
            self._ids.extend([slab[index, 0, ...] for index in range(_SLAB)])


class Owner:
    """Held by whoever can still ask for an eager call's gradient; the tape goes with it."""

    __slots__ = ("_number", "_tapes")

    def __init__(self, tapes: Tapes, number: int) -> None:
        self._tapes = tapes
        self._number = number

    def __del__(self) -> None:
        self._tapes.forget(self._number)
