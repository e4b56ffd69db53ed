"""Bodies of a `map` that only wait, for a file, a server or a sleep, and whose calls run one after the other.

A thread that waits has let the GIL go, so that calls wait side by side; `map` keeps the elements' order
(`deterministic`, tensorflow/python/data/ops/map_op.py). Nothing is said of a body that touches what calls may share.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.analysis.stages import StageAnswer
from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.shared_objects import are_apart
from pyfunc_debug.doctor.datasets import pipelines
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules import input_bound
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import Finding, Node

NAMES = ("parallel-calls",)
_LEAST_NS, _OF_RECORDING, _OF_SPAN = 500_000_000, 0.05, 0.9
"""The least time in the body, its share of the recording, and of the time from its first call to its last: beside a
loop that is slower than its input a body rests between two calls."""
_HOLDS, _COMPUTES, _GAIN = 0.3, 0.4, 1.5
"""The largest shares of its time that hold the GIL and that compute, the latter as other processes leave cores for it;
and what several calls have to bring."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body, where no finding of input-bound names a loop that waits for it."""
    found = [one for one in facts.stages if _waits(facts, one)] if _may_wait(facts) else []
    told = {number for loop in input_bound.bound(facts) for number in loop.nodes} if found else set()
    for stage in found:
        node = stage.contention.node
        text = _parallel(facts, stage) if node.id not in told else ""
        if text:
            yield _finding(facts, stage, text)


def _may_wait(facts: Facts) -> bool:
    """Whether any body took so long: most recordings need no more than this question."""
    return any(one.body >= _LEAST_NS for one in facts.waits.values())


def _waits(facts: Facts, stage: StageAnswer) -> bool:
    one = stage.contention
    if one.node.origin != "user" or stage.setting is None or stage.setting.parallel != 1 or one.grade != "native":
        return False
    if one.body_ns < max(_LEAST_NS, _OF_RECORDING * (facts.wall_ns or 0)) or (one.held_share or 0.0) > _HOLDS:
        return False
    cpu, known, first, last = facts.reader.rows(
        "SELECT total(cpu_ns), count(cpu_ns), min(start_ns), max(end_ns) FROM call WHERE node = ?", (one.node.id,)
    )[0]
    if known < one.calls or facts.least_ns(cpu) > _COMPUTES * one.body_ns:
        return False
    return one.body_ns >= _OF_SPAN * (last - first) and _gain(stage) >= _GAIN


def _gain(stage: StageAnswer) -> float:
    return max((one.speedup for one in stage.ceilings), default=1.0)


def _parallel(facts: Facts, stage: StageAnswer) -> str:
    """The line of the map with parallel calls; nothing where calls may share something, or the map is another's."""
    node = stage.contention.node
    found = pipelines.map_of(facts, node)
    if found is None or not _calls(found[1].args[0], stage, node):
        return ""
    tf = pastes.module(facts, found[0], "tensorflow")
    if tf is None or not are_apart(facts, node):
        return ""
    return pastes.written(pipelines.with_calls(facts, node, f"{tf}.data.AUTOTUNE"))


def _calls(given: ast.expr, stage: StageAnswer, node: Node) -> bool:
    """Whether a map's function is the stage's: on its line may be a filter's, too."""
    if isinstance(given, ast.Lambda):
        return node.body in {ast.unparse(one) for one in ast.walk(given) if isinstance(one, (ast.Name, ast.Attribute))}
    return ast.unparse(given) == stage.function


def _finding(facts: Facts, stage: StageAnswer, text: str) -> Finding:
    one, site = stage.contention, facts.site(stage.contention.node.id)
    free = 1.0 - (one.held_share or 0.0)
    return Finding(
        NAMES[0], "warning", one.node.id, (),
        f"the {one.calls:,} calls of {one.node.body} ran one after the other for {one.body_ns / 1e9:.1f} s, "
        f"{percent(free)} of it without the GIL. Side by side they bring at most x{_gain(stage):.1f}",
        text, site.file if site else one.node.file, site.line if site else one.node.line,
        evidence=(f"{one.body_ns / one.calls / 1e6:.2f} ms a call; {stage.present}, {stage.pool} threads in the pool",),
    )  # fmt: skip
