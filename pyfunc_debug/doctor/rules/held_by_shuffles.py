"""A shuffle behind a map that makes large elements: its buffer holds as many of them in memory."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.cached_chains import before, kind_of, method, reordered
from pyfunc_debug.doctor.datasets.held_elements import TOLD_BYTES, bytes_of, size_text
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding, Node

NAMES = ("memory",)
_SAME = ("Map", "ParallelMap", "Prefetch", "Options", "Model", "Batch", "ParallelBatch")
"""Stages between the body and the shuffle that keep what the body gave."""
_SMALLER = 4
"""How many times smaller the inputs of a body are, which the shuffle would hold in place of its results."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    told: set[int] = set()
    for loop in facts.meta.get("inputs") or []:
        stages = loop["stages"]  # the last first
        places = [at for at, one in enumerate(stages) if kind_of(one) == "Shuffle" and one.get("buffer")]
        if not places or not loop["site"]:
            continue
        buffer, above = int(stages[places[-1]]["buffer"]), stages[places[-1] + 1 :]
        between = list(takewhile(lambda one: kind_of(one) in _SAME, above))
        for at, token in ((at, token) for at, one in enumerate(between) for token in one["tokens"]):
            node = facts.own_by_token.get(token)
            if node is None or node.id in told:
                continue
            rows = math.prod(int(one["batch"] or 1) for one in between[:at])
            held = min(buffer * rows, facts.calls(node.id).count // max(1, int(loop["iterators"])))
            size = bytes_of(facts, [node], held)
            if size < TOLD_BYTES or bytes_of(facts, [node], held, "input") * _SMALLER > size:
                continue
            told.add(node.id)
            yield _finding(facts, loop, node, buffer, held, size)


def _finding(facts: Facts, loop: dict[str, Any], node: Node, buffer: int, held: int, size: int) -> Finding:
    file = str(loop["site"][0])
    found = _shuffle(facts, file)
    edit = _before_maps(facts, node, file, found) if found is not None else None
    return Finding(
        NAMES[0], "note", node.id, (),
        f"a .shuffle({buffer}) behind the map holds in memory what {facts.name(node)} gave for {held:,} elements, "
        f"some {size_text(size)}, and gives the first when it has them all. Before the map it holds what "
        f"{facts.name(node)} gets, {size_text(bytes_of(facts, [node], held, 'input'))}",
        pastes.written(edit) or f".shuffle({buffer}) before the map: of paths or numbers",
        file, found.end_lineno if found is not None else int(loop["site"][1]),
    )  # fmt: skip


def _shuffle(facts: Facts, file: str) -> ast.Call | None:
    """The one shuffle of the file."""
    found = [one for one in pastes.walk(facts.tree(file), ast.Call) if method(one) == "shuffle"]
    return found[0] if len(found) == 1 else None


def _before_maps(facts: Facts, node: Node, file: str, shuffle: ast.Call) -> Edit | None:
    """The lines with the shuffle in front of the maps that it stands behind; None where others are between."""
    own = pastes.source(facts, file)
    calls = before(own, shuffle)
    maps: Sequence[ast.Call] = [*takewhile(lambda one: method(one) == "map", calls[-2::-1])][::-1]
    lines = {frame.line for frame in node.stack if frame.file == file}
    if not any(one.lineno <= line <= (one.end_lineno or 0) for one in maps for line in lines):
        return None
    return reordered(own, file, [*maps, shuffle], [shuffle, *maps])
