"""What the stored calls of each node come to, with what the GIL did to them: one pass over both tables.

A recording may hold millions of calls. SQLite groups them some at a time, so that what it sorts stays in its cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyfunc_debug.analysis.integers import chunks
from pyfunc_debug.pfrec import Reader


@dataclass(slots=True)
class Tally:
    """Stored calls of one node and kind.

    Attributes:
      count, errors, running, ended: How many there are.
      total_ns: How long those that ended took, with their time at stops.
      first, last: Numbers of calls.
      grade: How the GIL was measured.
      measured: How many of those that ended were, but for calls that were held at a stop; the sums below are of these.
      wait_ns, worst_ns: They waited before the body, in all and at most.
      body_ns: In the body.
      inside: Of that, with the GIL, without it, and waiting for it; None where it is not known.
    """

    count: int
    errors: int
    running: int
    ended: int
    total_ns: float
    first: int
    last: int
    grade: str
    measured: int
    wait_ns: int
    worst_ns: int
    body_ns: int
    inside: tuple[int | None, ...]

    def add(self, other: Tally) -> None:
        """Adds other calls of the same node and kind."""
        self.count += other.count
        self.errors += other.errors
        self.running += other.running
        self.ended += other.ended
        self.total_ns += other.total_ns
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.grade = max(self.grade, other.grade)
        self.measured += other.measured
        self.wait_ns += other.wait_ns
        self.worst_ns = max(self.worst_ns, other.worst_ns)
        self.body_ns += other.body_ns
        pairs = zip(self.inside, other.inside, strict=True)
        self.inside = tuple(one if more is None else more + (one or 0) for one, more in pairs)


_MEASURED = "wait_ns IS NOT NULL AND end_ns IS NOT NULL"
_SUMS = ("sum(wait_ns)", "max(wait_ns)", "sum(end_ns - start_ns)", "sum(held_ns)", "sum(released_ns)",
         "sum(reacquire_ns)")  # fmt: skip


def tallies(reader: Reader, held_at_stops: Mapping[int, float]) -> dict[tuple[int, str], Tally]:
    """Those of all nodes, by node and kind.

    Args:
      reader: The recording.
      held_at_stops: Calls that a person held: what the GIL did to them is left out.
    """
    stopped = ",".join(map(str, held_at_stops))
    sums = ", ".join(f"{one} FILTER (WHERE {_MEASURED})" for one in _SUMS)
    found: dict[tuple[int, str], Tally] = {}
    source = f"call NOT INDEXED LEFT JOIN gil ON gil.call = call.id AND gil.call NOT IN ({stopped})"
    for part in chunks(reader, source, "call.id"):
        for (
            node,
            kind,
            *counts,
            first,
            last,
            grade,
            measured,
            wait,
            worst,
            body,
            held,
            released,
            reacquire,
        ) in reader.rows(
            "SELECT node, kind, count(*), sum(status = 'error'), sum(status = 'running'), count(end_ns), "
            f"total(end_ns - start_ns), min(call.id), max(call.id), max(grade) FILTER (WHERE {_MEASURED}), "
            f"sum({_MEASURED}), {sums} FROM {part} GROUP BY node, kind"
        ):
            count, errors, running, ended, total = counts
            more = Tally(
                count, errors, running, ended, total, first, last, grade or "", measured, wait or 0, worst or 0,
                body or 0, (held, released, reacquire),
            )  # fmt: skip
            if (node, kind) in found:
                found[node, kind].add(more)
            else:
                found[node, kind] = more
    return found
