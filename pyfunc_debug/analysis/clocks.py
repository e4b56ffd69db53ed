"""The clocks of a job's machines: how far apart they are, from what happened in two processes at once.

Processes of one machine read one monotonic clock. Of two machines, graph runs that wait for one another bound the
offset: a run with an all-reduce ends in no process before it has begun in all, so each pair of runs says that one
machine's clock is ahead by no less than `begin there - end here` and by no more than `end there - begin here`.
Clocks also drift: a bound from another time is widened by `MOST_DRIFT` times the time between. What nothing bounds is
not known. Wall clocks say nothing here: they may be wrong by any amount.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from pyfunc_debug.analysis.steps import Step, first_runs
from pyfunc_debug.events import Notice
from pyfunc_debug.pfrec import Reader

MOST_DRIFT = 1e-3
"""Two clocks that are kept by NTP run apart by at most 1 ms a second: 500 ppm each (adjtimex(2))."""
_SET_NS = 50_000_000
"""A wall clock that moved against the monotonic one by this much more than drift explains was set."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ProcessClock:
    """What a recording says of its machine's clocks.

    Attributes:
      machine: Equal for processes on one machine.
      certain: Whether those of one machine are known to read one monotonic clock.
      host: The machine's name.
      span: When the recording began and ended, monotonic ns.
      anchors: Monotonic ns, wall clock ns, and how far apart the two readings may be, a row each.
      steps: Begins and ends (-1: never) of runs that wait for the other processes, from the first on, and how many
        devices take part.
    """

    machine: str
    certain: bool
    host: str
    span: tuple[int, int]
    anchors: Array
    steps: dict[Step, tuple[int, Array]]


@dataclass(frozen=True)
class Offset:
    """How far another machine's clock is ahead, at one time: by `ns`, give or take `error_ns`."""

    ns: int
    error_ns: int


@dataclass(frozen=True)
class _Bounds:
    """Times by the one clock, and by how much the other is ahead then: at least `low`, at most `high`."""

    at: Array
    low: Array
    high: Array
    runs: int

    def offset(self, time_ns: int) -> Offset:
        slack = np.ceil(MOST_DRIFT * np.abs(self.at - time_ns)).astype(np.int64)
        low, high = int((self.low - slack).max()), int((self.high + slack).min())
        return Offset((low + high) // 2, (high - low + 1) // 2)

    @property
    def possible(self) -> bool:
        """Whether some pair of clocks meets all of them."""
        highest, lowest = self.low.astype(np.float64), self.high.astype(np.float64)
        slack = MOST_DRIFT * (self.at - self.at[0])
        for way in (slice(None), slice(None, None, -1)):  # from the past, then from the future
            ahead = slack[way] if way.step is None else -slack[way]
            highest[way] = np.maximum.accumulate(highest[way] + ahead) - ahead
            lowest[way] = np.minimum.accumulate(lowest[way] - ahead) + ahead
        return bool((highest <= lowest).all())


class Clocks:
    """The machines of a job, compared with that of its first process.

    Args:
      processes: What each recording says.
    """

    def __init__(self, processes: Sequence[ProcessClock]) -> None:
        self._processes = processes
        self._bounds: dict[str, _Bounds | str] = {}
        here = self._of(processes[0].machine)
        taking_part = Counter(step for one in processes for step in one.steps)
        for machine in dict.fromkeys(one.machine for one in processes):
            if machine != here[0].machine:
                self._bounds[machine] = _bounds(here, self._of(machine), taking_part)

    def _of(self, machine: str) -> list[ProcessClock]:
        return [one for one in self._processes if one.machine == machine]

    def offset(self, number: int, time_ns: int) -> Offset | None:
        """How far the clock of a process's machine is ahead of the first process's; None if that is not known.

        Args:
          number: The process, in the order in which they were given.
          time_ns: When, by its own monotonic clock.
        """
        own, first = self._processes[number], self._processes[0]
        if own.machine == first.machine:
            return Offset(0, 0) if own is first or (own.certain and first.certain) else None
        bounds = self._bounds[own.machine]
        if isinstance(bounds, str):
            return None
        found = bounds.offset(int(bounds.at[0]))
        for _ in range(3):  # bounds are at times of the first machine, where the offset itself leads
            found = bounds.offset(time_ns - found.ns)
        return Offset(found.ns, found.error_ns + int(np.ceil(2 * MOST_DRIFT * found.error_ns)))

    def wall_ns(self, number: int, time_ns: int) -> int | None:
        """A time of a process by the wall clock of the first one's machine, or by its own where no more is known.

        Args:
          number: The process.
          time_ns: When, by its own monotonic clock.
        """
        offset = self.offset(number, time_ns)
        clock = self._processes[number if offset is None else 0]
        if not len(clock.anchors):
            return None
        monotonic, wall, _ = clock.anchors[0]
        return int(wall + time_ns - (0 if offset is None else offset.ns) - monotonic)

    def remarks(self) -> list[str]:
        """What to know of the machines' clocks, in words; nothing for a job on one machine."""
        said = []
        host = self._processes[0].host
        for machine, bounds in self._bounds.items():
            number = next(number for number, one in enumerate(self._processes) if one.machine == machine)
            other = self._processes[number]
            if isinstance(bounds, str):
                said.append(f"How far the clocks of {other.host} and {host} are apart is not known: {bounds}")
                continue
            begin, end = (self.offset(number, time_ns) for time_ns in other.span)
            assert begin is not None
            assert end is not None
            worst = max(begin.error_ns, end.error_ns)
            said.append(
                f"The times of {other.host} are moved to {host}'s clock: right to {_ms(worst)} (at the recordings' ends"
                f"; from {bounds.runs:,} graph runs that waited for one another)"
            )
        for machine in dict.fromkeys(one.machine for one in self._processes):
            jumps = [jump for one in self._of(machine) if (jump := _jump(one.anchors))]
            if jumps:
                most = max(jumps, key=abs)
                said.append(
                    f"The wall clock of {self._of(machine)[0].host} was set "
                    f"{'forward' if most > 0 else 'back'} by {_ms(abs(most))} during the recording"
                )
        return said


def process_clock(reader: Reader, steps: bool = True) -> ProcessClock:
    """What a recording says of its machine's clocks.

    Args:
      reader: The recording.
      steps: Whether to read the runs that waited for other processes: machines cannot be compared without.
    """
    meta = reader.meta
    process, clock = meta.get("process") or {}, meta.get("clock") or {}
    host = str(meta.get("host") or "?")
    boot = process.get("boot")
    machine = f"{boot} {process.get('clocks', '')}" if boot else host
    rows = [row for row in meta.get("anchors") or () if len(row) == 3 and all(map(_is_time, row))]
    if not rows and _is_time(clock.get("monotonic_ns")) and _is_time(clock.get("wall_ns")):
        rows = [[clock["monotonic_ns"], clock["wall_ns"], 0]]
    begin = int(clock.get("monotonic_ns") or 0)
    end = int(meta.get("end_ns") or (rows[-1][0] if rows else begin))
    anchors = np.array(rows, np.int64).reshape(-1, 3)
    return ProcessClock(machine, bool(boot), host, (begin, max(begin, end)), anchors, _steps(reader) if steps else {})


def _steps(reader: Reader) -> dict[Step, tuple[int, Array]]:
    """Runs that wait for other processes, where all runs since the function's first graph trace are there."""
    groups: dict[int, int] = {}
    for (text,) in reader.rows("SELECT facts FROM notice WHERE rule = ?", (Notice.COLLECTIVE.value,)):
        facts = json.loads(text)
        if isinstance(facts.get("trace"), int) and isinstance(facts.get("group"), int):
            groups[facts["trace"]] = facts["group"]
    found: dict[Step, tuple[int, Array]] = {}
    for step, first in first_runs(reader, groups).items() if groups else ():
        sizes = {groups[trace] for trace in first.traces}
        if len(sizes) == 1:
            found[step] = sizes.pop(), np.array([run[1:] for run in first.runs], np.int64)
    return found


def _bounds(
    here: Sequence[ProcessClock], there: Sequence[ProcessClock], taking_part: Mapping[Step, int]
) -> _Bounds | str:
    """By how much one machine's clock is ahead of another's; a reason where that is not known."""
    at, low, high = [], [], []
    runs = 0
    for one, other in product(here, there):
        for step in one.steps.keys() & other.steps.keys():
            (size, mine), (other_size, theirs) = one.steps[step], other.steps[step]
            if size != other_size or size % taking_part[step]:  # they may belong to different groups
                continue
            count = min(len(mine), len(theirs))
            (begin, end), (other_begin, other_end) = mine[:count].T, theirs[:count].T
            ended, other_ended = end >= 0, other_end >= 0
            runs += count
            at += [end[ended], begin[other_ended]]
            low += [(other_begin - end)[ended], np.full(other_ended.sum(), -_FAR)]
            high += [np.full(ended.sum(), _FAR), (other_end - begin)[other_ended]]
    if not runs:
        return "no graph run in both waited for the other"
    times, lows, highs = (np.concatenate(parts) for parts in (at, low, high))
    order = np.argsort(times, kind="stable")
    bounds = _Bounds(times[order], lows[order], highs[order], runs)
    if lows.max(initial=-_FAR) == -_FAR or highs.min(initial=_FAR) == _FAR:
        return "graph runs bound it on one side only"
    return bounds if bounds.possible else "what the graph runs say contradicts itself, as when a clock was set"


_FAR = 1 << 61
"""No bound."""


def _jump(anchors: Array) -> int:
    """By how much a wall clock was set during a recording; 0 for one that only drifted."""
    if len(anchors) < 2:
        return 0
    monotonic, wall, apart = np.diff(anchors[:, 0]), np.diff(anchors[:, 1]), anchors[1:, 2] + anchors[:-1, 2]
    moved = wall - monotonic
    sure = np.abs(moved) - apart - MOST_DRIFT * monotonic > _SET_NS
    return int(moved[sure].sum())


def make_clocks(first: Sequence[ProcessClock], opened: Iterable[Reader]) -> Clocks:
    """Compares the clocks of a job's machines.

    Args:
      first: What the recordings say without their runs.
      opened: The recordings, one at a time; runs are read only where there are several machines.
    """
    several = len({one.machine for one in first}) > 1
    return Clocks([process_clock(reader) for reader in opened] if several else first)


def _is_time(number: object) -> bool:
    return isinstance(number, int) and 0 <= number < 1 << 62


def _ms(ns: float) -> str:
    return f"{ns / 1e6:,.3g} ms" if ns < 1e9 else f"{ns / 1e9:,.4g} s"
