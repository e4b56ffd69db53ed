"""Stops on the axis of time: what was held when, and idle stretches that are folded so that all else can be seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import Array, Columns
from pyfunc_debug.analysis.facts import ProgramFacts

Json = dict[str, Any]
Folds = list[list[int]]
"""Stretches [start, end] in ns since the origin that the axis leaves out, in order."""

_LEAST_NS = 50_000_000
"""A shorter stop is drawn as it is."""
_MOST_SHOWN = 2000


def stops(columns: Columns) -> list[Json]:
    """Stretches in which calls were held, in ns since the origin; `end_ns` is None while one is.

    A call that queued behind another stop has `queued` until it got its turn.
    """
    result: list[Json] = []
    for stop in columns.stops[-_MOST_SHOWN:]:
        index = columns.find(stop.call)
        thread = None if index is None else int(columns.thread[index])
        for asked, got, until in stop.spans:
            end = until if got is None else got
            parts = [(asked, end, True)] if got is None or got - asked > 1_000_000 else []
            parts += [] if got is None else [(got, until, False)]
            result += [
                {"call": stop.call, "thread": thread, "start_ns": begin - columns.origin_ns,
                 "end_ns": None if finish is None else finish - columns.origin_ns, "queued": queued, "why": stop.why}
                for begin, finish, queued in parts
            ]  # fmt: skip
    return result[-_MOST_SHOWN:]


def folds(columns: Columns, facts: ProgramFacts) -> Folds:
    """Where nothing but stopped and queued calls was going on."""
    spans = sorted(
        (asked - columns.origin_ns, until - columns.origin_ns)
        for stop in columns.stops
        for asked, _, until in stop.spans
        if until is not None
    )
    held = {stop.call for stop in columns.stops}
    found: Folds = []
    for start, end in _merged(spans):
        if end - start >= _LEAST_NS:
            busy = _busy(columns, facts, start, end, held)
            edges = [start, *(edge for span in busy for edge in span), end]
            found += [[low, high] for low, high in zip(edges[::2], edges[1::2]) if high - low >= _LEAST_NS]
    return found


def _busy(columns: Columns, facts: ProgramFacts, start: int, end: int, held: set[int]) -> list[tuple[int, int]]:
    """When something else ran between two times."""
    places = columns.between(start, end)
    places = places[~np.isin(columns.id[places], list(held)) & (columns.end[places] >= 0)]
    spans = list(zip(columns.begin[places].tolist(), columns.end[places].tolist()))
    for trace in facts.traces.values():
        begin = trace.start_ns - columns.origin_ns
        if begin < end and begin + trace.duration_ns > start:
            spans.append((begin, begin + trace.duration_ns))
    inside = [(max(low, start), min(high, end)) for low, high in spans if low < end and high > start]
    return [(low, high) for low, high in _merged(sorted(inside))]


def _merged(spans: list[tuple[int, int]]) -> list[list[int]]:
    result: list[list[int]] = []
    for low, high in spans:
        if result and low <= result[-1][1]:
            result[-1][1] = max(result[-1][1], high)
        else:
            result.append([low, high])
    return result


def folded(times: Array, folds: Folds) -> Array:
    """Times on the folded axis: what it leaves out before each is taken off."""
    result = np.asarray(times, np.float64)
    away = np.zeros_like(result)
    for start, end in folds:
        away += np.clip(result - start, 0, end - start)
    return result - away
