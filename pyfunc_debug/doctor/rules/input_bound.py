"""Training loops that wait for their input: for what share of their time, and what would help."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pyfunc_debug.analysis.inputs import AUTOTUNE, Loop, loops_of, settings
from pyfunc_debug.analysis.stages import StageAnswer
from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies import one_file_lock
from pyfunc_debug.doctor.bodies.shared_objects import are_apart, shared_objects
from pyfunc_debug.doctor.datasets import (
    batched_maps,
    endless_sources,
    late_shuffles,
    own_pool,
    pipelines,
    sequential_maps,
)
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators import indexed_generators
from pyfunc_debug.doctor.generators.refilled_buffers import refilled
from pyfunc_debug.doctor.rules import (
    endless_epochs,
    late_skips,
    needless_python,
    parallel_generators,
    recomputed,
    single_elements,
)
from pyfunc_debug.events import Notice
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import Finding, Frame, Node

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
_LONG_NS = 1_000_000
"""A call of Python loops that takes longer works for its element: no batch makes that shorter."""
_IDLE = 0.25
"""Share of a generator's time between its calls, at most, on a machine on which other processes take turns."""
_LESS = "make an element cost less: do what is the same for all once, before, and several elements in one call of an op"
_GAIN = 1.15
_MANY_PARTS = 32
"""Parts of an element: from here on, each costs more as a tensor of its own than the numbers in it."""
_HOLDS = 0.8
_WAITED = 0.05
"""Share of the time of parallel calls that they waited for the GIL before they began, from which it counts."""
_AGAIN = 0.3
"""Share of calls with the inputs of an earlier one from which a cache is a cure."""
_WORKER = "(worker)"
"""The end of the names of a pool's threads, as Python makes them."""
_LITTLE = 1.5
"""Parallel calls that bring less than this are named after what a body's Python loops cost."""
_INSTEAD = "in place of Python loops"
_MOST, _SOME = 0.5, 0.1
"""Shares of the time that a loop waited: what the slowest body took at least, and bodies for which cures are named."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loop."""
    told: set[tuple[str, str]] = set()
    found_loops = list(_bound(facts))
    endless = {one.file for one in endless_epochs.check(facts)} if found_loops else set()
    for loop, pace in found_loops:
        if loop.site is not None and loop.site.file in endless:
            continue  # its trouble is that it never ends
        if late_skips.waits_for_nothing(facts, loop):
            continue  # has a finding of its own
        found = _finding(facts, loop, loop.wait_share or 0.0, pace)
        if (found.message, found.fix) not in told:  # training and validation in one line
            told.add((found.message, found.fix))
            yield found


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
    passes = _passes(facts, loop)
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


def _passes(facts: Facts, loop: Loop) -> int:
    """How often a loop's line began to read its dataset."""
    return max((int(one["iterators"]) for one in facts.meta["inputs"] if _same_site(one["site"], loop.site)), default=0)


def _same_site(site: Any, frame: Frame | None) -> bool:
    return frame is not None and bool(site) and (site[0], site[1]) == (frame.file, frame.line)


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
    first = [] if buffers is None else [buffers[1]]
    cures = sorted(dict.fromkeys([*first, *_cures(facts, loop, slow)]), key=_order) or [
        _LESS
    ]  # stages may have the same
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
    elif share >= _BUSY or (slow is not None and _holds_gil(facts, slow)):
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
    for number in _singles(facts, loop, slow):
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
            bodies, *_crossings(facts, loop), *([] if buffers is None else [buffers[0]]), *_held(facts, slow),
            *[f"also: {one}" for one in cures[1:] if "\n" not in one][:2],
        ),
    )  # fmt: skip


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


def tiny(facts: Facts, loop: Loop) -> list[Node]:
    """Bodies in a loop's maps for whose calls the way into Python takes longer than they do.

    Args:
      facts: The recording.
      loop: One of its loops.
    """
    nodes = [stage.contention.node for stage in facts.stages if stage.contention.node.id in loop.nodes]
    return [one for one in nodes if batched_maps.is_tiny(facts, one) and not _is_batched(facts, one)]


def _is_batched(facts: Facts, node: Node) -> bool:
    setting = next((one.setting for one in facts.stages if one.contention.node.id == node.id), None)
    return setting is not None and setting.batched


def _crossings(facts: Facts, loop: Loop) -> Iterator[str]:
    """That the way into Python is what takes the time, and that parallel calls go it one at a time."""
    for node in tiny(facts, loop):
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
    holds = _holds_gil(facts, node)
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


def _singles(facts: Facts, loop: Loop, slow: Node | None) -> list[int]:
    """Generators of a loop for whose elements the way into Python takes longer than Python itself, with a paste."""
    if slow is not None:
        return []
    found = single_elements.picking(facts)
    return [one for one in loop.nodes if one in found and single_elements.batched(facts, facts.nodes[one], found[one])]


def _holds_gil(facts: Facts, node: Node) -> bool:
    """Whether a generator's code holds the GIL nearly all the time: calls side by side would wait for each other."""
    first = _line(facts, node)[0].id
    found = [one for one in facts.contention.nodes if one.node.id == first and one.grade == "native"]
    return any((one.held_share or 0.0) >= _HOLDS or parallel_generators.takes_turns(facts, one) for one in found)


def _loops(facts: Facts, node: Node) -> bool:
    """Whether Python loops in a body hold the GIL for so long that parallel calls bring little."""
    stage = next((one for one in facts.stages if one.contention.node.id == _line(facts, node)[0].id), None)
    if stage is None or stage.contention.grade != "native" or stage.stage.wall_ns < _LONG_NS:
        return False
    function = facts.function(node)
    found = function is not None and any(isinstance(one, (ast.For, ast.While)) for one in code.own_nodes(function))
    return found and 1.0 / max(stage.contention.held_share or 0.0, 0.01) < _LITTLE


def _without_loops(facts: Facts, node: Node) -> str:
    """What helps a body that holds the GIL: neither parallel calls nor batches do, or little."""
    fewer = (
        f"give one array in place of {len(node.tout)} parts, each of which is made a tensor, and batched, by itself, "
        "and take it apart in a map behind batch(); "
    ) if len(node.tout) >= _MANY_PARTS else ""  # fmt: skip
    return (
        f"{facts.name(node)}: {fewer}NumPy on whole arrays or tf.* {_INSTEAD}, which hold the GIL; or "
        "compute its results once, in several processes, and read them from files"
    )


def _of_generator(facts: Facts, node: Node) -> str:
    """Its dataset as a map over indices, where calls could run side by side; else the same in words."""
    name = facts.name(node)
    if one_file_lock.reads_hdf5(facts, node):
        return one_file_lock.cure(facts, node)
    if len(node.tout) >= _MANY_PARTS or _holds_gil(facts, node):
        return _without_loops(facts, node)
    found = pastes.dataset_call(facts, node)
    return (indexed_generators.as_map(facts, *found) if found is not None else "") or (
        f"yield in {name} only what is cheap, as names or indices, and do the slow part in dataset.map(..., "
        "num_parallel_calls=tf.data.AUTOTUNE)"
    )


def _order(cure: str) -> int:
    """Pastes come first, but for the cure of a body that takes no time; what has to be written again comes last."""
    if batched_maps.BATCHED in cure:
        return -1
    if _INSTEAD in cure:  # what it is weighed against brings less
        return 0
    return 0 if cure.startswith(("Put", "Replace")) else 2 if cure.startswith("the body ") else 1


def _held(facts: Facts, slow: Node | None) -> tuple[str, ...]:
    """That the slowest body holds the GIL, where it does: then parallel calls of it bring nothing."""
    for stage in facts.stages:
        one = stage.contention
        more = max((ceiling.speedup for ceiling in stage.ceilings), default=1.0) >= _GAIN
        if slow is None or one.node.id != _line(facts, slow)[0].id or more or one.grade != "native":
            continue
        if (one.held_share or 0.0) >= _HOLDS and not _turns(facts, slow):
            return (
                f"{facts.name(slow)} holds the GIL {percent(one.held_share or 0.0)} of its time: parallel calls wait "
                "for each other",
            )
    return ()


def _turns(facts: Facts, node: Node) -> str:
    """That a body's parallel calls wait for each other's GIL, with what was measured of it."""
    first, name = _line(facts, node)[0].id, facts.name(node)
    own = settings(facts.meta, facts.nodes.values()).get(node.id)
    if own is None or own.parallel in (0, 1) or node.origin != "user":
        return ""
    if one_file_lock.reads_hdf5(facts, node):
        return f"num_parallel_calls brings {name} little where it reads by h5py: {one_file_lock.SAID}"
    stage = next((one for one in facts.stages if one.contention.node.id == first), None)
    if stage is None:
        return ""
    one = stage.contention
    calls = f"num_parallel_calls={'AUTOTUNE' if own.parallel == AUTOTUNE else own.parallel}"
    share = one.wait_share or 0.0
    if one.grade == "native" and (one.held_share or 0.0) >= _HOLDS:
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
    return min(facts.calls_of(_line(facts, node)).total_ns, own * max(1, loop.passes))


def _line(facts: Facts, node: Node) -> list[Node]:
    """The nodes of a node's line: the first stands for all in what is said of the GIL."""
    return next((group for group in facts.lines if any(one.id == node.id for one in group)), [node])


def _cures(facts: Facts, loop: Loop, slow: Node | None) -> Iterator[str]:
    """What TensorFlow offers for this loop, with its numbers; the best first."""
    graph_code = needless_python.paying(facts, slow) if slow is not None and _tried(facts, slow) else ""
    if graph_code:
        yield graph_code
    small = {one.id: one for one in tiny(facts, loop)}
    for node in small.values():
        setting = next(one.setting for one in facts.stages if one.contention.node.id == node.id)
        batch = setting.batch if setting is not None else None
        yield batched_maps.batched_first(facts, node) or batched_maps.words(facts, node, batch)
    cached = _cached(facts, slow) if slow is not None else ""
    if cached:
        yield cached
    if slow is not None and not graph_code and (_holds_gil(facts, slow) or _loops(facts, slow)):
        yield _without_loops(facts, slow)
    kept = late_shuffles.words(facts, loop, slow) if slow is not None else ""
    if kept:
        yield kept
    for stage in own_pool.stages(facts, loop):
        node = stage.contention.node
        if (
            node.id in loop.nodes
            and node.id not in small
            and (slow is None or facts.calls(node.id).total_ns >= _SOME * loop.wait_ns)
        ):
            works = _holds_gil(facts, node) and facts.calls(node.id).total_ns >= _LONG_NS * facts.calls(node.id).count
            for cure in _of_stage(facts, loop, stage):
                if not works or not cure.startswith(("batch(", "the body in TensorFlow ops")):
                    yield cure
    if slow is not None and slow.origin != "user":
        yield _of_generator(facts, slow)
    for number in _singles(facts, loop, slow):
        yield single_elements.batched(facts, facts.nodes[number], single_elements.picking(facts)[number])
    if "Prefetch" not in loop.kinds and not loop.at_most and not (slow is not None and _holds_gil(facts, slow)):
        rest_ns = loop.step_ns - loop.wait_ns
        gain = loop.step_ns / max(loop.wait_ns, rest_ns, 1)
        if gain >= _GAIN:
            yield _prefetched(facts, loop) or (
                "dataset = dataset.prefetch(tf.data.AUTOTUNE)  # last: makes the next element while the step runs, at "
                f"most x{gain:.1f}"
            )
    if "Map" in loop.kinds and not loop.bodies:
        yield "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE)"
    name = None if cached or loop.site is None else pipelines.dataset_at(facts, loop.site)
    if name is not None and _passes(facts, loop) > 1 and not _never_full(facts, loop):
        draws = _draws(facts, loop)
        cache = f"{name} = {name}.cache()"
        keeps = " and before the shuffle" * any(kind.startswith("Shuffle") for kind in loop.kinds)  # or its first order
        if draws is None:
            yield f"{cache}  # after the slow stage{keeps}, if it is read more than once and gives the same each time"
        elif draws.origin == "user":  # nothing is before a generator
            body, function = facts.name(draws), facts.function(draws)
            sure = function is not None and bool(code.global_random(function, facts.tree(draws.file)))
            yield f"{cache}  # " + (
                f"before the stage of {body}, which draws random numbers"
                if sure
                else f"after the stage of {body}, if it gives the same for the same element each time; else before it"
            )


def _never_full(facts: Facts, loop: Loop) -> bool:
    """Whether a cache at a loop's dataset would serve nothing: its elements do not end, or it has one."""
    own = [one["stages"] for one in facts.meta["inputs"] if _same_site(one["site"], loop.site)]
    return any("Cache" in kind for kind in loop.kinds) or any(
        endless_sources.endless(facts, one) is not None for one in own
    )


def _draws(facts: Facts, loop: Loop) -> Node | None:
    """The first body of a pipeline that draws random numbers: behind it a cache would keep those of the first pass."""
    for one in reversed(loop.nodes):
        node = facts.nodes[one]
        function, tree = facts.function(node), facts.tree(node.file)
        if function is not None and tree is not None and code.is_random(function, tree):
            return node
    return None


def _tried(facts: Facts, node: Node) -> bool:
    """Whether graph code was tried in a body's place, and is the same and faster; or it draws by ops already."""
    found = needless_python.trial(facts, node)
    return bool(found["pays"]) if found is not None else needless_python.has_draws(facts, node)


def _cached(facts: Facts, node: Node) -> str:
    """The map with a cache behind it, for a body that gives the same again for inputs that it had before."""
    function, tree = facts.function(node), facts.tree(node.file)
    if function is None or tree is None or code.is_random(function, tree) or code.state_writes(function):
        return ""
    known, different, results = recomputed.known(facts, node)
    again = results == different and known - different >= max(_AGAIN * known, 1) and code.clock(function) is None
    if not again:
        return ""
    never = endless_sources.behind(facts, node)
    if never is not None and never.why:
        return never.cure
    loop = recomputed.unfilled(facts, node)
    if loop is not None:
        return recomputed.filled(facts, loop)
    return recomputed.cached(facts, node) if never is None else ""


def _prefetched(facts: Facts, loop: Loop) -> str:
    """The dataset of a loop with a prefetch, above it."""
    site = loop.site
    name = pipelines.dataset_at(facts, site) if site is not None else None
    tf = pastes.module(facts, site.file, "tensorflow") if site is not None else None
    if site is None or tf is None:
        return ""
    why = "# makes the next element while the step runs"
    if name is not None:
        line = f"{name} = {name}.prefetch({tf}.data.AUTOTUNE)  {why}"
        return pastes.written(pipelines.above_loop(facts, site, name, line))
    built = pipelines.built_for(facts, site)
    text = "" if built is None else f"{pastes.text_of(facts, site.file, built)}.prefetch({tf}.data.AUTOTUNE)"
    return "" if built is None else pastes.written(pastes.replaced(facts, site.file, {built: text}))


def _of_stage(facts: Facts, loop: Loop, stage: StageAnswer) -> Iterator[str]:
    node, cures = stage.contention.node, list(stage.cures)
    if one_file_lock.reads_hdf5(facts, node):
        yield one_file_lock.cure(facts, node)
        return
    calls = facts.calls(node.id)
    if stage.setting is not None and stage.setting.in_turn and not are_apart(facts, node):
        yield from (one for one in cures if "threadpool" not in one)
        return
    may = _may_share(facts, node)
    if stage.contention.grade != "native" and calls.total_ns < _LONG_NS * calls.count:
        yield from (one for one in cures if "threadpool" not in one)
        best = max(stage.ceilings, key=lambda one: (round(one.speedup, 2), -one.calls), default=None)
        if best is not None and best.speedup >= _GAIN and (stage.setting is None or stage.setting.parallel != AUTOTUNE):
            also = f", and {may}" if may else ""
            yield (
                f"dataset.map({stage.function}, num_parallel_calls={best.calls})  # if {facts.name(node)} lets the GIL "
                f"go, as NumPy does on large arrays{also}: at most x{best.speedup:.1f} over now"
            )
        return
    if stage.wider is not None and stage.setting is not None and loop.site is not None:
        gain = f"at most x{stage.wider.speedup:.1f} over now"
        edits = [pipelines.with_pool(facts, loop.site, stage.wider.calls, gain)]
        if 0 < stage.setting.parallel < stage.wider.calls:
            edits.append(pipelines.with_calls(facts, node, stage.wider.calls, may))
        text = pastes.written(*edits)
        if text:
            yield text
            cures = [one for one in cures if "private_threadpool_size" not in one]
            yield from cures
            return
    best = max(stage.ceilings, key=lambda one: (round(one.speedup, 2), -one.calls), default=None)
    tuned = stage.setting is not None and stage.setting.parallel == AUTOTUNE
    if best is not None and best.speedup >= _GAIN and not tuned:
        text = pastes.written(pipelines.with_calls(facts, node, best.calls, may))
        over = f"{f'{may}: ' if may else ''}at most x{best.speedup:.1f} over now"
        yield text or f"dataset.map({stage.function}, num_parallel_calls={best.calls})  # {over}"
    yield from cures


def _may_share(facts: Facts, node: Node) -> str:
    """The condition for calls of a body to run at once: `if tokenizer may be used by several calls at once`."""
    function, tree = facts.function(node), facts.tree(node.file)
    found = shared_objects(function, tree) if function is not None and tree is not None else []
    return f"if {' and '.join(found[:2])} may be used by several calls at once" if found else ""
