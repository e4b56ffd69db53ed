"""Datasets that give later epochs the same as the first, or nothing: random numbers, a cache, used-up generators."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("cached-random", "empty-epochs")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loop over a dataset."""
    by_token = {node.token: node for node in facts.nodes.values() if node.token}
    reported: set[tuple[str | None, int | None]] = set()
    for loop in facts.meta.get("inputs") or []:
        if loop["iterators"] < 2:
            continue
        found = _cached(facts, loop, by_token)
        if found is not None and (found.file, found.line) not in reported:
            reported.add((found.file, found.line))
            yield found
        if loop.get("empty") and loop["taken"]:
            yield _used_up(facts, loop)


def _cached(facts: Facts, loop: dict[str, Any], by_token: dict[str, Node]) -> Finding | None:
    """A body that draws random numbers in front of a cache: it runs in the first epoch only."""
    stages = loop["stages"]  # the last first
    cache = next((place for place, stage in enumerate(stages) if stage["kind"].startswith("Cache")), None)
    if cache is None:
        return None
    for stage in stages[cache + 1 :]:
        for token in stage["tokens"]:
            node = by_token.get(token)
            if node is None or node.origin != "user":
                continue
            function, tree = facts.definition(node.file, node.line), facts.tree(node.file)
            if function is None or tree is None or not code.is_random(function, tree):
                continue
            calls = facts.calls(node.id)
            return Finding(
                "cached-random", "warning", node.id, (calls.first,) if calls.first is not None else (),
                f"{node.body} draws random numbers, but .cache() stands behind it: it ran {calls.count:,} times, and "
                f"each of the {loop['iterators']} passes over the dataset got these same results",
                f"dataset.cache().map({facts.name(node)}, ...)  # cache first, then what differs in each epoch",
                node.file, node.line,
                evidence=(f"{loop['iterators']} iterators, {calls.count:,} calls",), confidence="likely",
            )  # fmt: skip
    return None


def _maker(facts: Facts, file: str | None) -> str:
    """What makes the iterator that the lambda given to from_generator returns, as an argument of from_generator."""
    tree = facts.tree(file)
    for call in ast.walk(tree) if tree is not None else ():
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("from_generator") or not call.args:
            continue
        given = call.args[0]
        name = given.body.id if isinstance(given, ast.Lambda) and isinstance(given.body, ast.Name) else None
        for one in ast.walk(tree) if name is not None and tree is not None else ():
            targets = [ast.unparse(target) for target in one.targets] if isinstance(one, ast.Assign) else []
            if name in targets and isinstance(one, ast.Assign) and isinstance(one.value, ast.Call):
                plain = not one.value.args and not one.value.keywords
                return ast.unparse(one.value.func) if plain else f"lambda: {ast.unparse(one.value)}"
    return "the_function"


def _used_up(facts: Facts, loop: dict[str, Any]) -> Finding:
    """A generator that only the first iterator gets something of."""
    file, line = (loop["site"] or (None, None, ""))[:2]
    return Finding(
        "empty-epochs", "error", None, (),
        f"{loop['empty']} of {loop['iterators']} passes over this dataset got no element at all. "
        "Dataset.from_generator calls its function once a pass, and that has to make a new iterator: it gave one "
        "that was used up",
        f"tf.data.Dataset.from_generator({_maker(facts, file)}, ...)  # it is called for each pass, and begins again",
        file, line, evidence=(f"{loop['iterators']} iterators, {loop['taken']:,} elements in all",),
    )  # fmt: skip
