"""Who ran while a call waited for the GIL: arithmetic on intervals, with no clock, thread or file in it.

The GIL has one holder at a time. With the native grade the holders are known; at op start every body that ran
on another thread gets an equal share of the time, and what no body explains belongs to other Python threads.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

OUTSIDE = "other Python threads"
"""Label of holders that were in no body: the main thread, other libraries."""
NOBODY = "woke up late"
"""Label of time in which the GIL was free and the waiting thread had not run yet."""
RUNNING = "a py_function still running"
UNRECORDED = "a py_function not recorded"
OURS = "pyfunc_debug"
"""Names of our own threads begin so."""

MOST = 16
"""Entries that the blame of one call may have; smaller ones are added up by body."""


class Span(NamedTuple):
    """A call's body on a thread."""

    start_ns: int
    end_ns: int
    thread: int
    call: int


class Holds:
    """The newest intervals in which a thread held the GIL while another waited, in order.

    `keep` bounds them; of a wait that reaches farther back, a part stays unexplained. They are kept as plain numbers:
    there are hundreds of thousands.
    """

    def __init__(self, keep: int = 150_000) -> None:
        self._keep = keep
        self._from = array("q")
        self._to = array("q")
        self._holder = array("q")

    def add(self, holder: int, from_ns: int, to_ns: int) -> None:
        """Adds an interval that begins after all the others ended."""
        self.extend([holder], [from_ns], [to_ns])

    def extend(self, holders: list[int], from_ns: list[int], to_ns: list[int]) -> None:
        """Adds several, in order."""
        self._from.extend(from_ns)
        self._to.extend(to_ns)
        self._holder.extend(holders)
        if len(self._from) > 2 * self._keep:
            for column in (self._from, self._to, self._holder):
                del column[: -self._keep]

    def during(self, from_ns: int, to_ns: int) -> dict[int, int]:
        """Nanoseconds by holder within a wait."""
        shares: dict[int, int] = {}
        for i in range(bisect_right(self._to, from_ns), bisect_left(self._from, to_ns)):
            held = min(to_ns, self._to[i]) - max(from_ns, self._from[i])
            if held > 0:
                shares[self._holder[i]] = shares.get(self._holder[i], 0) + held
        return shares


def equal_split(from_ns: int, to_ns: int, thread: int, spans: Iterable[Span]) -> dict[int | None, int]:
    """Splits a wait among the calls whose bodies ran on other threads meanwhile.

    Args:
      from_ns: Begin of the wait.
      to_ns: Its end.
      thread: The thread that waited; its own calls are never blamed.
      spans: Calls that may overlap.

    Returns:
      Nanoseconds by call id; None stands for time in which no body ran.
    """
    active = [s for s in spans if s.thread != thread and s.start_ns < to_ns and s.end_ns > from_ns]
    edges = sorted({from_ns, to_ns, *(e for s in active for e in s[:2] if from_ns < e < to_ns)})
    shares: dict[int | None, float] = {}
    for left, right in pairwise(edges):
        running: list[int | None] = [s.call for s in active if s.start_ns <= left and s.end_ns >= right]
        for call in running or [None]:
            shares[call] = shares.get(call, 0.0) + (right - left) / max(1, len(running))
    return {call: round(ns) for call, ns in shares.items()}


def outside(name: str | None) -> str:
    """Label of a thread that held the GIL in no body; a thread of ours is named as ours."""
    if name is None:
        return OUTSIDE
    if name.startswith(OURS):
        return name
    return f"{OUTSIDE}: {name}"


def thread_name(label: str) -> str:
    """The thread that a label of `outside` names; another label as it is."""
    return label.removeprefix(f"{OUTSIDE}: ")


def by_call(body: str, call: int) -> str:
    """Label of one call: `augment (#17)`. `call_of` reads it back."""
    return f"{body} (#{call})"


def call_of(label: str) -> tuple[str, int | None]:
    """Body and call id of a label; the id is None for labels that name no call."""
    body, mark, number = label.rpartition(" (#")
    if mark and number.endswith(")") and number[:-1].isdigit():
        return body, int(number[:-1])
    return label, None


def recorded_blame(
    calls: Mapping[int, int], others: Mapping[str, int], body: Callable[[int], str], most: int = MOST
) -> tuple[tuple[str, int], ...]:
    """The blame of a call as a recording keeps it, the largest first.

    Args:
      calls: Nanoseconds by the call that ran meanwhile.
      others: Nanoseconds by label of everything else.
      body: Name of a call's body.
      most: Calls that are named one by one; the others are added up by body.
    """
    labelled = dict(others)
    ranked = sorted(calls.items(), key=lambda item: -item[1])
    for rank, (call, ns) in enumerate(ranked):
        label = by_call(body(call), call) if rank < most else body(call)
        labelled[label] = labelled.get(label, 0) + ns
    return tuple(sorted(((k, v) for k, v in labelled.items() if v > 0), key=lambda item: (-item[1], item[0])))
