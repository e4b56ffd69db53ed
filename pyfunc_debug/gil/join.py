"""Brings samples and calls together: what each call did with the GIL.

Samples and calls arrive in batches and in no fixed order: a call may be known before the probe was drained, and a
holder before its call ended. What cannot be answered yet stays until it can, for a limited time. A call that no sample
fits gets no answer at all: not measured is not 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Protocol

from pyfunc_debug.gil import blame
from pyfunc_debug.gil.native_join import PATIENCE_NS, NativeJoin
from pyfunc_debug.gil.samples import Answer, CallTimes, Grade, OpSpan, Samples
from pyfunc_debug.profiler import xplane
from pyfunc_debug.records import Gil

Row = tuple[int, Gil]
"""Call id, and what it did with the GIL."""


class Join(Protocol):
    """Answers for calls, as samples and calls come in."""

    matched: int
    unmatched: int

    def feed(self, samples: Samples, calls: Iterable[CallTimes], *, final: bool = False) -> list[Answer]:
        """Takes a batch. Returns what is known now; with `final`, everything that can still be known."""


def join(samples: Samples, calls: Iterable[CallTimes], body: Callable[[int], str] = lambda call: "call") -> list[Row]:
    """What each call did with the GIL, from one drain that covers them all.

    Args:
      samples: From `Probe.drain()`, after the calls ended.
      calls: Call id, thread ident, start_ns and end_ns of each.
      body: Name of a call's body, for the blame.

    Returns:
      One row for each call that was measured.
    """
    return as_rows(open_join(samples.grade, body).feed(samples, calls, final=True))


def as_rows(answers: Iterable[Answer]) -> list[Row]:
    """Answers as records."""
    return [(answer[0], Gil(*answer[1:])) for answer in answers]


def open_join(grade: Grade, body: Callable[[int], str]) -> Join:
    """The join for samples of a grade."""
    from pyfunc_debug.gil.bound import BoundJoin

    kinds: dict[Grade, Callable[[], Join]] = {
        "native": lambda: NativeJoin(body),
        "op-start": lambda: OpStartJoin(body),
        "bound": BoundJoin,
        "none": NoJoin,
    }
    return kinds[grade]()


class NoJoin:
    """For Pythons without a GIL: nobody waits for it, and nothing is reported."""

    matched = unmatched = 0

    def feed(self, samples: Samples, calls: Iterable[CallTimes], *, final: bool = False) -> list[Answer]:
        """Nothing."""
        return []


class OpStartJoin:
    """Joins calls with the profiler's spans of ops: wait = entry - op begin - a baseline.

    The baseline stands for what TensorFlow does between the op's begin and the body besides waiting (converting
    arguments). It is one for all nodes and at most 50 us: a baseline for each node would swallow the waits of nodes
    with few calls.
    """

    MOST_BASELINE_NS = 50_000
    SLACK_NS = 50_000

    def __init__(self, body: Callable[[int], str]) -> None:
        self.matched = 0
        self.unmatched = 0
        self._body = body
        self._calls: list[CallTimes] = []
        self._ops: dict[int, list[OpSpan]] = {}  # by the profiler's line
        self._delays: list[int] = []  # entry - op begin
        self._spans: list[blame.Span] = []
        self._names: dict[int, str] = {}

    @property
    def baseline_ns(self) -> int:
        """What is taken off each wait: the tenth percentile of all delays, capped."""
        if not self._delays:
            return 0
        return min(self.MOST_BASELINE_NS, sorted(self._delays)[len(self._delays) // 10])

    def feed(self, samples: Samples, calls: Iterable[CallTimes], *, final: bool = False) -> list[Answer]:
        """See `Join.feed`."""
        self._names.update(samples.names)
        fresh = list(calls)
        self._calls.extend(fresh)
        self._spans.extend(blame.Span(start, end, thread, call) for call, thread, start, end in fresh)
        for op in samples.ops:
            self._ops.setdefault(op.line, []).append(op)
        for ops in self._ops.values():
            ops.sort(key=lambda op: op.begin_ns)
        done = [c for c in self._calls if final or c[3] <= samples.until_ns]
        self._calls = [c for c in self._calls if not final and c[3] > samples.until_ns]
        found: list[tuple[CallTimes, OpSpan]] = []
        # Inner calls of a thread begin later: they choose first, and an op has one call.
        for call in sorted(done, key=lambda c: -c[2]):
            ops = self._ops.get(xplane.line_of(call[1]), [])
            fits = [i for i, op in enumerate(ops) if op.begin_ns <= call[2] and op.end_ns >= call[3] - self.SLACK_NS]
            if fits:
                found.append((call, ops.pop(fits[-1])))
        self.matched += len(found)
        self.unmatched += len(done) - len(found)
        self._delays = (self._delays + [call[2] - op.begin_ns for call, op in found])[-10_000:]
        rows = self._tell(found)
        horizon = samples.until_ns - PATIENCE_NS
        self._ops = {t: kept for t, ops in self._ops.items() if (kept := [o for o in ops if o.end_ns > horizon])}
        oldest = min((c[2] for c in self._calls), default=samples.until_ns) - PATIENCE_NS
        self._spans = [s for s in self._spans if s.end_ns > oldest]
        return rows

    def _tell(self, found: list[tuple[CallTimes, OpSpan]]) -> list[Answer]:
        baseline = self.baseline_ns
        spans = sorted(self._spans)
        longest = max((s.end_ns - s.start_ns for s in spans), default=0)
        starts = [s.start_ns for s in spans]
        rows: list[Answer] = []
        for (call, thread, start, _), op in found:
            wait = max(0, start - op.begin_ns - baseline)
            near = spans[bisect_left(starts, op.begin_ns - longest) : bisect_left(starts, start)]
            shares = blame.equal_split(op.begin_ns, op.begin_ns + wait, thread, near) if wait else {}
            others = {blame.OUTSIDE: shares.pop(None)} if None in shares else {}
            answer = blame.recorded_blame({c: ns for c, ns in shares.items() if c is not None}, others, self._body)
            rows.append((call, "op-start", wait, None, None, None, answer))
        return rows
