"""Datasets of which no pass comes to an end: a cache behind them is never full, serves nothing, and only grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.datasets.cached_chains import cache_at
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.generator_source import is_endless
from pyfunc_debug.records import Node

_CUTS = ("Take", "TakeWhile")
_JOINS = ("Zip", "Concatenate", "DirectedInterleave", "ChooseFastest")
"""What has several datasets: which of the stages behind it belong to which one is not recorded."""


@dataclass(frozen=True)
class Uncached:
    """Why a cache behind a place would serve nothing, or may.

    Attributes:
      why: For a sentence: "train_data yields for ever"; "" where that is not sure.
      cure: What to do in place of it; "" where there is nothing better to say.
    """

    why: str = ""
    cure: str = ""


def behind(facts: Facts, node: Node) -> Uncached | None:
    """Why no cache belongs behind the stage that calls a node; None where one may serve.

    Args:
      facts: The recording.
      node: A node in the function of a `map`.
    """
    loops = [(one["stages"], place, one) for one in _loops(facts) if (place := _place(one["stages"], node)) is not None]
    for stages, place, _ in loops:
        found = endless(facts, stages, place)
        if found is not None:
            return found
    if any(cache_at(stages[:place]) is not None for stages, place, _ in loops):
        return Uncached()  # one stands there already
    once = sum(int(one["iterators"]) for _, _, one in loops) == 1
    if once and not any(_is_repeat(stage) for stages, place, _ in loops for stage in stages[:place]):
        return Uncached()  # each element came by once: a cache serves later passes only
    return None


def endless(facts: Facts, stages: Sequence[dict[str, Any]], place: int = 0) -> Uncached | None:
    """Why the elements that come to a stage do not end; None where they may.

    Args:
      facts: The recording.
      stages: Those of a dataset, the last first.
      place: The stage's place; without it, the end of the dataset.
    """
    found = _endless(facts, stages, place)
    unsure = any(stage["kind"].startswith(_JOINS) for stage in stages[:place])
    return Uncached() if found is not None and unsure else found


def _endless(facts: Facts, stages: Sequence[dict[str, Any]], place: int) -> Uncached | None:
    shuffles = any(stage["kind"].startswith("Shuffle") for stage in stages[place:])
    for at, stage in enumerate(stages[place:], place):
        if stage["kind"] in _CUTS or stage["kind"].startswith(_JOINS):
            return None
        if _is_repeat(stage) and stage.get("repeats") == -1:
            return Uncached(
                "a .repeat() without an end stands before it",
                f"let one pass end: .map(...){_kept(shuffles)}, without the .repeat() before the map",
            )
        if stage["kind"] == "FlatMap" and [one["kind"] for one in stages[at + 1 :]] == ["Tensor"]:  # from_generator
            for node in (one for one in facts.nodes.values() if one.token in stage["tokens"]):
                found = _of_generator(facts, node, shuffles)
                if found is not None:
                    return found
    return None


def _kept(shuffles: bool) -> str:
    """The calls that keep one pass and give it again; an order drawn before a cache would be that of each pass."""
    return f".cache(){'.shuffle(n)' * shuffles}.repeat()"


def _of_generator(facts: Facts, node: Node, shuffles: bool) -> Uncached | None:
    """A generator that has no end, or came to none."""
    function, tree = facts.function(node), facts.tree(node.file)
    if node.origin == "user" or function is None or tree is None:
        return None
    given, gave = facts.reader.rows(
        "SELECT count(*), total(gave) FROM (SELECT max(v.role = 'output') AS gave FROM call c "
        "JOIN value v ON v.call = c.id WHERE c.node = ? AND c.kind = 'forward' GROUP BY c.id)",
        (node.id,),
    )[0]
    name, kept = facts.name(node), _kept(shuffles or code.is_random(function, tree))
    if given > gave:
        return None  # the call that finds the end gives nothing
    if is_endless(function):
        return Uncached(f"{name} yields for ever", f"let {name} end after one pass, then .map(...){kept}")
    return None if not given else Uncached(
        f"no pass read {name} to its end",
        f"read {name} to its end in each pass (if it has one), or keep a part of it: .map(...).take(n).cache()",
    )  # fmt: skip


def _is_repeat(stage: dict[str, Any]) -> bool:
    return str(stage["kind"]) == "Repeat"


def _place(stages: Sequence[dict[str, Any]], node: Node) -> int | None:
    return next((place for place, one in enumerate(stages) if node.token in one["tokens"]), None)


def _loops(facts: Facts) -> list[dict[str, Any]]:
    return list(facts.meta.get("inputs") or [])
