"""Bodies in a graph whose calls are in progress at the same time, as one in each tower, and share the one GIL.

A Session, or a tf.function, starts ops that do not depend on each other at once, and threads call functions at once.
What computes with the GIL gets on one call at a time. Stages of tf.data are asked about in `time`, generators in
`parallel_generators`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor.bodies import element_by_element
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.pfrec.stopped import QUERY, covered_ns
from pyfunc_debug.records import Finding, Node

NAMES = ("gil-wait",)
_WAIT_NS, _LEAST = 200_000_000, 10
"""The least time that nobody could get on in calls beside each other, and the least of such calls."""
_BESIDE, _ALONE = 0.5, 0.1
"""Shares of its time from which a call was beside another, and up to which it ran alone."""
_SEVERAL, _BUSY, _OUTSIDE = 1.5, 0.8, 0.1
"""Mean calls in progress, the share of their time that one of them held the GIL, and of their CPU time the largest that
is without it."""
_PART, _SLOWER = 0.1, 1.3
"""Share of the time from which a body is named; and how much longer its calls are than alone, where that is said."""


@dataclass(frozen=True, slots=True)
class _Call:
    node: int
    begin_ns: int
    end_ns: int
    held_ns: int
    cpu_ns: int
    beside: float = 0.0

    @property
    def took_ns(self) -> int:
        return self.end_ns - self.begin_ns


def check(facts: Facts) -> Iterator[Finding]:
    """At most one finding, with all bodies that run beside each other."""
    found = beside(facts)
    if found:
        yield _finding(facts, found)


def told(facts: Facts) -> set[int]:
    """The nodes that the finding is about: no more has to be said of their waiting."""
    return {one.node for one in beside(facts)}


def beside(facts: Facts) -> list[_Call]:
    """All calls of the user's bodies whose calls took turns, if some did for long."""
    nodes = [one.id for one in facts.nodes.values() if one.origin == "user" and not _of_data(facts, one)]
    waits = facts.waits
    if not any(number in waits and _lost(waits[number].wait, waits[number].inside) for number in nodes):
        return []
    calls = _calls(facts, nodes)
    if calls is None:
        return []
    together = [one for one in calls if one.beside >= _BESIDE]
    if len(together) < _LEAST or not _took_turns(facts, together):
        return []
    named = {one.node for one in together}
    return [one for one in calls if one.node in named]


def _lost(wait_ns: int, inside: Sequence[int | None]) -> bool:
    """Whether a node may have waited for long; a switch of threads that it was forced to counts as released."""
    return wait_ns + (inside[1] or 0) + (inside[2] or 0) >= _WAIT_NS


def _of_data(facts: Facts, node: Node) -> bool:
    function = facts.functions.get(node.function or 0)
    return function is not None and function.kind == "tf.data"


def _took_turns(facts: Facts, calls: Sequence[_Call]) -> bool:
    """Whether one of them held the GIL nearly all the time, so that the others could not get on."""
    took, held = sum(one.took_ns for one in calls), sum(one.held_ns for one in calls)
    cpu = sum(one.cpu_ns for one in calls)
    covered = _covered(calls)
    if cpu > held * (1 + _OUTSIDE) or held < _BUSY * covered:
        return False
    return bool(took >= _SEVERAL * covered and took - covered >= facts.least_ns(_WAIT_NS))


def _calls(facts: Facts, nodes: Sequence[int]) -> list[_Call] | None:
    """The calls of these nodes in the order of their begins; None where not all of it was measured."""
    if facts.reader.rows(f"{QUERY} LIMIT 1"):
        return None  # somebody held calls by hand
    rows = facts.reader.rows(
        "SELECT node, thread, start_ns - ifnull(wait_ns, 0), end_ns, held_ns, cpu_ns, gil.grade FROM call "
        f"LEFT JOIN gil ON gil.call = call.id WHERE node IN ({','.join(map(str, nodes))}) AND end_ns IS NOT NULL "
        "ORDER BY 3"
    )
    own: list[_Call] = []
    busy: dict[int, int] = {}
    for node, thread, begin, end, held, cpu, grade in rows:
        if end <= busy.get(thread, 0):
            continue  # made inside another call, in whose time it is
        if held is None or cpu is None or grade != "native":
            return None
        busy[thread] = end
        own.append(_Call(node, begin, end, held, cpu))
    return _with_shares(own)


def _with_shares(calls: Sequence[_Call]) -> list[_Call]:
    """The same calls, each with the share of its time in which another was in progress."""
    changes = sorted([(one.begin_ns, 1) for one in calls] + [(one.end_ns, -1) for one in calls])
    shared, at, running, before = {}, 0, 0, 0
    for moment, change in changes:
        at += moment - before if running > 1 else 0
        running, before = running + change, moment
        shared[moment] = at
    return [
        _Call(
            one.node, one.begin_ns, one.end_ns, one.held_ns, one.cpu_ns,
            (shared[one.end_ns] - shared[one.begin_ns]) / max(one.took_ns, 1),
        )
        for one in calls
    ]  # fmt: skip


def _finding(facts: Facts, calls: Sequence[_Call]) -> Finding:
    together = [one for one in calls if one.beside >= _BESIDE]
    alone = [one for one in calls if one.beside <= _ALONE]
    took = sum(one.took_ns for one in together)
    of_node: dict[str, int] = {}
    for one in together:
        name = facts.name(facts.nodes[one.node])
        of_node[name] = of_node.get(name, 0) + one.took_ns
    names = [name for name, ns in sorted(of_node.items(), key=lambda item: -item[1]) if ns >= _PART * took][:3]
    who = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    first = next(facts.nodes[one.node] for one in together if facts.name(facts.nodes[one.node]) == names[0])
    covered = _covered(together)
    mean, single = _mean(together), _mean(alone) if alone and len(names) == 1 else 0.0
    slower = f", {mean / 1e6:.0f} ms each; the {len(alone)} that ran alone took {single / 1e6:.0f} ms"
    instead = element_by_element.instead(facts, first)
    if len(names) > 1:
        instead = f"NumPy on whole arrays or tf.* in place of plain Python in {who}"
    held = sum(one.held_ns for one in together) / len(together)
    waited = f": of {mean / 1e6:.0f} ms each held the GIL for {held / 1e6:.0f} ms"
    nodes = {one.node for one in together}
    places = f", in {len(nodes)} ops of the graph," if len(nodes) > 1 else ""
    site = facts.site(first.id)
    return Finding(
        NAMES[0], "warning", first.id, (),
        f"{len(together):,} calls of {who}{places} ran beside others, {took / covered:.1f} at once, and took turns"
        f"{slower if single and mean >= _SLOWER * single else waited}. Their Python holds the GIL, which one thread "
        "has at a time: more towers, threads or GPUs make it no faster",
        f"{instead}; or compute "
        f"{'its' if len(names) == 1 else 'their'} results in other processes (multiprocessing), as a part of the input",
        site.file if site else first.file, site.line if site else first.line,
        evidence=(
            f"one of them held the GIL {percent(min(sum(one.held_ns for one in together) / covered, 1.0))} of the "
            f"{covered / 1e9:.1f} s in which they were in progress",
        ),
    )  # fmt: skip


def _mean(calls: Sequence[_Call]) -> float:
    return sum(one.took_ns for one in calls) / len(calls)


def _covered(calls: Sequence[_Call]) -> int:
    """For how long any of these calls was in progress."""
    return covered_ns((one.begin_ns, one.end_ns) for one in calls)
