"""Time for which calls were held at stops. It is a person's, not the program's: no duration that is shown includes it.

Whoever reads times of calls takes it off with these functions, so that it is taken off once and everywhere.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

QUERY = "SELECT call, facts FROM notice WHERE rule IN ('stop', 'held') AND call IS NOT NULL"
"""Stops (`held` while one goes on) as `call` and `facts`; to be ordered by `id`."""

HELD_SQL = (
    "(SELECT call, sum(coalesce(json_extract(facts, '$.held_ns'), json_extract(facts, '$.end_ns') - "
    "json_extract(facts, '$.start_ns'))) AS ns FROM notice WHERE rule = 'stop' AND call IS NOT NULL GROUP BY call)"
)
"""The same as `held_ns`, as a table of SQL: `call`, `ns`."""

Span = tuple[int, int | None, int | None]
"""From when a call wanted its turn, over when it got that (None: it did not), to when it went on (None: it is held)."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A call that was held at a breakpoint, once.

    Attributes:
      call: Its number.
      why: What stopped it, in words.
      spans: When it was held.
      held_ns: How long in all; `spans` are the last hundred.
      interrupted: Whether somebody ended the call there.
    """

    call: int
    why: str
    spans: tuple[Span, ...]
    held_ns: int
    interrupted: bool

    @property
    def open(self) -> bool:
        """Whether it is held still, as far as the recording knows."""
        return self.spans[-1][2] is None


def stops_of(rows: Iterable[tuple[int, str]]) -> list[Stop]:
    """Stops from what `QUERY` gives, in the order in which they began."""
    found: dict[tuple[int, int], Stop] = {}
    for call, text in rows:
        facts = json.loads(text)
        start, end = facts["start_ns"], facts.get("end_ns")
        spans = tuple((asked, got, until) for asked, got, until in facts.get("spans") or [(start, start, end)])
        held = facts.get("held_ns", 0 if end is None else end - start)
        found[call, start] = Stop(call, facts.get("why", ""), spans, held, bool(facts.get("interrupted")))
    return list(found.values())


def held_ns(stops: Sequence[Stop]) -> dict[int, int]:
    """How long each call was held, by its number; of those that go on only."""
    held: dict[int, int] = defaultdict(int)
    for stop in stops:
        if not stop.open:
            held[stop.call] += stop.held_ns
    return held


def without(held_at_stop: float, held: Any, released: Any, reacquire: Any) -> tuple[Any, Any, Any]:
    """The parts of a call's time without that at stops, where its thread had let the GIL go.

    Args:
      held_at_stop: How long the call was held, in ns.
      held: With the GIL, in ns, of the whole call; None where it is not known.
      released: Without it and not wanting it, likewise.
      reacquire: Waiting to get it back, likewise.

    Returns:
      `held`, `released`, `reacquire` without it. What is longer than `released` (a prompt's own Python) is taken off
      `held`, then off `reacquire`.
    """
    rest, parts = held_at_stop, {"released": released, "held": held, "reacquire": reacquire}
    for name, ns in parts.items():
        if ns is not None and rest > 0:
            parts[name], rest = max(ns - rest, 0), rest - min(ns, rest)
    return parts["held"], parts["released"], parts["reacquire"]


def covered_ns(spans: Iterable[tuple[int, int]]) -> int:
    """How long at least one of some stretches of time lasts."""
    covered, reached = 0, None
    for start, end in sorted(spans):
        begin = start if reached is None else max(start, reached)
        covered += max(0, end - begin)
        reached = end if reached is None else max(reached, end)
    return covered
