"""`Dataset.zip` of inputs and labels that are not equally many: it ends with the shorter one, and says nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.zips import zips_of_labels
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("zipped-rest",)
_ON_PURPOSE = {"Take", "Range", "Repeat", "Skip", "Shard"}
"""A side with one of these has the number that the program gave it."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a zip; none of unpaired sets, as those of pictures that a model of its own train_step takes."""
    told: set[tuple[str, int]] = set()
    for file, call, given, sides in zips_of_labels(facts, _differ):
        if (file, call.lineno) not in told:
            told.add((file, call.lineno))
            yield _finding(facts, file, call, given, sides)


def _differ(sides: Sequence[dict[str, Any]]) -> bool:
    """Whether two sides of a source each have another number of elements, which nothing chose."""
    counts = [side.get("count") for side in sides]
    if None in counts or len(set(counts)) == 1 or sides[1]["source"] != 1:
        return False
    return not any(_ON_PURPOSE & set(side["kinds"]) for side in sides)


def _finding(
    facts: Facts, file: str, call: ast.Call, given: list[ast.expr], sides: Sequence[dict[str, Any]]
) -> Finding:
    counts = [int(side["count"]) for side in sides]
    names = [pastes.text_of(facts, file, one) if isinstance(one, ast.Name) else "" for one in given]
    names = names if all(names) else ["the first dataset", "the second"]
    longer = counts.index(max(counts))
    lost = max(counts) - min(counts)
    return Finding(
        NAMES[0], "warning", None, (),
        f"zip ends with the shorter one: {names[0]} has {counts[0]:,} elements, {names[1]} {counts[1]:,}, so that the "
        f"last {lost:,} of {names[longer]} {'is' if lost == 1 else 'are'} never read",
        "give both as many elements: what takes some from one, as a filter or a window, is to be done to the pairs",
        file, call.lineno,
    )  # fmt: skip
