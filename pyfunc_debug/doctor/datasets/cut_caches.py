"""A `.take(n)`, or a `break`, behind a cache: TensorFlow keeps what a cache got of a pass that came to its end only."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.cached_chains import cache_at, kind_of, method
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node

_LAST = 3
"""How many of the last calls must be for inputs of earlier ones: none would be made behind a full cache."""
_PLAIN = ("Batch", "ParallelBatch", "Map", "ParallelMap", "Prefetch", "Options", "Model")
"""Stages that a take may be put before: they keep the order."""


def cut(facts: Facts, node: Node) -> dict[str, Any] | None:
    """A loop with a cache behind a node, where all passes ended before their source; None where one may not have."""
    found = None
    for loop in facts.meta.get("inputs") or []:
        stages = loop["stages"]
        cache, place = (
            cache_at(stages),
            next((at for at, one in enumerate(stages) if node.token in one["tokens"]), None),
        )
        if place is None:
            continue
        if cache is None or cache > place or loop["site"] is None or "cache" in stages[cache]:
            return None
        if not any(kind_of(one) == "Take" for one in stages[:cache]) and not breaks(facts, loop["site"]):
            return None
        found = loop
    return dict(found) if found is not None and _goes_on(facts, node) else None


def breaks(facts: Facts, site: Sequence[Any]) -> bool:
    """Whether the loop of a line has a `break` of its own."""
    loops = [
        one for one in pastes.around(facts.tree(site[0]), site[1], ast.For)
        if one.lineno <= site[1] <= (one.iter.end_lineno or 0)
    ]  # fmt: skip
    inner = [part for one in loops[-1:] for part in ast.walk(one) if isinstance(part, (ast.For, ast.While))][1:]
    inside = {id(part) for one in inner for part in ast.walk(one)}
    return any(isinstance(part, ast.Break) and id(part) not in inside for one in loops[-1:] for part in ast.walk(one))


def _goes_on(facts: Facts, node: Node) -> bool:
    """Whether the last calls of a node had inputs of earlier ones."""
    rows = facts.reader.rows(
        "SELECT c.id, group_concat(hex(v.digest) || v.dtype || v.shape) FROM call c JOIN value v ON v.call = c.id "
        "AND v.role = 'input' WHERE c.node = ? AND c.kind = 'forward' AND v.digest IS NOT NULL GROUP BY c.id "
        "ORDER BY c.id",
        (node.id,),
    )
    given = [one for _, one in rows]
    return len(given) > _LAST and set(given[-_LAST:]) <= set(given[:-_LAST])


def moved(facts: Facts, loop: dict[str, Any]) -> str:
    """The lines with the take before the cache; "" where nobody may move it."""
    stages, file = loop["stages"], str(loop["site"][0])
    cache = cache_at(stages)
    takes = [at for at, one in enumerate(stages[:cache]) if kind_of(one) == "Take"]
    if cache is None or len(takes) != 1 or not stages[takes[0]].get("takes"):
        return ""
    between = stages[takes[0] + 1 : cache]
    if not all(kind_of(one) in _PLAIN for one in between):
        return ""
    size = math.prod(int(one["batch"] or 1) for one in between)
    own = pastes.source(facts, file)
    calls = list(pastes.walk(own.tree, ast.Call))
    caches = [one for one in calls if method(one) == "cache"]
    taken = [one for one in calls if method(one) == "take" and len(one.args) == 1]
    if len(caches) != 1 or len(taken) != 1 or not _alone(taken[0], caches[0], own.tree):
        return ""
    count, given, kept = taken[0].args[0], taken[0].func, caches[0].func
    assert isinstance(given, ast.Attribute)
    assert isinstance(kept, ast.Attribute)
    constant = all(isinstance(one, (ast.Constant, ast.BinOp, ast.operator)) for one in ast.walk(count))
    many = own.text(count) if size == 1 and constant else str(stages[takes[0]]["takes"] * size)
    if any(one is caches[0] for one in ast.walk(given)):  # one chain
        text = own.text_with(given.value, {kept.value: f"{own.text(kept.value)}.take({many})"})
        return pastes.written(pastes.replaced(facts, file, {taken[0]: text}))
    pieces: dict[ast.expr, str] = {
        taken[0]: own.text(given.value),
        kept.value: f"{own.text(kept.value)}.take({many})",
    }
    return pastes.all_replaced(facts, file, pieces)


def _alone(take: ast.Call, cache: ast.Call, tree: ast.AST) -> bool:
    """Whether the cached dataset is read by this take only."""
    value: ast.expr = take
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value is cache:
            return True
        value = value.func.value
    if not isinstance(value, ast.Name):
        return False
    made = [one for one in pastes.walk(tree, ast.Assign) if any(part is cache for part in ast.walk(one))]
    names = [one for one in pastes.walk(tree, ast.Name) if one.id == value.id]
    stores = [one for one in names if isinstance(one.ctx, ast.Store)]
    own = [ast.unparse(one) for one in made[0].targets] == [value.id] if len(made) == 1 else False
    return own and len(stores) == 1 and len(names) == 2
