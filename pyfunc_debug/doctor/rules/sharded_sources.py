"""Shards of a generator whose runs all take from one queue or iterator: each drops items that no other run sees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.shared_sources import Source, passes, source_of
from pyfunc_debug.records import Finding, Node

NAMES = ("shared-state",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a generator."""
    for node, _ in facts.generators.values():
        loops = [
            one for one in facts.meta.get("inputs") or []
            if any(node.token in stage["tokens"] for stage in one["stages"])
        ]  # fmt: skip
        if not loops or not all(_shards(one, node) for one in loops):
            continue
        runs = passes(facts, node)
        beside = sum(
            any(first < other[1] and other[0] < last for other in runs if other[0] != first) for first, last, _ in runs
        )
        emptied = len(loops) > 1 and len(runs) > 1 and runs[0][2] > 0 and not any(items for _, _, items in runs[1:])
        source = source_of(facts, node) if beside > 1 or emptied else None
        if source is not None:
            yield _finding(facts, node, source, loops, runs, beside)


def _shards(loop: dict[str, Any], node: Node) -> bool:
    """Whether a loop's dataset is a shard of what a node gives."""
    own = next(place for place, stage in enumerate(loop["stages"]) if node.token in stage["tokens"])
    return any(stage["kind"] == "Shard" for stage in loop["stages"][:own])


def _finding(
    facts: Facts, node: Node, source: Source, loops: list[dict[str, Any]], runs: list[tuple[int, int, int]], beside: int
) -> Finding:
    name, taken = facts.name(node), sum(items for _, _, items in runs)
    calls = [one for one in pastes.walk(facts.tree(node.file), ast.Call) if pastes.last_name(one.func) == "shard"]
    counts = {ast.unparse(given) for one in calls if (given := pastes.argument(one, 0, "num_shards")) is not None}
    part = f"one of {counts.pop()} items" if len(counts) == 1 else "its part of the items"
    whole = all(one["stages"][0]["kind"] == "Shard" for one in loops)
    out = sum(one["taken"] for one in loops) if whole and sum(one["iterators"] for one in loops) == len(runs) else taken
    counted = f". The runs took {taken:,} items, and {out:,} came out of the datasets" if out < taken else ""
    told = (
        f"{beside} runs of {name} were open at once, and all take their items from {source.name}: what one has taken "
        "no other sees" if beside > 1
        else f"the first run of {name} took all items from {source.name}, and the later ones got none"
    )  # fmt: skip
    return Finding(
        NAMES[0], "warning", node.id, (runs[0][0], runs[1][0]),
        f"{told}. shard keeps {part} that its own run took, and drops the others{counted}",
        _fix(facts, node, source, calls if beside > 1 else []), node.file, source.line,
        evidence=(
            f"line {source.line}: {facts.line(node.file, source.line)}",
            f"for shards by number: a {source.name} for each, or one iterator over the whole that hands its items out",
        ),
    )  # fmt: skip


def _fix(facts: Facts, node: Node, source: Source, calls: list[ast.Call]) -> str:
    """The datasets without shard: each run then keeps what it takes, as of a queue of work."""
    made = [
        one for one in pastes.walk(facts.tree(node.file), ast.Call) if pastes.last_name(one.func) == "from_generator"
    ]
    pieces: dict[ast.expr, str] = {
        one: pastes.text_of(facts, node.file, one.func.value) for one in calls if isinstance(one.func, ast.Attribute)
    }
    if source.side_by_side and len(made) == 1 and 0 < len(pieces) <= pastes.MOST:
        pasted = pastes.all_replaced(facts, node.file, pieces)
        if pasted:
            return pasted
    return (
        "for number, item in enumerate(dataset): ...  # one iterator over the whole, which hands its items out: to "
        "shard number % n"
    )
