"""Training loops that wait for their input: for what share of their time, and what would help."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.analysis.inputs import Loop, loops_of
from pyfunc_debug.analysis.stages import StageAnswer
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import Finding

NAMES = ("input-bound",)
_SHARE = 0.4
_WAIT_NS = 200_000_000
_STEPS = 10
_REST_NS = 50_000
"""A loop that does less than this with an element is there for its input only."""
_BUSY = 0.95
"""From this share of the steps' time on, Python's work on the input sets the pace of a loop inside a graph."""
_GAIN = 1.15


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loop."""
    for loop in loops_of(facts.meta, facts.nodes.values(), facts.reader.rows, _may_be_bound(facts)):
        share = loop.wait_share or 0.0
        if loop.steps < _STEPS or loop.wait_ns < _WAIT_NS or loop.site is None:
            continue
        rest_ns = (loop.step_ns - loop.wait_ns) / loop.steps
        if share >= _BUSY if loop.at_most else (share >= _SHARE and rest_ns >= _REST_NS):
            yield _finding(facts, loop, share)


def _may_be_bound(facts: Facts) -> bool:
    """Whether bodies ran for so long that a loop inside a graph may have waited for them: else no calls are read."""
    if not facts.meta.get("inputs"):
        return False
    calls = facts.reader.rows("SELECT total(end_ns - start_ns) FROM call WHERE kind = 'forward'")[0][0]
    runs = facts.reader.rows("SELECT total(duration_ns) FROM run WHERE kind = 'forward'")[0][0]
    return bool(runs) and calls >= _BUSY * runs / 2  # waits before the bodies count too, and are not in this sum


def _finding(facts: Facts, loop: Loop, share: float) -> Finding:
    site = loop.site
    assert site is not None
    cures = sorted(_cures(facts, loop), key=lambda one: one.startswith("the body "))  # what can be pasted comes first
    if loop.at_most:
        where = facts.source_line(site.file, site.line)
        message = (
            f"Python worked on the input for {percent(share)} of the time of the {loop.steps:,} steps of the loop at "
            f"{where}: the input sets their pace, a faster model would not help"
        )
    else:
        message = f"{loop.sentence}: a faster input brings up to x{1 / (1 - share):.1f}"
    bodies = f"its pipeline calls {', '.join(loop.bodies)}" if loop.bodies else "its pipeline calls no Python"
    return Finding(
        "input-bound", "warning", None, (), message, cures[0], site.file, site.line,
        confidence="likely" if loop.at_most else "measured",
        evidence=(bodies, *(f"also: {one}" for one in cures[1:3])),
    )  # fmt: skip


def _cures(facts: Facts, loop: Loop) -> Iterator[str]:
    """What TensorFlow offers for this loop, with its numbers; the best first."""
    for stage in facts.stages:
        if stage.contention.node.body in loop.bodies:
            yield from _of_stage(facts, stage)
    if "Prefetch" not in loop.kinds and not loop.at_most:
        rest_ns = loop.step_ns - loop.wait_ns
        gain = loop.step_ns / max(loop.wait_ns, rest_ns, 1)
        yield (
            "dataset = dataset.prefetch(tf.data.AUTOTUNE)  # last: makes the next element while the step runs, at most "
            f"x{gain:.1f}"
        )
    if "Map" in loop.kinds and not loop.bodies:
        yield "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE)"
    yield "dataset = dataset.cache()  # after the slow stage, if it gives the same elements in each epoch"


def _of_stage(facts: Facts, stage: StageAnswer) -> Iterator[str]:
    best = max(stage.ceilings, key=lambda one: (round(one.speedup, 2), -one.calls), default=None)
    if best is not None and best.speedup >= _GAIN:
        yield f"dataset.map({stage.function}, num_parallel_calls={best.calls})  # at most x{best.speedup:.1f} over now"
    yield from stage.cures
