"""One iterator over a dataset, made before the loop over epochs: the first epoch uses it up, the others get nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import times
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import names
from pyfunc_debug.records import Finding

_TAKES_ALL = ("dict", "enumerate", "list", "max", "min", "set", "sorted", "sum", "tuple", "zip", "reduce", "tqdm")
"""What goes through all of an iterator."""


def check(facts: Facts, rule: str) -> Iterator[Finding]:
    """One finding for each line that makes such an iterator.

    Args:
      facts: The recording.
      rule: The rule's name.
    """
    for loop in facts.meta.get("inputs") or []:
        if not loop.get("again") or loop["site"] is None:
            continue
        file, line = loop["site"][:2]
        tree = facts.tree(file)
        made = [
            one for one in pastes.walk(tree, ast.Assign)
            if one.lineno <= line <= (one.end_lineno or one.lineno) and isinstance(one.targets[0], ast.Name)
        ]  # fmt: skip
        if tree is None or len(made) != 1 or not isinstance(made[0].value, ast.Call):
            continue
        places = list(_gone_through(tree, made[0]))
        if places:
            yield _finding(facts, rule, file, made[0], places, loop)


def _gone_through(tree: ast.AST, made: ast.Assign) -> Iterator[ast.Name]:
    """Where a loop in a loop that begins behind a statement goes through all of what that made."""
    name = made.targets[0].id  # type: ignore[attr-defined]
    loops: list[ast.For | ast.While] = [*pastes.walk(tree, ast.For), *pastes.walk(tree, ast.While)]
    for outer in loops:
        inside = [part for one in outer.body for part in ast.walk(one)]
        assigned = any(
            isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store) for one in inside
        )
        if outer.lineno < made.lineno or made in inside or assigned:
            continue
        for one in inside:
            given: list[ast.expr] = []
            if isinstance(one, (ast.For, ast.comprehension)):
                given = [one.iter]
            elif isinstance(one, ast.Call) and pastes.last_name(one.func) in _TAKES_ALL:
                given = one.args
            yield from (part for part in given if isinstance(part, ast.Name) and part.id == name)


def _finding(
    facts: Facts, rule: str, file: str, made: ast.Assign, places: list[ast.Name], loop: dict[str, Any]
) -> Finding:
    name, value = places[0].id, pastes.text_of(facts, file, made.value)
    kind = pastes.last_name(made.value.func) if isinstance(made.value, ast.Call) else ""
    inner = made.value.args[0] if kind == "iter" and isinstance(made.value, ast.Call) and made.value.args else None
    new = pastes.text_of(facts, file, inner) if inner is not None else value
    edits = [pastes.replaced(facts, file, {places[0]: new})]
    if name in names(made.value):  # `ds = enumerate(ds)`
        last = made.end_lineno or made.lineno
        blanks = " " * made.col_offset
        edits.append(Edit(file, made.lineno, last, (f"{blanks}# {name} stays the dataset",)))
    fix = pastes.written(*edits)
    return Finding(
        rule, "error", None, (),
        f"{name} is one iterator (line {made.lineno}), and line {places[0].lineno} goes through it again and again: "
        f"the first pass took all of its {loop['taken']:,} elements, and the others got none",
        fix or f"{name} = {value}  # in the loop: it begins again",
        file, places[0].lineno, evidence=(f"it was asked {times(loop['again'])} after its end",),
    )  # fmt: skip
