"""Generators that gave the same elements in another order in each pass, where two passes are matched by position."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding, Node

_COMPARED = 20_000
"""Rows of the recording that are compared."""
_LEAST = 3
"""Elements of a pass."""
_TRAINS = ("fit", "minimize", "GradientTape", "train_on_batch")
_WORDS = "collect both in one loop: for x, y in ds: ..."

Collected = tuple[frozenset[int], set[str], str]
"""Which parts of each element a line collects, the variables that hold them, and the dataset as it is written."""


def check(
    facts: Facts,
    rule: str,
    collected: Callable[[Facts, str, int], Collected | None],
    together: Callable[[Facts, str, set[str], set[str]], bool],
) -> Iterator[Finding]:
    """One finding a generator.

    Args:
      facts: The recording.
      rule: The rule's name.
      collected: What a line collects of a dataset in order.
      together: Whether what two passes collected is matched by position.
    """
    told: set[tuple[str | None, int | None]] = set()
    for node, start in facts.generators.values():
        if (node.file, node.line) in told:
            continue
        for one, other in _pairs(facts, {node.token, start.token}, collected, together):
            if reordered(facts, node):
                told.add((node.file, node.line))
                yield _finding(facts, rule, node, one, other)
            break


def _pairs(
    facts: Facts,
    tokens: set[str | None],
    collected: Callable[[Facts, str, int], Collected | None],
    together: Callable[[Facts, str, set[str], set[str]], bool],
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Loops over one dataset that collect other parts of its elements, which are then matched."""
    passes: dict[str, list[tuple[Collected, dict[str, Any]]]] = {}
    for loop in facts.meta.get("inputs") or []:
        stages = loop["stages"]
        if loop["site"] is None or not any(tokens & set(stage["tokens"]) for stage in stages):
            continue
        if any("Cache" in stage["kind"] or stage.get("reshuffles") for stage in stages):
            continue  # these keep an order, or their shuffle is the cause
        found = collected(facts, str(loop["site"][0]), int(loop["site"][1]))
        if found is not None:
            passes.setdefault(f"{loop['site'][0]} {found[2]}", []).append((found, loop))
    for loops in passes.values():
        for place, (one, first) in enumerate(loops):
            for other, second in loops[place + 1 :]:
                if one[0] != other[0] and together(facts, str(first["site"][0]), one[1], other[1]):
                    yield first, second


def reordered(facts: Facts, node: Node) -> bool:
    """Whether the whole passes of a generator gave the same elements, in orders of which two differ."""
    if facts.counted_only([node.id]):
        return False
    rows = facts.reader.rows(
        "SELECT c.id, i.digest, o.digest FROM call c JOIN value i ON i.call = c.id AND i.role = 'input' "
        "AND i.position = 0 JOIN value o ON o.call = c.id AND o.role = 'output' "
        f"WHERE c.node = ? AND c.kind = 'forward' AND c.status = 'ok' ORDER BY c.id, o.position LIMIT {_COMPARED}",
        (node.id,),
    )
    passes: dict[bytes, dict[int, list[bytes]]] = {}
    for call, which, given in rows:
        if given is None or which is None:
            return False
        passes.setdefault(which, {}).setdefault(call, []).append(given)
    orders = [[tuple(one) for one in elements.values()] for elements in passes.values()]
    most = max(map(len, orders), default=0)
    whole = [one for one in orders if len(one) == most]
    if len(whole) < 2 or most < _LEAST or len(rows) >= _COMPARED:
        return False
    return all(Counter(one) == Counter(whole[0]) for one in whole) and any(one != whole[0] for one in whole)


def _finding(facts: Facts, rule: str, node: Node, one: dict[str, Any], other: dict[str, Any]) -> Finding:
    sites = [facts.source_line(*loop["site"][:2]) for loop in (one, other)]
    shuffles = orders(facts, node)
    by = f", by {ast.unparse(shuffles[0].func)} in line {shuffles[0].lineno}" if len(shuffles) == 1 else ""
    fix = _fix(facts, node, shuffles[0]) if len(shuffles) == 1 else ""
    file, line = (node.file, shuffles[0].lineno) if fix else (one["site"][0], one["site"][1])
    return Finding(
        rule, "error", node.id, (),
        f"what {sites[0]} and {sites[1]} collect from this dataset does not fit together by position: they are two "
        f"passes over it, and {facts.name(node)} gave the same elements in another order in each pass{by}",
        fix or _WORDS, file, line, evidence=("both are compared, paired or saved side by side",),
    )  # fmt: skip


def orders(facts: Facts, node: Node) -> list[ast.Call]:
    """The calls by which a generator orders what it gives."""
    function = facts.function(node)
    found = [] if function is None else [one for one in code.own_nodes(function) if isinstance(one, ast.Call)]
    return [
        one for one in found
        if dotted(one.func).rpartition(".")[2] in ("shuffle", "permutation", "sample") and "random" in dotted(one.func)
    ]  # fmt: skip


def _fix(facts: Facts, node: Node, call: ast.Call) -> str:
    """The same order in each pass, where nothing is trained on it."""
    tree = facts.tree(node.file)
    if tree is None or any(
        isinstance(one, (ast.Name, ast.Attribute)) and dotted(one).rpartition(".")[2] in _TRAINS
        for one in ast.walk(tree)
    ):
        return ""
    return one_order(facts, node, call)


def one_order(facts: Facts, node: Node, call: ast.Call) -> str:
    """The same order in each pass: by a generator of numbers with a seed; empty where that is not sure."""
    function, name = facts.function(node), dotted(call.func)
    if function is None or node.file is None or len(call.args) != 1:
        return ""
    given, numpy = call.args[0], pastes.module(facts, node.file, "numpy")
    made = {
        target.id for one in code.own_nodes(function) if isinstance(one, ast.Assign)
        for target in one.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    if name.endswith(".shuffle") and not (isinstance(given, ast.Name) and given.id in made):
        return ""  # what is kept for the next pass has another order by then
    last = name.rpartition(".")[2]
    if numpy is not None and name == f"{numpy}.random.{last}" and last != "sample":
        text = f"{numpy}.random.default_rng(0).{last}"
    elif name == "random.shuffle":
        text = "random.Random(0).shuffle"
    else:
        return ""
    return pastes.written(pastes.replaced(facts, node.file, {call.func: text}))
