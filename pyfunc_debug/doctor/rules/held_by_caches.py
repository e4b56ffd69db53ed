"""A `.cache()` without a file: it keeps all elements in memory, and grows through the first pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.cached_chains import cache_at, kind_of
from pyfunc_debug.doctor.datasets.held_elements import TOLD_BYTES, bytes_of, size_text
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("memory",)
_SAME = ("Map", "ParallelMap", "Shuffle", "Prefetch", "Options", "Model")
"""Stages between the body and the cache that keep the elements as many, and about as large."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a cache."""
    told: set[int] = set()
    by_token = facts.own_by_token
    for loop in facts.meta.get("inputs") or []:
        stages = loop["stages"]  # the last first
        cache = cache_at(stages)
        if cache is None or "cache" in stages[cache] or not loop["site"]:
            continue
        above = stages[cache + 1 :]
        place = next((at for at, one in enumerate(above) if any(token in by_token for token in one["tokens"])), None)
        if place is None or not all(kind_of(one) in _SAME for one in above[:place]):
            continue
        for token in above[place]["tokens"]:
            node = by_token.get(token)
            calls = facts.calls(node.id).count if node is not None else 0
            if node is None or node.id in told:
                continue
            size = bytes_of(facts, [node], calls)
            if size < TOLD_BYTES:
                continue
            told.add(node.id)
            file, (line, fix) = str(loop["site"][0]), _in_file(facts, node.file)
            yield Finding(
                NAMES[0], "note", node.id, (),
                f"a .cache() without a file keeps in memory all that {facts.name(node)} gave: {calls:,} elements, some "
                f"{size_text(size)}, from the first pass until its dataset is gone. The buffers of shuffle and "
                "prefetch change nothing of that",
                fix or '.cache("elements")  # in a file; or none, where an element costs little',
                node.file if fix else file, line if fix else int(loop["site"][1]),
            )  # fmt: skip


def _in_file(facts: Facts, file: str | None) -> tuple[int, str]:
    """The line of the one cache of a file without a name, and the same with one; 0 and "" where it is not the only."""
    calls = [
        one for one in pastes.walk(facts.tree(file), ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "cache"
    ]  # fmt: skip
    if len(calls) != 1 or calls[0].args or calls[0].keywords:
        return 0, ""
    name = pastes.text_of(facts, file, calls[0].func)
    return calls[0].lineno, pastes.written(pastes.replaced(facts, file, {calls[0]: f'{name}("elements")'}))
