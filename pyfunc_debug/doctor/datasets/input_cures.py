"""What makes the input of a loop faster: pastes and words, the best first."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from pyfunc_debug.analysis.inputs import AUTOTUNE, Loop
from pyfunc_debug.analysis.stages import StageAnswer
from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies import one_file_lock, slow_lines
from pyfunc_debug.doctor.bodies.shared_objects import are_apart, shared_objects
from pyfunc_debug.doctor.datasets import batched_maps, endless_sources, late_shuffles, own_pool, pipelines
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators import indexed_generators
from pyfunc_debug.doctor.rules import needless_python, parallel_generators, recomputed, single_elements
from pyfunc_debug.records import Frame, Node

_LONG_NS = 1_000_000
"""A call of Python loops that takes longer works for its element: no batch makes that shorter."""
_LESS = "make an element cost less: do what is the same for all once, before, and several elements in one call of an op"
GAIN = 1.15
"""What is worth a change."""
_MANY_PARTS = 32
"""Parts of an element: from here on, each costs more as a tensor of its own than the numbers in it."""
HOLDS = 0.8
"""Share of the time of calls with the GIL held from which parallel ones wait for each other."""
_AGAIN = 0.3
"""Share of calls with the inputs of an earlier one from which a cache is a cure."""
_LITTLE = 1.5
"""Parallel calls that bring less than this are named after what a body's Python loops cost."""
_INSTEAD = "in place of Python loops"
_SOME = 0.1
"""Share of the time that a loop waited: bodies for which cures are named."""


def cures(facts: Facts, loop: Loop, slow: Node | None, first: Iterable[str] = ()) -> list[str]:
    """What TensorFlow offers for a loop, with its numbers; the best first, and at least one.

    Args:
      facts: The recording.
      loop: One of its loops.
      slow: The body that takes most of the time it waits; None where none does.
      first: What else helps, before these.
    """
    found = dict.fromkeys([*first, *_cures(facts, loop, slow)])  # stages may have the same
    return sorted(found, key=_order) or [_LESS]


def _cures(facts: Facts, loop: Loop, slow: Node | None) -> Iterator[str]:
    graph_code = needless_python.paying(facts, slow) if slow is not None and _tried(facts, slow) else ""
    if graph_code:
        yield graph_code
    small = {one.id: one for one in tiny(facts, loop)}
    for node in small.values():
        setting = next(one.setting for one in facts.stages if one.contention.node.id == node.id)
        batch = setting.batch if setting is not None else None
        yield batched_maps.batched_first(facts, node) or batched_maps.words(facts, node, batch)
    chunks = single_elements.in_chunks(facts, slow) if slow is not None else ""
    line = slow_lines.cure(facts, slow) if slow is not None and not chunks else ""
    yield from filter(None, (chunks, line))
    cached = _cached(facts, slow) if slow is not None else ""
    if cached:
        yield cached
    if (
        slow is not None
        and not graph_code
        and not chunks
        and not line
        and (holds_gil(facts, slow) or _loops(facts, slow))
    ):
        yield without_loops(facts, slow)
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
            works = holds_gil(facts, node) and facts.calls(node.id).total_ns >= _LONG_NS * facts.calls(node.id).count
            for cure in _of_stage(facts, loop, stage):
                if not works or not cure.startswith(("batch(", "the body in TensorFlow ops")):
                    yield cure
    if slow is not None and slow.origin != "user" and not chunks and not line:
        yield _of_generator(facts, slow)
    for number in singles(facts, loop, slow):
        yield single_elements.batched(facts, facts.nodes[number], single_elements.picking(facts)[number])
    if "Prefetch" not in loop.kinds and not loop.at_most and not (slow is not None and holds_gil(facts, slow)):
        rest_ns = loop.step_ns - loop.wait_ns
        gain = loop.step_ns / max(loop.wait_ns, rest_ns, 1)
        if gain >= GAIN:
            yield _prefetched(facts, loop) or (
                "dataset = dataset.prefetch(tf.data.AUTOTUNE)  # last: makes the next element while the step runs, at "
                f"most x{gain:.1f}"
            )
    if "Map" in loop.kinds and not loop.bodies:
        yield "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE)"
    name = None if cached or loop.site is None else pipelines.dataset_at(facts, loop.site)
    if name is not None and passes(facts, loop) > 1 and not _never_full(facts, loop):
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


def _order(cure: str) -> int:
    """Pastes come first, but for the cure of a body that takes no time; what has to be written again comes last."""
    if batched_maps.BATCHED in cure:
        return -1
    if _INSTEAD in cure:  # what it is weighed against brings less
        return 0
    return 0 if cure.startswith(("Put", "Replace")) else 2 if cure.startswith("the body ") else 1


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


def singles(facts: Facts, loop: Loop, slow: Node | None) -> list[int]:
    """Generators of a loop for whose elements the way into Python takes longer than Python itself, with a paste."""
    if slow is not None:
        return []
    found = single_elements.picking(facts)
    return [one for one in loop.nodes if one in found and single_elements.batched(facts, facts.nodes[one], found[one])]


def holds_gil(facts: Facts, node: Node) -> bool:
    """Whether a generator's code holds the GIL nearly all the time: calls side by side would wait for each other."""
    first = nodes_of_line(facts, node)[0].id
    found = [one for one in facts.contention.nodes if one.node.id == first and one.grade == "native"]
    return any((one.held_share or 0.0) >= HOLDS or parallel_generators.takes_turns(facts, one) for one in found)


def _loops(facts: Facts, node: Node) -> bool:
    """Whether Python loops in a body hold the GIL for so long that parallel calls bring little."""
    stage = stage_of(facts, node)
    if stage is None or stage.contention.grade != "native" or stage.stage.wall_ns < _LONG_NS:
        return False
    function = facts.function(node)
    found = function is not None and any(isinstance(one, (ast.For, ast.While)) for one in code.own_nodes(function))
    return found and 1.0 / max(stage.contention.held_share or 0.0, 0.01) < _LITTLE


def without_loops(facts: Facts, node: Node) -> str:
    """What helps a body that holds the GIL: neither parallel calls nor batches do, or little."""
    fewer = (
        f"give one array in place of {len(node.tout)} parts, each of which is made a tensor, and batched, by itself, "
        "and take it apart in a map behind batch(); "
    ) if len(node.tout) >= _MANY_PARTS else ""  # fmt: skip
    in_loop = slow_lines.is_in_loop(facts, node) is not False
    instead = f"{_INSTEAD}, which hold the GIL" if in_loop else "for what holds the GIL there"
    return (
        f"{facts.name(node)}: {fewer}NumPy on whole arrays or tf.* {instead}; or "
        "compute its results once, in several processes, and read them from files"
    )


def _of_generator(facts: Facts, node: Node) -> str:
    """Its dataset as a map over indices, where calls could run side by side; else the same in words."""
    name = facts.name(node)
    if one_file_lock.reads_hdf5(facts, node):
        return one_file_lock.cure(facts, node)
    if len(node.tout) >= _MANY_PARTS or holds_gil(facts, node):
        return without_loops(facts, node)
    found = pastes.dataset_call(facts, node)
    return (indexed_generators.as_map(facts, *found) if found is not None else "") or (
        f"yield in {name} only what is cheap, as names or indices, and do the slow part in dataset.map(..., "
        "num_parallel_calls=tf.data.AUTOTUNE)"
    )


def stage_of(facts: Facts, node: Node) -> StageAnswer | None:
    """The stage that a node's line is in, if there is one."""
    first = nodes_of_line(facts, node)[0].id
    return next((one for one in facts.stages if one.contention.node.id == first), None)


def nodes_of_line(facts: Facts, node: Node) -> list[Node]:
    """The nodes of a node's line: the first stands for all in what is said of the GIL."""
    return next((group for group in facts.lines if any(one.id == node.id for one in group)), [node])


def _never_full(facts: Facts, loop: Loop) -> bool:
    """Whether a cache at a loop's dataset would serve nothing: its elements do not end, or it has one."""
    own = [one["stages"] for one in facts.meta["inputs"] if same_site(one["site"], loop.site)]
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
        if best is not None and best.speedup >= GAIN and (stage.setting is None or stage.setting.parallel != AUTOTUNE):
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
    if best is not None and best.speedup >= GAIN and not tuned:
        text = pastes.written(pipelines.with_calls(facts, node, best.calls, may))
        over = f"{f'{may}: ' if may else ''}at most x{best.speedup:.1f} over now"
        yield text or f"dataset.map({stage.function}, num_parallel_calls={best.calls})  # {over}"
    yield from cures


def _may_share(facts: Facts, node: Node) -> str:
    """The condition for calls of a body to run at once: `if tokenizer may be used by several calls at once`."""
    function, tree = facts.function(node), facts.tree(node.file)
    found = shared_objects(function, tree) if function is not None and tree is not None else []
    return f"if {' and '.join(found[:2])} may be used by several calls at once" if found else ""


def passes(facts: Facts, loop: Loop) -> int:
    """How often a loop's line began to read its dataset."""
    return max((int(one["iterators"]) for one in facts.meta["inputs"] if same_site(one["site"], loop.site)), default=0)


def same_site(site: Any, frame: Frame | None) -> bool:
    return frame is not None and bool(site) and (site[0], site[1]) == (frame.file, frame.line)
