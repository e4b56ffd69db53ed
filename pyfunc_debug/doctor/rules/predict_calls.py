"""`model.predict` for one batch at a time, in a loop: what it does around the graph takes most of the time."""

from __future__ import annotations

import ast
import itertools
import json
import statistics
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.graphs.predict_graphs import PREDICTS, called_itself
from pyfunc_debug.records import Finding

NAMES = ("predict-calls",)
_LEAST = 20
"""Calls that are worth it."""
_GAP_NS = 10e6
_TIMES = 5
"""So much longer than a run of the graph has to be what passes between two of them."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    numbers = [one.id for one in facts.functions.values() if PREDICTS in one.name and one.origin != "user"]
    for file, line in dict.fromkeys(place for number in numbers for place in pastes.run_sites(facts, number)):
        call = pastes.call_at(facts, file, line, "predict")
        if call is None or not isinstance(call.func, ast.Attribute) or not _in_loop(facts, file, call):
            continue
        times = _times(facts, numbers, file, line)
        if times is None:
            continue
        count, gap, ran = times
        fix = called_itself(facts, file, call, one_batch=True)
        model = pastes.text_of(facts, file, call.func.value)
        if not fix:
            continue
        yield Finding(
            "predict-calls", "note", None, (),
            f"{model}.predict ran {count:,} times for one batch each. Its graph took {ran / 1e6:,.1f} ms, and "
            f"{gap / 1e6:,.0f} ms passed until it ran again: predict makes a dataset and an iterator in each call. "
            f"{model}(x) computes the same without these; one predict for all of them at once is faster still",
            fix, file, line, confidence="likely",
        )  # fmt: skip


def _in_loop(facts: Facts, file: str, call: ast.Call) -> bool:
    """Whether a call stands in a loop, or in a function, which a loop may call."""
    around = list(pastes.source(facts, file).around(_same(facts, file, call)))
    return any(isinstance(one, (ast.For, ast.While, ast.FunctionDef, ast.ListComp)) for one in around)


def _same(facts: Facts, file: str, call: ast.Call) -> ast.AST:
    """A call of the recorded tree in that of the source."""
    every = pastes.walk(pastes.source(facts, file).tree, ast.Call)
    return next(one for one in every if (one.lineno, one.col_offset) == (call.lineno, call.col_offset))


def _times(facts: Facts, numbers: list[int], file: str, line: int) -> tuple[int, float, float] | None:
    """How many runs, and what a run took and what passed between two: where each was a call of its own."""
    rows = facts.reader.rows(
        "SELECT r.start_ns, r.duration_ns, s.frames FROM run r JOIN stack s ON s.id = r.site WHERE r.kind = 'forward' "
        f"AND r.function IN ({', '.join(map(str, numbers))}) ORDER BY r.start_ns"
    )
    runs = [(start, lasted) for start, lasted, frames in rows if lasted and json.loads(frames)[-1][:2] == [file, line]]
    if len(runs) < _LEAST:
        return None
    gaps = sorted(later[0] - one[0] - one[1] for one, later in itertools.pairwise(runs))
    ran = statistics.median(lasted for _, lasted in runs)
    least = gaps[len(gaps) // 4]  # of two batches a call, half are short
    gap = statistics.median(gaps)
    return (len(runs), gap, ran) if least >= _GAP_NS and gap > _TIMES * ran else None
