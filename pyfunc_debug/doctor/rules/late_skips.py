"""A `skip` or a `shard` behind a `map`: the bodies run for what is thrown away, too, in each pass.

A skip asks what is before it for each element that it leaves out, and a shard for all of its n parts, of which it gives
one: neither knows how to get at the next one without (kernels/data/skip_dataset_op.cc, shard_dataset_op.cc). A map
gives one element for each that it gets, so that both can stand before it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.analysis.inputs import Loop
from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets import moved_skips, pipelines
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("late-skip",)
_LEAST, _LEAST_NS, _OF_RECORDING = 8, 300_000_000, 0.05
"""The least elements that a pass throws away, and the least time of their calls in all, and of the recording's."""
_MAPS, _BATCHES = ("Map", "ParallelMap"), ("Batch", "ParallelBatch", "PaddedBatch")
_PLAIN = (*_MAPS, *_BATCHES, "Prefetch", "Options", "Model")
"""What keeps the order and gives one for one, or for as many: a skip behind it may as well stand before it."""
_SEVERAL = ("Zip", "Concatenate", "Directed", "Choose", "Sample")
"""Parts of the kinds of datasets that are made of several others."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A skip or a shard of a loop's dataset.

    Attributes:
      loop: The entry of the loop.
      word: "skip" or "shard".
      count: What it was given.
      batched: Elements in each of what it skips: of all batches before it.
      nodes: The bodies that run before it.
      passes: How often the loop read its dataset, at least.
    """

    loop: dict[str, Any]
    word: str
    count: int
    batched: int
    nodes: tuple[Node, ...]
    passes: int


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a skip or shard."""
    told: set[tuple[str | None, int | None]] = set()
    for cut in _long(facts):
        found = _finding(facts, cut)
        if (found.file, found.line) not in told:
            told.add((found.file, found.line))
            yield found


def waits_for_nothing(facts: Facts, loop: Loop) -> bool:
    """Whether a loop waits for elements that are thrown away more than for its own: that comes first.

    Args:
      facts: The recording.
      loop: One of its loops.
    """
    for cut in _long(facts):
        site = cut.loop["site"]
        if loop.site is None or (site[0], site[1]) != (loop.site.file, loop.site.line):
            continue
        if tuple(stage["kind"] for stage in cut.loop["stages"]) == loop.kinds and cut.word == "skip":
            given = (loop.taken or loop.steps) * cut.batched / cut.passes
            return _thrown(facts, cut)[0] >= given
    return False


def _long(facts: Facts) -> list[_Cut]:
    """The cuts for whose thrown elements bodies ran long, those that threw away most first."""
    least = max(_LEAST_NS, _OF_RECORDING * (facts.wall_ns or 0))
    found = []
    for cut in _cuts(facts):
        thrown, calls = _thrown(facts, cut)
        mean = sum(facts.calls(one.id).total_ns / max(facts.calls(one.id).count, 1) for one in cut.nodes)
        if thrown >= _LEAST and calls * mean >= least:
            found.append(cut)
    return sorted(found, key=lambda one: -_thrown(facts, one)[0])


def _thrown(facts: Facts, cut: _Cut) -> tuple[int, int]:
    """How many elements a pass threw away at least, and how many all passes did."""
    made = min(facts.calls(one.id).count for one in cut.nodes)
    if cut.word == "shard":
        every = made - made // cut.count
        return every // cut.passes, every
    each = cut.count * cut.batched
    passes = min(cut.passes, made // each)
    return (each, each * passes) if passes else (0, 0)


def _cuts(facts: Facts) -> Iterator[_Cut]:
    by_token = facts.own_by_token
    loops = facts.meta.get("inputs") or []
    for loop in loops:
        stages = loop["stages"]
        kinds = [stage["kind"] for stage in stages]
        places = [place for place, stage in enumerate(stages) if "skips" in stage or "shards" in stage]
        if loop["site"] is None or len(places) != 1 or any(part in kind for kind in kinds for part in _SEVERAL):
            continue
        if any("Cache" in kind for kind in kinds[: places[0]]):
            continue  # later passes do not come this far
        nodes, batched = _before(stages[places[0] + 1 :], by_token)
        if not nodes or batched is None:
            continue
        cut, passes = stages[places[0]], loop["iterators"] - loop["empty"]
        if passes and not loop["taken"]:
            passes = max(passes // 2, 1)  # Keras makes one more for each epoch
        word = "skip" if "skips" in cut else "shard"
        if passes > 0 and (word == "skip" or _alone(loops, nodes)):
            yield _Cut(loop, word, cut["skips"] if word == "skip" else cut["shards"], batched, nodes, passes)


def _before(stages: Sequence[dict[str, Any]], by_token: dict[str, Node]) -> tuple[tuple[Node, ...], int | None]:
    """The bodies of the maps right before a cut, and how many of their elements are one of its."""
    nodes: list[Node] = []
    batched: list[int | None] = []
    behind: list[int | None] = []
    for stage in stages:
        if stage["kind"] not in _PLAIN:
            break
        if stage["kind"] in _BATCHES:
            batched.append(stage["batch"])
        own = [by_token[token] for token in stage["tokens"] if token in by_token]
        if own and nodes and batched != behind:
            break  # before another batch: that one has calls of its own count
        if own:
            nodes, behind = [*nodes, *own], list(batched)
    if any(one is None for one in behind):
        return (), None
    return tuple(nodes), math.prod(one or 1 for one in behind)


def _alone(loops: Sequence[dict[str, Any]], nodes: Sequence[Node]) -> bool:
    """Whether a body's calls are those of one loop."""
    tokens = {one.token for one in nodes}
    return sum(any(tokens & set(stage["tokens"]) for stage in loop["stages"]) for loop in loops) == 1


def _finding(facts: Facts, cut: _Cut) -> Finding:
    thrown, calls = _thrown(facts, cut)
    slow = max(cut.nodes, key=lambda one: facts.calls(one.id).total_ns)
    name, made = facts.name(slow), facts.calls(slow.id)
    each, mapped = made.total_ns / made.count / 1e6, pipelines.map_of(facts, slow)
    found = moved_skips.cut_at(facts, cut.word, cut.count, mapped[1] if mapped is not None else None)
    file, line = (cut.loop["site"][0], cut.loop["site"][1]) if found is None else (found[0], found[1].lineno)
    at = f" at {facts.source_line(mapped[0], mapped[1].lineno)}" if mapped is not None else ""
    text = ""
    if found is not None and mapped is not None and found[0] == mapped[0]:
        text = moved_skips.moved(facts, *found, mapped[1])
    if cut.word == "skip":
        what = f"{cut.count:,} batches of {cut.batched:,}" if cut.batched > 1 else f"{cut.count:,} elements"
        message = (
            f"skip({cut.count}) leaves out {what} behind the map of {name}{at}: each pass calls {name} for these "
            f"{thrown:,}, {each:.1f} ms each, and throws away what it gives"
        )
    else:
        message = (
            f"shard behind the map of {name}{at} gives one of {cut.count} parts, and all of them are made: "
            f"{calls:,} of the {made.count:,} calls of {name}, {each:.1f} ms each, gave what is thrown away"
        )
    share = f"at least {calls:,} of its {made.count:,} calls, {calls * each / 1e3:.1f} s"
    return Finding(
        NAMES[0], "warning", slow.id, (), message,
        text or _words(facts, cut, mapped, thrown), file, line, evidence=(share,) if cut.word == "skip" else (),
    )  # fmt: skip


def _words(facts: Facts, cut: _Cut, mapped: tuple[str, ast.Call] | None, thrown: int) -> str:
    """What to write where, as it cannot be pasted."""
    given, call, where = "dataset", "map(...)", "before the map"
    if mapped is not None and isinstance(mapped[1].func, ast.Attribute):
        given = pastes.text_of(facts, mapped[0], mapped[1].func.value)
        call = f"map({pastes.text_of(facts, mapped[0], mapped[1].args[0])}, ...)"
        where = f"before the map at {facts.source_line(mapped[0], mapped[1].lineno)}"
    given = given if len(given) <= moved_skips.LONG else "dataset"
    if cut.word == "shard":
        batch = " (batches are then made of other elements)" if cut.batched > 1 else ""
        return f"shard {where}, as {given}.shard({cut.count}, index).{call}, and not behind it{batch}"
    behind = ", then the batch," if cut.batched > 1 else ""
    return (
        f"skip {where}: {given}.skip({thrown}).{call}{behind} for this part; {given}.take({thrown}).{call} for the "
        "part that it leaves out, where that is read, too"
    )
