"""Datasets whose elements came in another order in each pass, by deterministic=False, where the order matters."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("changed-order",)
_ROWS = 5000
"""How many calls of a body are compared."""
_SEEDS = ("set_seed", "set_random_seed", "enable_op_determinism")
_Call = tuple[int, tuple[Any, ...]]
"""A call's number, and the digests of its inputs."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body that saw it: it ran once an element, one call at a time, so that its calls are the order.

    Who writes deterministic=False asks for any order. That matters where the program pairs the elements with
    another dataset's by their position, or sets TensorFlow's seed so that a run can be repeated.
    """
    by_token = facts.own_by_token
    reported: set[tuple[str | None, int | None, str]] = set()
    for loop in facts.meta.get("inputs") or []:
        stages, passes = loop["stages"], loop["iterators"]
        for place, stage in enumerate(stages):
            kinds = [one["kind"] for one in stages[place + 1 :]]  # the stages before it
            if passes < 2 or stage["parallel"] is not None or not any("Parallel" in one for one in kinds):
                continue
            if any("Shuffle" in one for one in kinds):
                continue
            for node in (by_token[token] for token in stage["tokens"] if token in by_token):
                if (node.file, node.line, node.body) not in reported:
                    for found in _finding(facts, node, passes, "Zip" in kinds):
                        reported.add((node.file, node.line, node.body))
                        yield found


def _finding(facts: Facts, node: Node, passes: int, zipped: bool) -> Iterator[Finding]:
    seen = _passes(facts, node, passes)
    pair = next(((one, other) for one, other in itertools.pairwise(seen) if _order(one) != _order(other)), None)
    if pair is None or any(_each_input(one) != _each_input(seen[0]) for one in seen):
        return
    place = _any_order(facts)
    seed = _seed(facts)
    paired = zipped and Counter(_order(pair[0])) != Counter(_order(pair[1]))
    if place is None or not (paired or seed):
        return
    file, value = place
    first = next(index for index, (one, other) in enumerate(zip(*map(_order, pair))) if one != other)
    calls = tuple(one[first][0] for one in pair)
    why = (
        "Zip pairs elements by their position, so that they got other partners"
        if paired
        else f"{seed} makes random numbers the same in each run, but not this order"
    )
    yield Finding(
        NAMES[0], "error" if paired else "warning", node.id, calls,
        f"{node.body} got the elements of two passes in different orders, from element {first + 1} on: "
        f"deterministic=False hands them out as they get ready. {why}",
        pastes.written(pastes.replaced(facts, file, {value: "True"})), file, value.lineno,
        evidence=tuple(f"element {first + 1}: call #{call}: {facts.inputs(call)}" for call in calls),
    )  # fmt: skip


def _passes(facts: Facts, node: Node, passes: int) -> list[list[_Call]]:
    """A node's calls of each pass; none where they do not come out even, or contents are not known."""
    if facts.calls(node.id).count > _ROWS:
        return []
    rows = facts.reader.rows(
        "SELECT c.id, v.digest FROM call c LEFT JOIN value v ON v.call = c.id AND v.role = 'input' "
        "WHERE c.node = ? AND c.kind = 'forward' ORDER BY c.start_ns, c.id, v.position",
        (node.id,),
    )
    calls: dict[int, tuple[Any, ...]] = {}
    for call, digest in rows:
        calls[call] = (*calls.get(call, ()), digest)
    if len(calls) % passes or any(None in one for one in calls.values()):
        return []
    every, size = list(calls.items()), len(calls) // passes
    return [every[start : start + size] for start in range(0, len(every), size)] if size else []


def _order(calls: list[_Call]) -> list[tuple[Any, ...]]:
    return [digests for _, digests in calls]


def _each_input(calls: list[_Call]) -> list[Counter[Any]]:
    """How often each content came, input by input: equal in passes over the same elements, however they are paired."""
    return [Counter(one) for one in zip(*_order(calls))]


def _any_order(facts: Facts) -> tuple[str, ast.expr] | None:
    """The one `False` of a deterministic=False in the program, or of `options.deterministic = False`, and its file."""
    found: list[tuple[str, ast.expr]] = []
    for file in facts.files:
        tree = facts.tree(file)
        found += [(file, one.value) for one in pastes.walk(tree, ast.keyword) if one.arg == "deterministic"]
        for one in pastes.walk(tree, ast.Assign):
            if any(isinstance(target, ast.Attribute) and target.attr == "deterministic" for target in one.targets):
                found.append((file, one.value))
    off = [one for one in found if isinstance(one[1], ast.Constant) and one[1].value is False]
    return off[0] if len(off) == 1 else None


def _seed(facts: Facts) -> str:
    """`tf.random.set_seed` where the program calls it, or the like; "" where it does not."""
    for file in facts.files:
        for call in pastes.walk(facts.tree(file), ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr in _SEEDS:
                return ast.unparse(call.func)
    return ""
