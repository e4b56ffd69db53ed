"""Where the time goes: bodies that wait for the GIL, parallel calls that bring nothing, and calls too small to pay."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.analysis.contention import NodeContention
from pyfunc_debug.analysis.stages import StageAnswer
from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies import element_by_element
from pyfunc_debug.doctor.bodies.replacement import definition, obstacles
from pyfunc_debug.doctor.datasets import batched_maps, pipelines
from pyfunc_debug.doctor.datasets.input_cures import tiny
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import read
from pyfunc_debug.doctor.rules import slow_reads, taken_turns
from pyfunc_debug.doctor.rules.input_bound import bound
from pyfunc_debug.doctor.rules.needless_python import CROSSING_NS, MANY_CALLS, SHARE, paying, trial
from pyfunc_debug.gil.blame import OUTSIDE, thread_name
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import Finding, Node

NAMES = ("gil-wait", "inside-waits", "parallel-calls", "tiny-calls")
_WAIT_SHARE = 0.4
_AT_ONCE_SHARE = 0.25
"""The same for parallel calls of which more at once would bring nothing: beside other processes they wait less."""
_WAIT_NS = 200_000_000
_SHOWN_NS = 5_000_000
"""Less than this is shown as 0.00 s."""
_GAIN = 1.15
_HOLDS, _HOLDS_SHARE, _HOLDS_NS, _KNOWN = 0.8, 0.3, 500_000_000, 50
"""Share of a body's time with the GIL (and of the time between its calls, while it runs one after the other), of the
recording's time in it, and the least time and calls."""
_EACH_OTHER = "its calls only wait for each other"


def check(facts: Facts) -> Iterator[Finding]:
    """At most one finding a node and rule; nothing where the GIL was not measured."""
    if _anybody_waited(facts) or any(one.wait + one.body >= _HOLDS_NS for one in facts.waits.values()):
        yield from _contention(facts)
    yield from _tiny(facts)


def _anybody_waited(facts: Facts) -> bool:
    """Whether a node waited for long: most recordings need no more than this question."""
    return any(
        (waited := one.wait + (one.inside[2] or 0)) >= _WAIT_NS and waited >= _WAIT_SHARE * (one.wait + one.body)
        for one in facts.waits.values()
    )


def _contention(facts: Facts) -> Iterator[Finding]:
    stages = {stage.contention.node.id: stage for stage in facts.stages}
    reported = taken_turns.told(facts) | slow_reads.told(facts)
    for one in facts.contention.nodes:
        if one.node.origin != "user":
            continue
        stage = stages.get(one.node.id)
        if one.node.id in reported:
            continue
        at_once = stage is not None and stage.at_once > 1.5 and _much(facts, one, _AT_ONCE_SHARE)
        if stage is not None and (at_once or _holds(facts, one, stage)):
            best = max(stage.ceilings, key=lambda ceiling: ceiling.speedup)
            if best.speedup < _GAIN:
                reported.add(one.node.id)
                yield _useless(facts, one, stage, best.speedup)
        if one.node.id not in reported and _much(facts, one) and not _on_its_way(facts, one, stage):
            yield _inside(facts, one) if (one.reacquire_ns or 0) > one.wait_ns else _waits(facts, one)


def _on_its_way(facts: Facts, one: NodeContention, stage: StageAnswer | None) -> bool:
    """Whether parallel calls of a small body wait for what is in no body: likely the way of the others into Python."""
    real = one.program_culprits
    outside = bool(real) and real[0].label == OUTSIDE
    return stage is not None and outside and stage.at_once > 1.0 and batched_maps.is_tiny(facts, one.node)


def _holds(facts: Facts, one: NodeContention, stage: StageAnswer) -> bool:
    """Whether parallel calls were asked for, of a body that holds the GIL while it works and takes much of the time."""
    parallel = stage.setting is not None and stage.setting.parallel != 1
    known = one.grade == "native" and one.held_share is not None and one.measured >= _KNOWN
    total = one.wait_ns + one.body_ns
    if not parallel or not known or total < _HOLDS_NS or (one.held_share or 0.0) < _HOLDS:
        return False
    return total >= _HOLDS_SHARE * (facts.wall_ns or 0) or total >= _HOLDS * _span_ns(facts, one.node.id)


def _span_ns(facts: Facts, node: int) -> int:
    """From the beginning of a node's first call to the end of its last."""
    first, last = facts.reader.rows("SELECT min(start_ns), max(end_ns) FROM call WHERE node = ?", (node,))[0]
    return int(last or 0) - int(first or 0)


def _much(facts: Facts, one: NodeContention, share: float = _WAIT_SHARE) -> bool:
    """Whether a node waited for long: longer beside other processes. What it waited for us is not the program's."""
    waited, total = one.wait_ns + (one.reacquire_ns or 0) - one.ours_ns, one.wait_ns + one.body_ns
    return one.grade in ("native", "op-start") and waited >= max(facts.least_ns(_WAIT_NS), share * total)


def _is_main(label: str) -> bool:
    return thread_name(label) == "MainThread"


def _evidence(one: NodeContention) -> tuple[str, ...]:
    lines = [f"{one.sentence}; {(one.wait_ns + (one.reacquire_ns or 0)) / 1e9:.2f} s in {one.measured:,} calls"]
    held: dict[str, int] = {}  # two nodes of one body have one label
    for culprit in one.program_culprits:
        held[culprit.label] = held.get(culprit.label, 0) + culprit.ns
    most = sorted(held.items(), key=lambda item: -item[1])[:3]
    who = [f"{label} {ns / 1e9:.2f} s" for label, ns in most if ns >= _SHOWN_NS]
    return (*lines, f"held meanwhile by: {', '.join(who)}") if who else tuple(lines)


def _one_at_a_time(facts: Facts, one: NodeContention) -> str:
    """The stage's line with one call at a time; words for what is in no stage."""
    function = facts.functions.get(one.node.function or 0)
    if function is not None and function.kind != "tf.data":
        return element_by_element.pasted(facts, one.node) or (
            f"{element_by_element.instead(facts, one.node)}: {_EACH_OTHER}"
        )
    own = pastes.written(pipelines.with_calls(facts, one.node, 1))
    return own or f"dataset.map(..., num_parallel_calls=1)  # {_EACH_OTHER}"


def _waits(facts: Facts, one: NodeContention) -> Finding:
    real = one.program_culprits
    who = real[0].label if real else "other Python code"
    own = bool(real) and real[0].node == one.node.id
    site = facts.site(one.node.id)
    if own:
        fix = _one_at_a_time(facts, one)
    else:
        elsewhere = "" if _is_main(who) else f"run {who} in another process (multiprocessing), or "
        fix = (
            f"{elsewhere}let {'the main thread' if _is_main(who) else 'it'} use NumPy and TensorFlow functions, which "
            "release the GIL, instead of Python loops"
        )
    return Finding(
        "gil-wait", "warning", one.node.id, (),
        f"{one.node.body} waits {percent(one.wait_share or 0)} of its time for the GIL, mostly for "
        f"{'other calls of its own' if own else who}. One thread at a time can run Python, however many there are",
        fix, site.file if site else one.node.file, site.line if site else one.node.line, evidence=_evidence(one),
    )  # fmt: skip


def _inside(facts: Facts, one: NodeContention) -> Finding:
    """Most of the waiting is inside the body: to get the GIL back after something let it go."""
    real = one.program_culprits
    who = thread_name(real[0].label) if real else "other Python code"
    own = bool(real) and real[0].node == one.node.id
    inside_ns = one.reacquire_ns or 0
    site = facts.site(one.node.id)
    if own:
        fix = _one_at_a_time(facts, one)
    else:
        fix = (
            "sys.setswitchinterval(0.0005)  # Python code gives the GIL up after 0.5 ms, not 5, when a thread waits\n"
            f"# better: {'fewer Python loops there' if _is_main(who) else f'run {who} in another process'}"
        )
    return Finding(
        "inside-waits", "warning", one.node.id, (),
        f"{one.node.body} lets the GIL go while it runs (in NumPy, I/O, a sleep) and waits to get it back: "
        f"{inside_ns / one.measured / 1e6:.2f} ms a call inside the body, {inside_ns / 1e9:.2f} s in all, mostly for "
        f"{'other calls of its own' if own else who}",
        fix, site.file if site else one.node.file, site.line if site else one.node.line, evidence=_evidence(one),
    )  # fmt: skip


def _useless(facts: Facts, one: NodeContention, stage: StageAnswer, gain: float) -> Finding:
    site = facts.site(one.node.id)
    holds = "" if one.held_share is None else f", {percent(one.held_share)} of its time"
    return Finding(
        "parallel-calls", "warning", one.node.id, (),
        f"{stage.at_once:.1f} calls of {one.node.body} run at once and wait {percent(one.wait_share or 0)} of their "
        f"time for the GIL. More parallel calls bring at most x{gain:.2f}, because the body holds the GIL while it "
        f"works{holds}",
        element_by_element.pasted(facts, one.node)
        or pastes.written(pipelines.with_calls(facts, one.node, 1))
        or "dataset.map(..., num_parallel_calls=1)  # as fast; faster: batch before the map, one call a batch",
        site.file if site else one.node.file, site.line if site else one.node.line,
        evidence=(
            *_evidence(one),
            f"faster: {batched_maps.words(facts, one.node, stage.setting.batch if stage.setting else None)}"
            if batched_maps.is_tiny(facts, one.node) else
            f"faster: {element_by_element.instead(facts, one.node)}, which let the GIL go; or compute it before, in "
            "several processes, and read the results",
        ),
    )  # fmt: skip


def _tiny(facts: Facts) -> Iterator[Finding]:
    wall = facts.wall_ns
    if wall is None:
        return
    waited_for: set[int] | None = None
    for group in facts.lines:
        calls = facts.calls_of(group)
        if calls.count < MANY_CALLS or calls.errors:
            continue
        node, crossing = group[0], CROSSING_NS[group[0].kind]
        mean, total = calls.total_ns / calls.count, crossing * calls.count
        if mean * 2 > crossing or total < SHARE * wall:
            continue
        if waited_for is None:
            waited_for = {one.id for loop in bound(facts) for one in tiny(facts, loop)}
        if any(each.id in waited_for for each in group):
            continue  # told with the loop that waits for it
        yield _small(facts, node, calls.count, mean, crossing, total, wall)


def _small(facts: Facts, node: Node, count: int, mean: float, crossing: int, total: int, wall: int) -> Finding:
    function = facts.functions.get(node.function or 0)
    data = function is not None and function.kind == "tf.data"
    name = facts.name(node)
    graph_code = paying(facts, node)
    tried = trial(facts, node) if graph_code else None
    fix = graph_code or (batched_maps.batched_first(facts, node) if data else "") or (
        f"dataset.batch(256).map(...)  # so that {name} gets 256 elements in one call; then .unbatch() if need be"
        if data else
        f"{name}: give it many values in one call (tf.stack, or a batch), or write it with tf.* functions"
    )  # fmt: skip
    if not fix.startswith(("Replace", "Put")) and _may_graduate(facts, node):
        fix += f"\nprint(pyfunc_debug.graduate({node.body!r}))  # recorded with values='full': does it need Python?"
    site = facts.site(node.id)
    return Finding(
        "tiny-calls", "warning", node.id, (),
        f"{count:,} calls of {node.body} took {mean / 1e3:.0f} us each, less than the way into Python and back (about "
        f"{crossing / 1e3:.0f} us). That way took some {total / 1e9:.1f} s of {wall / 1e9:.1f} s",
        fix, site.file if site else node.file, site.line if site else node.line,
        evidence=(
            f"{count:,} calls, {mean * count / 1e9:.2f} s in the body itself",
            *(() if tried is None else (f"graph code was tried as the recording ended: {tried['said']}",)),
        ),
        confidence="likely",
    )  # fmt: skip


def _may_graduate(facts: Facts, node: Node) -> bool:
    """Whether nothing in a body's source says that graph code cannot do it."""
    if node.file is None or not facts.source(node.file) or facts.source(node.file) != read(node.file).lines:
        return False
    function = definition(node.file, node.line)
    return function is not None and not obstacles(node.file, function, ("numpy", "math"))
