"""A shuffle whose buffer is smaller than the rows of one class that come one after another, or no shuffle at all."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.body_inputs import returned
from pyfunc_debug.doctor.datasets.cached_chains import kind_of
from pyfunc_debug.doctor.datasets.held_elements import TOLD_BYTES, bytes_of, size_text
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.records import Finding, Node

NAMES = ("small-shuffle",)
_SAME = ("Map", "ParallelMap", "Prefetch", "Options", "Model", "Repeat", "Cache")
"""Stages that keep the order of elements."""
_LEAST = 40
"""Elements from which an order is one."""
_TIMES = 2
"""How many buffers long the rows of one class are."""
_ROWS = 8
"""Rows of one class in a row from which it is said: classes that take turns sooner meet in each batch."""
_SHOWN = 3


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a shuffle."""
    told: set[int] = set()
    for loop in facts.meta.get("inputs") or []:
        if not loop["site"] or not any("crossentropy" in one.lower() for one in facts.code(str(loop["site"][0]))):
            continue
        found = _source(facts, loop["stages"])
        if found is None or found[1].id in told or not (found[0] or _only_trains(facts, loop["site"])):
            continue
        buffer, node = found
        runs = _runs(facts, node)
        classes = {label: max(size for one, size in runs if one == label) for label, _ in runs}
        middle = sorted(size for _, size in runs)[len(runs) // 2] if runs else 0
        if len(classes) < 2 or sum(classes.values()) < _LEAST or middle < max(_TIMES * buffer, _ROWS):
            continue
        told.add(node.id)
        yield _finding(facts, str(loop["site"][0]), int(loop["site"][1]), buffer, node, runs, sum(classes.values()))


def _source(facts: Facts, stages: Sequence[dict[str, Any]]) -> tuple[int, Node] | None:
    """The buffer of a dataset's only shuffle, 0 for none, and the node before it, if nothing else mixes."""
    places = [at for at, one in enumerate(stages) if kind_of(one) == "Shuffle"]
    batch = next((at for at, one in enumerate(stages) if kind_of(one).endswith("Batch")), None)
    if len(places) > 1 or (not places and batch is None) or (places and not stages[places[0]].get("buffer")):
        return None
    first = places[0] if places else batch or 0
    for stage in stages[first + 1 :]:
        nodes = [facts.by_token[one] for one in stage["tokens"] if one in facts.by_token]
        made = [one for one in nodes if len(one.tout) == 2 and (one.origin == "user" or facts.is_generator(one))]
        if made:
            return int(stages[first].get("buffer") or 0), made[0]
        if kind_of(stage) not in _SAME:
            return None
    return None


def _only_trains(facts: Facts, site: Sequence[Any]) -> bool:
    """Whether a line is a `fit` that is given nothing to validate with: all that it reads is learned from."""
    fit = pastes.call_at(facts, str(site[0]), int(site[1]), "fit")
    alone = [one for one in facts.meta.get("inputs") or [] if one["site"] == site]
    return fit is not None and len(alone) == 1 and not any(one.arg == "validation_data" for one in fit.keywords)


def _runs(facts: Facts, node: Node) -> list[tuple[float, int]]:
    """The labels that a node gave second, each with how often it came in a row; nothing where one is not a class."""
    labels = returned(facts, [node], 1)
    if any(one.shape not in ((), (1,)) or one.low is None or one.low % 1 for one in labels):
        return []
    return [(label or 0.0, len(list(same))) for label, same in itertools.groupby(one.low for one in labels)]


def _finding(
    facts: Facts, file: str, line: int, buffer: int, node: Node, runs: Sequence[tuple[float, int]], size: int
) -> Finding:
    own, held = pastes.source(facts, file), bytes_of(facts, [node], size)
    asked = ("shuffle",) if buffer else ("batch", "padded_batch")
    calls = [
        one for one in pastes.walk(own.tree, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr in asked and (not buffer or _may_be(one, buffer))
    ]  # fmt: skip
    shown = ", then ".join(f"{size:,} of class {label:g}" for label, size in runs[:_SHOWN])
    fix = f"shuffle what {facts.name(node)} reads, before it reads it: a buffer of all holds {size_text(held)}"
    if held < TOLD_BYTES:
        pieces: dict[ast.expr, str] = {}
        given = argument(calls[0], 0, "buffer_size") if len(calls) == 1 else None
        if buffer and given is not None:
            pieces = {given: str(size)}
        elif len(calls) == 1 and isinstance(calls[0].func, ast.Attribute):
            pieces = {calls[0].func.value: f"{own.text(calls[0].func.value)}.shuffle({size})"}
        fix = pastes.written(pastes.replaced(facts, file, pieces)) or f"shuffle({size}), in front of the batch"
    mixes = f"shuffle({buffer:,}) mixes {buffer:,} elements at a time" if buffer else "nothing shuffles"
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"{mixes}, and the elements of {facts.name(node)} come class by class: {shown}. A batch has mostly one class, "
        "and each step unlearns the others",
        fix, file, (calls[0].end_lineno or line) if len(calls) == 1 else line,
    )  # fmt: skip


def _may_be(shuffle: ast.Call, buffer: int) -> bool:
    given = argument(shuffle, 0, "buffer_size")
    return given is not None and (not isinstance(given, ast.Constant) or given.value == buffer)
