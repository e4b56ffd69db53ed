"""Bodies that run again and again for inputs that they had before, and give the same: what a cache would save."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets import cut_caches, endless_sources
from pyfunc_debug.doctor.datasets.cached_chains import cache_at, cached_before_shuffle
from pyfunc_debug.doctor.datasets.held_elements import would_hold
from pyfunc_debug.doctor.facts import Definition, Facts, makes_node
from pyfunc_debug.pfrec.stopped import covered_ns
from pyfunc_debug.records import Finding, Node

NAMES = ("recomputed",)
_ROWS = 5000
"""How many calls of a node are compared."""
_LEAST = 20
_HIT_RATE = 0.5
_SAVED_NS = 2_000_000_000
_SHARE = 0.15
_CACHE = ".cache()"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line. Bodies with random numbers, a state or a clock are left alone."""
    wall = facts.wall_ns
    if wall is None:
        return
    for group in facts.lines:
        node = max(group, key=lambda one: facts.calls(one.id).count)
        calls = facts.calls(node.id)
        if calls.count < _LEAST:
            continue
        idle = cut_caches.cut(facts, node)  # a cache that serves nothing is named where it saves little, too
        if idle is None and calls.total_ns < max(_SAVED_NS, _SHARE * wall):
            continue
        function, tree = facts.function(node), facts.tree(node.file)
        if function is None or tree is None or (idle is None and _is_impure(function, tree)):
            continue
        compared, different, results = known(facts, node)
        saved = calls.total_ns / calls.count * (compared - different)
        if compared < _LEAST or results != different or compared - different < _HIT_RATE * compared:
            continue
        saved = min(saved, _covered_ns(facts, node) * (compared - different) / compared)  # calls run at once
        if saved >= max(_SAVED_NS, _SHARE * wall) and not _read_apart(facts, node):
            yield _finding(facts, node, compared, different, saved, wall, idle)
        elif idle is not None:
            yield _finding(facts, node, compared, different, 0, wall, idle)


def _is_impure(function: Definition, tree: ast.AST) -> bool:
    return code.is_random(function, tree) or bool(code.state_writes(function)) or code.clock(function) is not None


def _covered_ns(facts: Facts, node: Node) -> int:
    """How long at least one of a node's calls was in progress."""
    return covered_ns(facts.reader.rows(
        "SELECT start_ns, end_ns FROM call WHERE node = ? AND kind = 'forward' AND end_ns IS NOT NULL", (node.id,)
    ))  # fmt: skip


def known(facts: Facts, node: Node) -> tuple[int, int, int]:
    """Calls that can be compared, different inputs among them, and different pairs of inputs and outputs."""
    rows = facts.reader.rows(
        "SELECT count(*), count(DISTINCT given), count(DISTINCT given || '>' || gave) FROM (SELECT "
        "group_concat(hex(v.digest) || v.dtype || v.shape) FILTER (WHERE v.role = 'input') AS given, "
        "group_concat(hex(v.digest) || v.dtype || v.shape) FILTER (WHERE v.role = 'output') AS gave FROM "
        f"(SELECT id FROM call WHERE node = ? AND kind = 'forward' AND status = 'ok' ORDER BY id LIMIT {_ROWS}) c "
        "JOIN value v ON v.call = c.id GROUP BY c.id HAVING count(*) = count(v.digest)) WHERE given > '' AND gave > ''",
        (node.id,),
    )
    return int(rows[0][0]), int(rows[0][1]), int(rows[0][2])


def _finding(
    facts: Facts, node: Node, compared: int, different: int, saved: float, wall: int, idle: dict[str, Any] | None
) -> Finding:
    again = compared - different
    site = facts.site(node.id)
    never = endless_sources.behind(facts, node)
    loop = idle or unfilled(facts, node) if never is None or not never.why else None
    text = (
        f"{node.body} had the inputs of an earlier call in {again:,} of {compared:,} calls, and gave the same again"
        + (f": some {saved / 1e9:.1f} s of {wall / 1e9:.1f} s" if saved else "")
    )
    if loop is not None:
        text += ". The .cache() behind it kept nothing, as no pass read its dataset to the end"
    elif never is not None and never.why:
        text += f". A .cache() behind it is never full, and serves nothing: {never.why}"
    fix = filled(facts, loop) if loop is not None else cached(facts, node) if never is None else never.cure
    serves = f": a cache would have served {again / compared:.0%}" if never is None or loop is not None else ""
    return Finding(
        NAMES[0], "note", node.id, (), text,
        fix or f"keep what {facts.name(node)} gave for each input, or compute it before the loop",
        site.file if site else node.file, site.line if site else node.line,
        evidence=(
            f"{different:,} different inputs in {compared:,} calls{serves}",
            *_words(facts, node, fix, compared, different),
        ),
    )  # fmt: skip


def would_hold_then(facts: Facts, node: Node, fix: str) -> tuple[str, ...]:
    """What the cache of a paste holds, where that is much.

    Args:
      facts: The recording.
      node: The node of the map before the cache.
      fix: The paste, which may be another one.
    """
    return _words(facts, node, fix, *known(facts, node)[:2]) if _CACHE in fix else ()


def _words(facts: Facts, node: Node, fix: str, compared: int, different: int) -> tuple[str, ...]:
    if _CACHE not in fix or not compared:
        return ()
    words = would_hold(facts, node, facts.calls(node.id).count * different // compared)
    return (words,) if words else ()


def unfilled(facts: Facts, node: Node) -> dict[str, Any] | None:
    """A loop with a cache behind a node that ran again in each pass: TensorFlow drops what it kept of a part."""
    if _read_apart(facts, node):
        return None
    for loop in facts.meta.get("inputs") or []:
        stages = loop["stages"]  # the last first
        cache = cache_at(stages)
        if cache is None or loop["iterators"] < 2 or loop["site"] is None:
            continue
        if any(node.token in stage["tokens"] for stage in stages[cache + 1 :]):
            return dict(loop)
    return None


def _read_apart(facts: Facts, node: Node) -> bool:
    """Whether a node's elements were read both behind a cache and without one: which read made it run is not known.

    Parallel calls are made for elements that nobody takes, as where the first one is read for its shape.
    """
    caches = set()
    for loop in facts.meta.get("inputs") or []:
        places = [place for place, stage in enumerate(loop["stages"]) if node.token in stage["tokens"]]
        cache = cache_at(loop["stages"])
        caches |= {cache is not None and cache < place for place in places}
    return len(caches) > 1


def filled(facts: Facts, loop: dict[str, Any]) -> str:
    """The line of the cache with a take() before it, of as many elements as each pass read."""
    if any(stage["kind"] == "Take" for stage in loop["stages"][: cache_at(loop["stages"])]):
        return cut_caches.moved(facts, loop) or "dataset.take(n).cache() in place of dataset.cache().take(n)"
    if cut_caches.breaks(facts, loop["site"]):  # which also leaves a take() before its end
        return "for element in dataset.take(n).cache(): ...  # to its end, without the break"
    stages, passes, taken = loop["stages"], int(loop["iterators"]), int(loop["taken"])
    cache = next(place for place, stage in enumerate(stages) if stage["kind"].startswith("Cache"))
    each = taken // passes * math.prod(stage["batch"] or 1 for stage in stages[:cache])
    file = str(loop["site"][0])
    calls = [
        one for one in pastes.walk(facts.tree(file), ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "cache"
    ]  # fmt: skip
    if not each or taken % passes or len(calls) != 1 or not isinstance(calls[0].func, ast.Attribute):
        return "for element in dataset: ...  # to its end in each pass; or dataset.take(n).cache() for a part of it"
    given = calls[0].func.value
    new = f"{pastes.text_of(facts, file, given)}.take({each})"
    return pastes.written(pastes.replaced(facts, file, {given: new})) or f".take({each}).cache()"


def cached(facts: Facts, node: Node) -> str:
    """The line of the map that calls a node, with a cache behind it; "" where its chain has one.

    A shuffle before it goes behind the cache, which would keep the order of the first pass.
    """
    for frame in reversed(node.stack):
        calls = pastes.around(facts.tree(frame.file), frame.line, ast.Call)
        maps = [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "map"]
        if maps:
            given = [(one, part) for one in maps for part in one.args[:1]]
            named = [one for one, part in given if any(map(makes_node, pastes.walk(part, ast.Call)))]
            own = named[0] if len(named) == 1 else maps[-1]
            if _has_cache(facts, frame.file, own):
                return ""
            if _is_shuffled(facts, node):
                moved = cached_before_shuffle(pastes.source(facts, frame.file), frame.file, own)
                return pastes.written(moved) or (
                    f"cache behind the map of {facts.name(node)}, and the shuffle behind the cache: this would keep "
                    "the order of the first pass"
                )
            new = f"{pastes.text_of(facts, frame.file, own)}.cache()"
            return pastes.written(pastes.replaced(facts, frame.file, {own: new}))
    return ""


def _is_shuffled(facts: Facts, node: Node) -> bool:
    """Whether the elements come to a node's map in another order in each pass."""
    for loop in facts.meta.get("inputs") or []:
        stages = loop["stages"]  # the last first
        place = next((at for at, stage in enumerate(stages) if node.token in stage["tokens"]), len(stages))
        if any(stage["kind"].startswith("Shuffle") and stage.get("reshuffles") for stage in stages[place + 1 :]):
            return True
    return False


def _has_cache(facts: Facts, file: str, call: ast.Call) -> bool:
    """Whether a cache stands in the chain of calls that a map is part of, before it or behind it."""
    chain: list[ast.AST] = [*pastes.walk(call.func, ast.Attribute), *pastes.source(facts, file).around(call)]
    for one in chain:
        if isinstance(one, ast.stmt):
            break
        if isinstance(one, ast.Attribute) and one.attr == "cache":
            return True
    return False
