"""`fit(..., validation_split=0.2)` of rows that stand class by class: it validates with the last classes only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("sorted-split",)
_ARRAYS = ("x", "y", "sample_weight")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of `fit`, of a model that learns classes."""
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.SORTED_SPLIT, []):
        where = noticed["file"], noticed["line"]
        if where not in told and any("crossentropy" in line.lower() for line in facts.code(noticed["file"])):
            told.add(where)
            yield _finding(facts, *where, noticed)


def _finding(facts: Facts, file: str, line: int, noticed: dict[str, Any]) -> Finding:
    rows, validated, unseen = noticed["rows"], noticed["validated"], noticed["unseen"]
    classes = listed([*noticed["shown"], *([f"{noticed['others']} more"] if noticed["others"] else [])])
    why = (
        f"the rows stand class by class, and it validates with class {classes} only, of {noticed['classes']:,} classes"
        if noticed["sorted"]
        else f"{unseen:,} of them are of classes that none of the rows has which it trains on"
    )
    return Finding(
        NAMES[0], "warning", None, (),
        f"validation_split takes the last {validated:,} of the {rows:,} rows as they stand, before fit shuffles: "
        f"{why}",
        _shuffled(facts, file, line, noticed["plain"])
        or "shuffle the rows of x and y by one permutation, before fit",
        file, line,
    )  # fmt: skip


def _shuffled(facts: Facts, file: str, line: int, plain: bool) -> str:
    """The call with its arrays in another order, one for all of them, and the line that makes it."""
    calls = [one for one in pastes.around(facts.tree(file), line, ast.Call) if pastes.last_name(one.func) == "fit"]
    statement, np = pastes.source(facts, file).statement(line), pastes.module(facts, file, "numpy")
    if len(calls) != 1 or statement is None or np is None:
        return ""
    named = {one.arg: one.value for one in calls[0].keywords}
    given = dict(zip(_ARRAYS, calls[0].args[:2])) | {name: named[name] for name in _ARRAYS if name in named}
    if not {"x", "y"} <= set(given):
        return ""
    lists = {name: list(one.elts) for name, one in given.items() if isinstance(one, (ast.List, ast.Tuple))}
    if not plain and "x" not in lists:
        return ""
    arrays = [part for name, one in given.items() for part in lists.get(name, [one])]
    order, length = _free_name(facts, file), pastes.text_of(facts, file, given["y"])
    pieces = {one: f"{pastes.text_of(facts, file, one)}[{order}]" for one in arrays}
    above = pastes.above(facts, file, statement.lineno, f"{order} = {np}.random.permutation(len({length}))")
    return pastes.written(above, *pastes.each_replaced(facts, file, pieces))


def _free_name(facts: Facts, file: str) -> str:
    taken = {one.id for one in pastes.walk(facts.tree(file), ast.Name)}
    return next(one for one in ("order", "shuffled", "row_order", "mixed_order") if one not in taken or "_" in one)
