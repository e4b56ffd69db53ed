"""A loop whose first element comes late: a shuffle behind slow Python gives nothing until its buffer is full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.datasets import session_shuffles
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import Finding, Node

NAMES = ("late-shuffle",)
_SHARE, _LEAST_NS = 0.3, 2_000_000_000
"""Share of the recording, and time, that the first elements of a loop took."""
_OF_BODY = 0.5
"""Share of that time for which the body ran, at least."""
_LEAST = 20
"""Elements in a buffer from which it is said."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    wall, told = facts.wall_ns, set()
    by_token = facts.by_token
    for loop in facts.meta.get("inputs") or []:
        site, first_ns = loop["site"], int(loop["first_ns"])
        if not site or not loop["taken"] or wall is None or first_ns < max(facts.least_ns(_LEAST_NS), _SHARE * wall):
            continue
        stages = loop["stages"]  # the last first
        place = next((at for at, one in enumerate(stages) if one["kind"].startswith("Shuffle")), None)
        if place is None or (stages[place].get("buffer") or 0) < _LEAST or (site[0], site[1]) in told:
            continue
        nodes = [by_token[token] for stage in stages[place + 1 :] for token in stage["tokens"] if token in by_token]
        slow = max(nodes, key=lambda one: facts.calls(one.id).total_ns, default=None)
        if slow is None or any("Cache" in stage["kind"] and loop["iterators"] > 1 for stage in stages[place + 1 :]):
            continue
        if facts.calls(slow.id).total_ns >= _OF_BODY * first_ns:
            told.add((site[0], site[1]))
            yield _finding(facts, loop, slow, int(stages[place]["buffer"]), wall)
    seen = {token for loop in facts.meta.get("inputs") or [] for stage in loop["stages"] for token in stage["tokens"]}
    for node in facts.nodes.values():
        if node.token not in seen and facts.calls(node.id).count >= _LEAST:
            yield from _of_session(facts, node)


def _of_session(facts: Facts, node: Node) -> Iterator[Finding]:
    """Of what a session of TensorFlow 1 reads, whose loop nobody sees."""
    one = session_shuffles.filled(facts, node)
    if one is None or one.buffer < _LEAST or one.body_ns < _OF_BODY * one.took_ns:
        return
    if one.took_ns < max(facts.least_ns(_LEAST_NS), _SHARE * (facts.wall_ns or 0)):
        return
    name, each = facts.name(node), one.body_ns / min(one.made, one.buffer) / 1e6
    share = f", {percent(one.took_ns / facts.wall_ns)} of the time in all" if facts.wall_ns else ""
    if one.full:
        text = f"the first element came no sooner than after {one.took_ns / 1e9:.1f} s{share}"
        rest = f". Of {one.made:,} elements at most {one.made - one.buffer + 1:,} left it"
    else:
        text = f"no element came in {one.took_ns / 1e9:.1f} s{share}"
        rest = f". It held {one.made:,} when the program ended, and was still being filled"
    fix, size = session_shuffles.smaller(facts, one)
    mixes = f"this mixes {size:,} elements at a time, not {one.buffer:,}: where neighbours are alike, " if fix else ""
    yield Finding(
        NAMES[0], "warning", node.id, (),
        f"{text}: shuffle({one.buffer:,}) gives nothing until it holds as many elements, or all there are, and {name} "
        f"takes {each:.1f} ms for each{rest}",
        fix or "a smaller buffer, which mixes less", one.file, one.call.end_lineno or one.call.lineno,
        evidence=(f"{mixes}shuffle names, files or indices before {name} reads them",), confidence="likely",
    )  # fmt: skip


def _finding(facts: Facts, loop: dict[str, Any], slow: Node, buffer: int, wall: int) -> Finding:
    calls, passes = facts.calls(slow.id), int(loop["iterators"])
    each, name = int(loop["first_ns"]) / passes / 1e9, facts.name(slow)
    first = f"the first element came after {each:.1f} s" if passes == 1 else (
        f"the first element of each of {passes:,} passes came after {each:.1f} s"
    )  # fmt: skip
    fix = (
        "shuffle names or indices, and load behind that: tf.data.Dataset.from_tensor_slices(names).shuffle(len(names))"
        ".map(load, num_parallel_calls=tf.data.AUTOTUNE)"
        if facts.is_generator(slow)
        else f"shuffle before the map of {name}: what it mixes there costs nothing"
    )
    return Finding(
        NAMES[0], "warning", slow.id, (),
        f"{first}, {percent(int(loop['first_ns']) / wall)} of the time in all: shuffle({buffer:,}) gives nothing until "
        f"it holds as many elements, or all there are, and {name} takes {calls.total_ns / calls.count / 1e6:.1f} ms "
        "for each",
        fix, str(loop["site"][0]), int(loop["site"][1]), evidence=("or a smaller buffer, which mixes less",),
        confidence="likely",
    )  # fmt: skip
