"""A cache behind a shuffle: it keeps the order of the first pass, and each later one gets the same."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.cached_chains import before, cache_at, is_held_out, method, reordered
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding

NAMES = ("cached-shuffle",)
_BATCHES = {"batch", "padded_batch", "prefetch"}
_KEEP = {*_BATCHES, "map"}
_BETWEEN = ("Batch", "Map", "Model", "Options", "Padded", "Parallel", "Prefetch")
"""Stages that keep all elements. Behind a `take` the cache is there to keep which they are."""
_KERAS = 2
"""Iterators that Keras makes of a dataset for each epoch."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    told: set[tuple[str, int]] = set()
    for loop in facts.meta.get("inputs") or []:
        again, times = _repeats(loop), max(1, loop["iterators"] // (1 if loop["taken"] else _KERAS))
        passes = f"all {times * again:,} passes" if again > 0 else "all passes of .repeat()"
        if times * again in (0, 1) or not loop["site"] or not _keeps_an_order(loop):
            continue
        file = str(loop["site"][0])
        own = pastes.source(facts, file)
        found = _cached(own)
        if len(found) != 1 or is_held_out(own, found[0][0]) or (file, found[0][0].lineno) in told:
            continue
        cache, calls = found[0]
        line, order = cache.end_lineno or cache.lineno, _order(calls)
        told.add((file, cache.lineno))
        yield Finding(
            NAMES[0], "warning", None, (),
            f".cache() keeps the order that .shuffle() gave in the first pass: {passes} over this dataset "
            f"had the elements in one order. Behind the cache it shuffles each of them{_of_file(calls)}",
            pastes.written(reordered(own, file, calls, order)) if order is not None else
            "dataset.cache().shuffle(...).batch(...)  # what costs time before the cache, the shuffle behind it",
            file, line, evidence=(f"read at {facts.source_line(file, int(loop['site'][1]))}",), confidence="likely",
        )  # fmt: skip


def _repeats(loop: dict[str, Any]) -> int:
    """How often one iterator goes over what the cache holds; less than 0 for as often as it is asked."""
    counts = [one.get("repeats", 1) for one in loop["stages"][: cache_at(loop["stages"])]]
    return -1 if min(counts, default=1) < 0 else math.prod(counts)


def _of_file(calls: list[ast.Call]) -> str:
    """What has to be done first where the cache is a file that holds batches, and is to hold elements."""
    moved = bool(calls[-1].args or calls[-1].keywords) and any(method(one) != "map" for one in calls[1:-1])
    return ". Remove the file of the cache first: it holds batches" if moved else ""


def _keeps_an_order(loop: dict[str, Any]) -> bool:
    """Whether a loop takes its elements from a cache behind a shuffle, and shuffles them no more."""
    stages = loop["stages"]  # the last first
    cache = cache_at(stages)
    shuffle = next((at for at, one in enumerate(stages) if one["kind"].startswith("Shuffle")), None)
    if cache is None or shuffle is None or shuffle < cache or not stages[shuffle].get("reshuffles"):
        return False
    return all(one["kind"].startswith(_BETWEEN) for one in stages[cache + 1 : shuffle])


def _cached(own: Source) -> list[tuple[ast.Call, list[ast.Call]]]:
    """The calls of `cache` in a file that stand behind a `shuffle`, and the calls from that on, in their order."""
    found = []
    for one in pastes.walk(own.tree, ast.Call):
        if method(one) == "cache":
            calls = list(before(own, one))
            places = [place for place, call in enumerate(calls) if method(call) == "shuffle"]
            behind = calls[places[-1] :] if places else []
            if behind and all(method(call) in _KEEP for call in behind[1:-1]):
                found.append((one, behind))
    return found


def _order(calls: list[ast.Call]) -> list[ast.Call] | None:
    """The same calls with the shuffle behind the cache and before what batches; None where a batch is changed."""
    shuffle, *between, cache = calls
    first = next((place for place, one in enumerate(between) if method(one) in _BATCHES), len(between))
    behind = between[first:]
    return [*between[:first], cache, shuffle, *behind] if all(method(one) in _BATCHES for one in behind) else None
