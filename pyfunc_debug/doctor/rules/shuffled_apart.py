"""Inputs and labels that are shuffled each on their own, and then paired by position."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets import apart_arrays, paired_flows
from pyfunc_debug.doctor.datasets.zips import CLASS, are_labels, listed_arguments, way, zips
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("shuffled-apart",)
_ARRAYS = ("TensorSlice", "TextLine")
"""Where sides come from whose elements have a position that means something."""
_ROWS = {
    "batch", "flat_map", "interleave", "padded_batch", "ragged_batch", "repeat", "skip", "take", "unbatch", "window",
}  # fmt: skip
"""Behind a shuffle these make something else of its elements: a shuffle behind the zip would not do the same."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a zip.

    Many programs pair at random on purpose: two sets of pictures without pairs, mixup, negative examples. So one side
    must be labels: a class an element, where both sides are shuffled, or what the program calls so.
    """
    yield from paired_flows.check(facts, NAMES[0])
    yield from apart_arrays.check(facts, NAMES[0])
    told: set[int] = set()
    for loop in facts.meta.get("inputs") or []:
        if loop["site"] is None:
            continue
        for stage in loop["stages"]:
            sides = stage.get("sides") or []
            if len(sides) == 2 and _twice(sides, loop["stages"]):
                for finding in _of_itself(facts, loop["site"]):
                    if finding.line not in told:
                        told.add(finding.line or 0)
                        yield finding
            elif len(sides) == 2 and _random(sides):
                for finding in _findings(facts, loop["site"], sides):
                    if finding.line not in told:
                        told.add(finding.line or 0)
                        yield finding
                        break


def _random(sides: list[dict[str, Any]]) -> bool:
    """Whether two sides that come from arrays of their own are in different orders."""
    one, other = sides
    if not all(side["kinds"][-1] in _ARRAYS for side in sides) or other["source"] != 1:
        return False
    if not one["reads"] or not other["reads"] or (one["parts"] and other["parts"]):
        return False  # examples that have their labels, beside others
    if "order" not in one and "order" not in other:
        return False
    if "order" in one and "order" in other:
        known = one["order"] is not None and other["order"] is not None
        return known and (one["order"] != other["order"] or one["order"][:2] == [0, 0])  # without a seed
    return True


def _twice(sides: list[dict[str, Any]], stages: list[dict[str, Any]]) -> bool:
    """Whether two sides go through a shuffle of one dataset that gives each pass an order of its own, seed or not."""
    one, other = sides
    same = one["source"] == other["source"] and "order" in one and one["order"] == other.get("order")
    return same and any(stage.get("reshuffles") for stage in stages)


def _of_itself(facts: Facts, site: list[Any]) -> Iterator[Finding]:
    """One for each zip of a shuffled dataset with what a map makes of it: both go through one shuffle."""
    for file in facts.files:
        for call in zips(facts.tree(file)):
            given = listed_arguments(call)
            ways = [way(facts, file, one, call) for one in given]
            if len(ways) != 2 or not all(ways):
                continue
            shuffles = [one for one in ways[0] if _name(one) == "shuffle" and one in ways[1]]
            if not shuffles:
                continue
            names = " and ".join(pastes.text_of(facts, file, one) for one in given)
            line = shuffles[0].func.end_lineno or shuffles[0].lineno
            yield Finding(
                NAMES[0], "error", None, (),
                f"{names} are zipped, and both come through the shuffle of line {line}: each goes through it on its "
                "own, in another order, so that an element gets the partner of another one",
                _mapped(facts, file, call, given, ways) or "map one dataset to pairs: ds.map(lambda x: (x, f(x)))",
                file, call.lineno, evidence=(f"the pairs are read at {facts.source_line(*site[:2])}",),
            )  # fmt: skip


def _mapped(facts: Facts, file: str, call: ast.Call, given: Sequence[ast.expr], ways: list[list[ast.Call]]) -> str:
    """The pairs as one map, where the one side is a map of the other."""
    for place, other in ((1, 0), (0, 1)):
        last = ways[place][0]
        if _name(last) != "map" or len(last.args) != 1 or last.keywords or ways[place][1:] != ways[other]:
            continue
        function = last.args[0]
        plain = isinstance(function, ast.Lambda) and len(function.args.args) == 1
        if not plain and not isinstance(function, (ast.Name, ast.Attribute)):
            continue
        name, made = "x", f"{pastes.text_of(facts, file, function)}(x)"
        if isinstance(function, ast.Lambda):
            name, made = function.args.args[0].arg, pastes.text_of(facts, file, function.body)
        pair = f"{name}, {made}" if place else f"{made}, {name}"
        new = f"{pastes.text_of(facts, file, given[other])}.map(lambda {name}: ({pair}))"
        return pastes.all_replaced(facts, file, {call: new})
    return ""


def _findings(facts: Facts, site: list[Any], sides: list[dict[str, Any]]) -> Iterator[Finding]:
    """One for each zip in the program that may be this one."""
    for file in facts.files:
        for call in zips(facts.tree(file)):
            given = listed_arguments(call)
            if len(given) == len(sides):
                yield from _finding(facts, (file, call), given, site, sides)


def _finding(
    facts: Facts, place: tuple[str, ast.Call], given: list[ast.expr], site: list[Any], sides: list[dict[str, Any]]
) -> Iterator[Finding]:
    file, call = place
    ways = [way(facts, file, one, call) for one in given]
    shuffles = [[one for one in way if _name(one) in ("shuffle", "list_files")] for way in ways]
    shuffled = ["order" in side for side in sides]
    if not all(len(found) == own for found, own in zip(shuffles, shuffled)):
        return
    kinds = [bool(CLASS.fullmatch(side["reads"])) for side in sides]
    labels = sum(are_labels(made, one) for made, one in zip(ways, given))
    if not (all(shuffled) and kinds[0] != kinds[1]) and labels != 1:
        return
    found = [one for own in shuffles for one in own]
    lines = [facts.source_line(file, one.func.end_lineno or one.lineno) for one in found]
    names = [pastes.text_of(facts, file, one) if isinstance(one, ast.Name) else "" for one in given]
    both = " and ".join(names) if all(names) else "two datasets"
    yield Finding(
        NAMES[0], "error", None, (),
        f"{both} are zipped, which pairs elements by their position, "
        + (f"and each was shuffled on its own ({' and '.join(lines)})" if len(found) == 2
           else f"and only one of them was shuffled ({lines[0]})")
        + ": each element gets the partner of another one",
        _fix(facts, file, call, ways, found) or _WORDS, file, call.lineno,
        evidence=(f"the pairs are read at {facts.source_line(*site[:2])}",),
        confidence="measured" if len(found) == 2 else "likely",
    )  # fmt: skip


_WORDS = "tf.data.Dataset.zip((inputs, labels)).shuffle(n)  # and no shuffle before it"


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _fix(facts: Facts, file: str, call: ast.Call, ways: list[list[ast.Call]], found: list[ast.Call]) -> str:
    """Neither side shuffled, and the pairs shuffled behind the zip."""
    size, pieces = "", dict[ast.expr, str]()
    for one in found:
        way = next(way for way in ways if one in way)
        if any(_name(later) in _ROWS for later in way[: way.index(one)]):
            return ""
        if _name(one) == "list_files":
            if len(one.args) != 1 or one.keywords:
                return ""
            pieces[one] = f"{pastes.text_of(facts, file, one)[:-1].rstrip().rstrip(',')}, shuffle=False)"
        else:
            assert isinstance(one.func, ast.Attribute)
            sized = [*one.args[:1], *(word.value for word in one.keywords if word.arg == "buffer_size")]
            if not sized:
                return ""
            size = size or pastes.text_of(facts, file, sized[0])
            pieces[one] = pastes.text_of(facts, file, one.func.value)
    inside = [one for one in found if call.lineno <= one.lineno <= (call.end_lineno or call.lineno)]
    whole = pastes.text_of(facts, file, call)
    for one in inside:
        if pastes.text_of(facts, file, one) not in whole:
            return ""
        whole = whole.replace(pastes.text_of(facts, file, one), pieces.pop(one))
    pieces[call] = f"{whole}.shuffle({size or 1000})"
    return pastes.all_replaced(facts, file, pieces) if len(pieces) <= pastes.MOST else ""
