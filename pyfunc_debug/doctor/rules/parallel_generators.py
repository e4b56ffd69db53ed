"""Generators that `interleave` runs side by side, and whose Python waits for each other's: the GIL is one."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.analysis.contention import NodeContention
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import FROM_GENERATOR, Finding, Node

NAMES = ("parallel-calls",)
SEVERAL = 1.3
"""Mean calls in progress, with their waits, from which a node's calls run side by side."""
_WAIT_NS, _WAIT_SHARE, _HOLDS, _OUTSIDE = 200_000_000, 0.25, 0.65, 0.1
"""The least wait, its share of the calls' time, the share of the bodies' own time that holds the GIL, and of their CPU
time the largest that does not. A thread that has to give the GIL up waits until another has it, and asks again only
then (CPython's FORCE_SWITCHING): on a machine with other work that takes as long as a wait, and counts as released."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a generator that runs several times at once, and holds the GIL while it works."""
    for one in facts.contention.nodes if _may_wait(facts) else ():
        if takes_turns(facts, one):
            yield _finding(facts, one)


def takes_turns(facts: Facts, one: NodeContention) -> bool:
    """Whether it is a generator whose calls run at once, hold the GIL while they work, and wait for each other."""
    function = facts.functions.get(one.node.function or 0)
    if function is None or function.name != FROM_GENERATOR or not facts.source(one.node.file):
        return False  # TensorFlow's own nodes beside a generator have no source of the user's
    return _waits_for_itself(one) and _computes_with_gil(facts, one.node) and at_once(facts, one.node) >= SEVERAL


def _computes_with_gil(facts: Facts, node: Node) -> bool:
    """Whether nearly all of a node's CPU time was with the GIL."""
    rows = facts.reader.rows(
        "SELECT total(cpu_ns), total(held_ns) FROM call JOIN gil ON gil.call = call.id WHERE node = ? AND cpu_ns "
        "IS NOT NULL AND held_ns IS NOT NULL",
        (node.id,),
    )
    cpu, held = rows[0]
    return bool(cpu) and cpu <= held * (1 + _OUTSIDE)


def at_once(facts: Facts, node: Node) -> float:
    """How many calls of a node were in progress on average while any was, as far as it is known."""
    spans = facts.reader.rows(
        "SELECT start_ns - ifnull(wait_ns, 0), end_ns FROM call LEFT JOIN gil ON gil.call = call.id "
        "WHERE node = ? AND end_ns IS NOT NULL ORDER BY 1",
        (node.id,),
    )
    covered, until = 0, 0
    for start, end in spans:
        covered += max(end - max(start, until), 0)
        until = max(until, end)
    return sum(end - start for start, end in spans) / covered if covered else 0.0


def _may_wait(facts: Facts) -> bool:
    """Whether any node waited for long: most recordings need no more than this question."""
    return any(one.wait + (one.inside[2] or 0) >= _WAIT_NS for one in facts.waits.values())


def _waits_for_itself(one: NodeContention) -> bool:
    waited, total = one.wait_ns + (one.reacquire_ns or 0) - one.ours_ns, one.wait_ns + one.body_ns
    own = one.program_culprits[:1]
    known = one.grade == "native" and (one.held_share or 0.0) >= _HOLDS
    return known and waited >= max(_WAIT_NS, _WAIT_SHARE * total) and [each.node for each in own] == [one.node.id]


def _finding(facts: Facts, one: NodeContention) -> Finding:
    name, held = facts.name(one.node), one.held_share or 1.0
    site = facts.site(one.node.id)
    return Finding(
        NAMES[0], "warning", one.node.id, (),
        f"several generators of {name} run at once, and wait {percent(one.wait_share or 0.0)} of their time for the "
        "GIL, mostly for each other. One thread at a time can run Python: side by side they are at most "
        f"x{1 / held:.1f} as fast as one after the other",
        f"{name}: NumPy on whole arrays or tf.* in place of Python loops, which hold the GIL; or let several processes "
        "compute the elements, by a multiprocessing.Pool in one generator, or into files",
        site.file if site else one.node.file, site.line if site else one.node.line,
        evidence=(f"{one.sentence}; {(one.wait_ns + (one.reacquire_ns or 0)) / 1e9:.2f} s in {one.measured:,} calls",),
    )  # fmt: skip
