"""A shuffle behind the batch: it changes the order of batches, and each has the same rows in every epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.cached_chains import before, is_held_out, method, reordered
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("batched-shuffle",)
_BEHIND = ("Map", "Model", "Options", "ParallelMap", "Prefetch", "Repeat")
_BEFORE = ("Map", "ParallelMap", "Cache")
_KERAS = 2
"""Iterators that Keras makes of a dataset for each epoch."""
_BATCHES = ("batch", "padded_batch")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    told: set[tuple[str, int]] = set()
    for loop in facts.meta.get("inputs") or []:
        passes = loop["iterators"] // (1 if loop["taken"] else _KERAS)
        size = _batch(loop["stages"]) if passes > 1 and loop["site"] else None
        if size is None:
            continue
        file = str(loop["site"][0])
        own = pastes.source(facts, file)
        found = [one for one in pastes.walk(own.tree, ast.Call) if method(one) == "shuffle" and _calls(own, one)]
        if len(found) != 1 or is_held_out(own, found[0]) or (file, found[0].lineno) in told:
            continue
        calls, line = _calls(own, found[0]), found[0].end_lineno or found[0].lineno
        told.add((file, found[0].lineno))
        yield Finding(
            NAMES[0], "note", None, (),
            f"this shuffle stands behind the batch: it mixes batches, and each of them has the same {size:,} rows, "
            f"next to each other in the data, in all {passes:,} passes. In front of the batch it mixes rows",
            pastes.written(reordered(own, file, calls, [calls[-1], *calls[:-1]])),
            file, line, evidence=(f"read at {facts.source_line(file, int(loop['site'][1]))}",),
        )  # fmt: skip


def _batch(stages: list[dict[str, Any]]) -> int | None:
    """The size of a batch of rows of arrays, behind which the only shuffle of a dataset stands; None for others."""
    kinds = [one["kind"] for one in stages]  # the last first
    if sum(one.startswith("Shuffle") for one in kinds) != 1 or kinds[-1] != "TensorSlice":
        return None
    shuffle = next(place for place, one in enumerate(kinds) if one.startswith("Shuffle"))
    batches = [place for place, one in enumerate(kinds) if one.endswith("Batch")]
    if len(batches) != 1 or batches[0] < shuffle or not stages[batches[0]].get("batch"):
        return None
    plain = all(one in _BEHIND for one in (*kinds[:shuffle], *kinds[shuffle + 1 : batches[0]]))
    rows = all(one in _BEFORE for one in kinds[batches[0] + 1 : -1])
    return int(stages[batches[0]]["batch"]) if plain and rows else None


def _calls(own: Any, shuffle: ast.Call) -> list[ast.Call]:
    """The calls from the batch to a shuffle behind it; none where it stands behind no batch."""
    calls = before(own, shuffle)
    places = [place for place, one in enumerate(calls) if method(one) in _BATCHES]
    return calls[places[-1] :] if places else []
