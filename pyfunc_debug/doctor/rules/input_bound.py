"""Training loops that wait for their input: for what share of their time, and what would help."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from pyfunc_debug.analysis.inputs import AUTOTUNE, Loop, loops_of, settings
from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.bodies import one_file_lock, slow_lines
from pyfunc_debug.doctor.datasets import input_cures, sequential_maps, session_waits
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.refilled_buffers import refilled
from pyfunc_debug.doctor.rules import (
    endless_epochs,
    late_skips,
    needless_python,
    parallel_generators,
    recomputed,
    slow_reads,
)
from pyfunc_debug.events import Notice
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import Finding, Node

NAMES = ("input-bound",)
_SHARE = 0.4
_WAIT_NS = 200_000_000
_STEPS = 10
_REST_NS = 50_000
"""A loop that does less than this with an element is there for its input only."""
_BUSY = 0.95
"""From this share of the steps' time on, Python's work on the input sets the pace of a loop inside a graph."""
_NEARLY = 0.8
"""The same where a generator made its elements without a pause: the rest is the beginning and the end of each pass."""
_IDLE = 0.25
"""Share of a generator's time between its calls, at most, on a machine on which other processes take turns."""
_ONE_LINE = re.compile(r"Replace \S+:(\d+) by:\n([^\n]+)\n?")
_WAITED = 0.05
"""Share of the time of parallel calls that they waited for the GIL before they began, from which it counts."""
_WORKER = "(worker)"
"""The end of the names of a pool's threads, as Python makes them."""
_MOST = 0.5
"""Share of the time that a loop waited: what the slowest body took at least."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loop, and one a body that a session waits for."""
    told: set[tuple[str, str]] = set()
    found_loops = list(_bound(facts))
    endless = {one.file for one in endless_epochs.check(facts)} if found_loops else set()
    for loop, pace in found_loops:
        if loop.site is not None and loop.site.file in endless:
            continue  # its trouble is that it never ends
        if late_skips.waits_for_nothing(facts, loop):
            continue  # has a finding of its own
        slow = _slowest(facts, loop)
        if slow is not None and slow.id in slow_reads.told(facts):
            continue  # the same
        found = _finding(facts, loop, loop.wait_share or 0.0, pace)
        if (found.message, found.fix) not in told:  # training and validation in one line
            told.add((found.message, found.fix))
            yield found
    yield from session_waits.findings(facts, NAMES[0])


def bound(facts: Facts) -> Iterator[Loop]:
    """The loops that wait for their input."""
    return (loop for loop, _ in _bound(facts))


def _bound(facts: Facts) -> Iterator[tuple[Loop, sequential_maps.Pace | None]]:
    """The same, with the map that sets their pace, where that is how it is known."""
    for loop in loops_of(facts.meta, facts.nodes.values(), facts.reader.rows, _may_be_bound(facts)):
        share = loop.wait_share or 0.0
        if loop.steps < _STEPS or loop.wait_ns < facts.least_ns(_WAIT_NS) or loop.site is None:
            continue
        rest_ns = (loop.step_ns - loop.wait_ns) / loop.steps
        pace = _pace(facts, loop)
        waits = (share >= _SHARE or (pace is not None and not loop.at_most)) and rest_ns >= _REST_NS
        if _beside(loop):
            waits = share >= _BUSY or (share >= _NEARLY and _without_pause(facts, loop)) or pace is not None
        if waits:
            yield loop, pace


def _pace(facts: Facts, loop: Loop) -> sequential_maps.Pace | None:
    """The map that sets the pace of a loop that waited, as far as that is known, for a part of its time only."""
    if loop.at_most:
        return sequential_maps.pace(facts, loop) if (loop.wait_share or 0.0) < _BUSY else None
    return sequential_maps.beside(facts, loop) if (loop.wait_share or 0.0) < _SHARE else None


def _beside(loop: Loop) -> bool:
    """Whether Python's work on the input may have gone on beside the steps: then they did not wait for all of it."""
    return loop.at_most and any("Parallel" in kind or "Prefetch" in kind for kind in loop.kinds)


def _without_pause(facts: Facts, loop: Loop) -> bool:
    """Whether a loop's generator always began the next element at once: then nobody asked later than it could give."""
    passes = input_cures.passes(facts, loop)
    for number in loop.nodes:
        if facts.nodes[number].origin == "user" or not passes:
            continue
        calls = facts.reader.rows(
            "SELECT start_ns, end_ns FROM call WHERE node = ? AND end_ns IS NOT NULL ORDER BY start_ns", (number,)
        )
        gaps = sorted(after[0] - before[1] for before, after in pairwise(calls))
        idle = sum(gaps[: len(gaps) - passes + 1])  # the others are between two passes
        busy = sum(end - start for start, end in calls)
        if idle <= min(_IDLE, facts.least_ns(1.0 - _BUSY)) * (busy + idle):
            return True
    return False


def _may_be_bound(facts: Facts) -> bool:
    """Whether bodies ran for so long that a loop inside a graph may have waited for them: else no calls are read."""
    if not facts.meta.get("inputs"):
        return False
    calls = facts.reader.rows(
        f"SELECT total(end_ns - start_ns) + {max(needless_python.CROSSING_NS.values())} * count(*) FROM call "
        "WHERE kind = 'forward'"
    )[0][0]
    runs = facts.reader.rows("SELECT total(duration_ns) FROM run WHERE kind = 'forward'")[0][0]
    return bool(runs) and calls >= _SHARE * runs / 2  # waits before the bodies count too, and are not in this sum


def _finding(facts: Facts, loop: Loop, share: float, pace: sequential_maps.Pace | None) -> Finding:
    site = loop.site
    assert site is not None
    slow = _slowest(facts, loop) if pace is None else pace.node
    processes = None if slow is None else workers(facts, slow)
    if slow is not None and processes is not None:
        return _of_workers(facts, loop, share, slow, processes)
    buffers = refilled(facts, loop, slow)
    cures = input_cures.cures(facts, loop, slow, [] if buffers is None else [buffers[1]])
    if pace is not None:
        message = _at_its_pace(facts, loop, pace)
    elif loop.at_most:
        where = facts.source_line(site.file, site.line)
        message = (
            f"Python worked on the input for {percent(share)} of the time of the {loop.steps:,} steps of the loop at "
            f"{where}: "
        ) + (
            "the input sets their pace, a faster model would not help" if share >= _BUSY or _beside(loop)
            else f"the steps wait for it, and a faster input can bring x{1 / (1 - share):.1f} or more: what TensorFlow "
            "itself does for each element is not in this number"
        )  # fmt: skip
    elif share >= _BUSY or (slow is not None and input_cures.holds_gil(facts, slow)):
        message = f"{loop.sentence}: the input sets its pace"
    else:
        message = f"{loop.sentence}: a faster input brings up to x{1 / (1 - share):.1f}"
    file: str = site.file
    line: int | None = site.line
    turns = _turns(facts, slow) if slow is not None else ""
    if turns:
        message = f"{turns}. {message[:1].upper()}{message[1:]}"
    if slow is not None and slow.origin != "user":
        message += f". It waits for {_generator(facts, slow)}, {_runs(facts, slow)}"
        message += f". It reads by h5py: {one_file_lock.SAID}" if one_file_lock.reads_hdf5(facts, slow) else ""
        if facts.source(slow.file):
            file, line = slow.file or file, _yields_at(facts, slow)
    for number in input_cures.singles(facts, loop, slow):
        who = _generator(facts, facts.nodes[number])
        message += (
            f". T{who[1:]} was asked {facts.calls(number).count:,} times for a single element, each time by the way "
            "into Python and back"
        )
    bodies = f"its pipeline calls {', '.join(loop.bodies)}" if loop.bodies else "its pipeline calls no Python"
    if slow is not None:
        calls = facts.calls(slow.id)
        bodies += (
            f"; {facts.name(slow)} takes longest: {calls.total_ns / calls.count / 1e6:.2f} ms in each of "
            f"{calls.count:,} calls"
        )
    return Finding(
        "input-bound", "warning", None, (), message, cures[0], file, line,
        confidence="likely" if loop.at_most or pace is not None else "measured",
        evidence=(
            bodies, *filter(None, [slow_lines.said(facts, slow) if slow is not None else ""]),
            *_crossings(facts, loop), *([] if buffers is None else [buffers[0]]), *_held(facts, slow),
            *(recomputed.would_hold_then(facts, slow, cures[0]) if slow is not None else ()),
            *[f"also: {words}" for one in cures[1:] if (words := _in_words(one))][:2],
        ),
    )  # fmt: skip


def _in_words(cure: str) -> str:
    """A cure beside the first one: what is to be pasted as the one line that changes; empty where it is several."""
    paste = _ONE_LINE.fullmatch(cure)
    return f"line {paste[1]}: {paste[2].strip()}" if paste else "" if "\n" in cure else cure


def _at_its_pace(facts: Facts, loop: Loop, pace: sequential_maps.Pace) -> str:
    assert loop.site is not None
    calls, where = facts.calls(pace.node.id), facts.source_line(loop.site.file, loop.site.line)
    if pace.share is not None:
        return (
            f"the map of {facts.name(pace.node)} makes one element at a time, and worked for {percent(pace.share)} of "
            f"the time of the {loop.steps:,} steps of the loop at {where}. These waited "
            f"{percent(loop.wait_share or 0.0)} of it: a faster input helps more than a faster model"
        )
    return (
        f"the map of {facts.name(pace.node)} makes one element at a time and never pauses: {pace.elements:,} elements "
        f"of {pace.element_ns / 1e6:.2f} ms, of which the body runs {calls.total_ns / calls.count / 1e6:.2f} ms. The "
        f"steps of the loop at {where} wait for it"
    )


def workers(facts: Facts, node: Node) -> bool | None:
    """Whether processes of Keras' own make a node's elements, or threads (False); None where its calls do."""
    found = [noticed for number, _, noticed in facts.notices[Notice.KERAS_WORKERS] if number == node.id]
    return bool(found[0]["processes"]) if found else None


def _of_workers(facts: Facts, loop: Loop, share: float, node: Node, processes: bool) -> Finding:
    """A PyDataset that Keras' workers read: calls of its node wait for them, and what these do was not recorded."""
    assert loop.site is not None
    calls, where = facts.calls(node.id), facts.source_line(loop.site.file, loop.site.line)
    message = (
        f"the {loop.steps:,} steps of the loop at {where} waited at most {percent(share)} of their time for batches, "
        f"which {'processes' if processes else 'threads'} of Keras' make (workers= of the PyDataset) by "
        f"{node.body}: a faster input brings at most x{1 / max(1 - share, 0.01):.1f}"
    )
    each = calls.total_ns / calls.count / 1e6
    evidence = [f"{calls.count:,} batches were taken from them, each after {each:.2f} ms on average"]
    cheaper = f"make a batch cost less in {node.body}: NumPy on whole arrays in place of Python loops"
    waited = 0.0 if processes else _waiting(facts, node)
    if waited >= 1:
        evidence.append(
            f"threads of pools, as these are, waited for the GIL, {waited:.1f} of them at a time: one thread at a time "
            "can run Python"
        )
        fix = (
            "use_multiprocessing=True for the PyDataset, whose processes do not share a GIL, if its __getitem__ uses "
            f"no TensorFlow; or {cheaper}"
        )
    else:
        cores = f" ({facts.meta['cores']} here)" if facts.meta.get("cores") else ""
        fix = f"{cheaper}; more workers than cores{cores} help only where it waits, as for files"
    return Finding(
        "input-bound", "warning", None, (), message, fix, node.file, node.line, confidence="likely",
        evidence=tuple(evidence),
    )  # fmt: skip


def _waiting(facts: Facts, node: Node) -> float:
    """How many threads of pools waited for the GIL on average from a node's first call to its last; 0 if unknown."""
    first, last = facts.reader.rows("SELECT min(start_ns), max(end_ns) FROM call WHERE node = ?", (node.id,))[0]
    known = (facts.meta.get("gil") or {}).get("waited_outside_ns") or {}
    waited = sum(ns for name, ns in known.items() if name.endswith(_WORKER))
    return waited / (last - first) if first is not None and last is not None and last > first else 0.0


def _crossings(facts: Facts, loop: Loop) -> Iterator[str]:
    """That the way into Python is what takes the time, and that parallel calls go it one at a time."""
    for node in input_cures.tiny(facts, loop):
        crossing = needless_python.CROSSING_NS[node.kind] / 1e3
        calls = facts.calls(node.id)
        if calls.count:
            yield (
                f"{facts.name(node)} runs {calls.total_ns / calls.count / 1e3:.0f} us a call; the way into Python and "
                f"back takes about {crossing:.0f} us more, one call at a time"
            )


def _runs(facts: Facts, node: Node) -> str:
    """How a generator runs, for a sentence: on one thread, or several of it side by side, as by `interleave`."""
    if parallel_generators.at_once(facts, node) < parallel_generators.SEVERAL:
        return "which gives one element at a time, on one thread"
    holds = input_cures.holds_gil(facts, node)
    return f"of which several run at once{', and take turns: one thread at a time can run Python' if holds else ''}"


def _generator(facts: Facts, node: Node) -> str:
    """`the generator render`, or the lambda that makes one."""
    name = facts.name(node)
    return name if name.startswith("the lambda") else f"the generator {name}"


def _yields_at(facts: Facts, node: Node) -> int | None:
    """The line at which a generator yields; that of its function where several do."""
    function = facts.function(node)
    found = [one for one in code.own_nodes(function) if isinstance(one, ast.Yield)] if function is not None else []
    return found[0].lineno if len(found) == 1 else node.line


def _held(facts: Facts, slow: Node | None) -> tuple[str, ...]:
    """That the slowest body holds the GIL, where it does: then parallel calls of it bring nothing."""
    for stage in facts.stages:
        one = stage.contention
        more = max((ceiling.speedup for ceiling in stage.ceilings), default=1.0) >= input_cures.GAIN
        if slow is None or one.node.id != input_cures.nodes_of_line(facts, slow)[0].id or more or one.grade != "native":
            continue
        if (one.held_share or 0.0) >= input_cures.HOLDS and not _turns(facts, slow):
            return (
                f"{facts.name(slow)} holds the GIL {percent(one.held_share or 0.0)} of its time: parallel calls wait "
                "for each other",
            )
    return ()


def _turns(facts: Facts, node: Node) -> str:
    """That a body's parallel calls wait for each other's GIL, with what was measured of it."""
    first, name = input_cures.nodes_of_line(facts, node)[0].id, facts.name(node)
    own = settings(facts.meta, facts.nodes.values()).get(node.id)
    if own is None or own.parallel in (0, 1) or node.origin != "user":
        return ""
    if one_file_lock.reads_hdf5(facts, node):
        return f"num_parallel_calls brings {name} little where it reads by h5py: {one_file_lock.SAID}"
    stage = input_cures.stage_of(facts, node)
    if stage is None:
        return ""
    one = stage.contention
    calls = f"num_parallel_calls={'AUTOTUNE' if own.parallel == AUTOTUNE else own.parallel}"
    share = one.wait_share or 0.0
    if one.grade == "native" and (one.held_share or 0.0) >= input_cures.HOLDS:
        return (
            f"{calls} brings at most x{1 / (one.held_share or 1.0):.2f}: {name} holds the GIL "
            f"{percent(one.held_share or 0.0)} of its time, so that one call at a time gets on, and its calls waited "
            f"for it {percent(share)} of theirs"
        )
    real = one.program_culprits
    if one.grade != "op-start" or share < _WAITED or not real or real[0].node != first:
        return ""
    return (
        f"in spite of {calls} the calls of {name} wait for each other: for the GIL {percent(share)} of their time "
        f"before they began, {(one.mean_wait_ns or 0.0) / 1e6:.2f} ms each (inside them was not measured). One thread "
        "at a time can run Python"
    )


def _slowest(facts: Facts, loop: Loop) -> Node | None:
    """The node whose calls took most of the time that the loop waited; None where no body did."""
    nodes = [facts.nodes[one] for one in loop.nodes if facts.calls(one).count]
    found = max(nodes, key=lambda one: facts.calls(one.id).total_ns, default=None)
    return found if found is not None and _took(facts, loop, found) >= _MOST * loop.wait_ns else None


def _took(facts: Facts, loop: Loop, node: Node) -> int:
    """How long a node's calls took in a loop: a dataset that is made again for each pass has another node each time."""
    own = facts.calls(node.id).total_ns
    return min(facts.calls_of(input_cures.nodes_of_line(facts, node)).total_ns, own * max(1, loop.passes))
