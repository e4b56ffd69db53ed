"""`steps_per_epoch=len(samples)` of a generator that makes batches: an epoch is as many passes as a batch has rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("counted-steps",)
_STEPS = {"steps_per_epoch": "x", "validation_steps": "validation_data"}
"""Arguments of `fit` that count batches, and that which gives them."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `fit`."""
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.COUNTED_STEPS, []):
        file, line = noticed["file"], noticed["line"]
        fit = pastes.call_at(facts, file, line, "fit")
        if fit is None or (file, line) in told:
            continue
        pieces: dict[ast.expr, str] = {}
        for word in fit.keywords:
            rows = _counted(facts, file, fit, word)
            if rows is not None:
                pieces[word.value] = f"-(-{pastes.text_of(facts, file, word.value)} // {rows or noticed['rows']})"
        steps = next((one.value for one in fit.keywords if one.arg == "steps_per_epoch"), None)
        if steps is None or steps not in pieces:
            continue
        told.add((file, line))
        text = pastes.text_of(facts, file, steps)
        yield Finding(
            NAMES[0], "warning", None, (),
            f"steps_per_epoch counts batches, and {text} counts rows: the generator gives {noticed['rows']} at once, "
            f"so that an epoch of {noticed['steps']:,} steps goes over them some {noticed['rows']} times",
            pastes.all_replaced(facts, file, pieces), file, line, confidence="likely",
        )  # fmt: skip


def _counted(facts: Facts, file: str, fit: ast.Call, word: ast.keyword) -> str | None:
    """How a call writes the rows of a batch ("" if not), where an argument is `len` of what a generator is given."""
    if word.arg not in _STEPS or not isinstance(word.value, ast.Call) or ast.unparse(word.value.func) != "len":
        return None
    counted = ast.unparse(word.value.args[0]) if len(word.value.args) == 1 else ""
    given: Any = next((one.value for one in fit.keywords if one.arg == _STEPS[str(word.arg)]), None)
    given = fit.args[0] if given is None and fit.args and word.arg == "steps_per_epoch" else given
    made = pastes.assigned(facts.tree(file), given.id) if isinstance(given, ast.Name) else [given]
    calls = [one for one in made if isinstance(one, ast.Call)]
    if len(calls) != 1 or not counted:
        return None
    values = [*calls[0].args, *(one.value for one in calls[0].keywords)]
    if counted not in map(ast.unparse, values):
        return None
    size = next((one.value for one in calls[0].keywords if "batch" in str(one.arg)), None)
    named = [one for one in calls[0].args if isinstance(one, ast.Name) and "batch" in one.id.lower()]
    size = size if size is not None else named[0] if len(named) == 1 else None
    return pastes.text_of(facts, file, size) if isinstance(size, (ast.Constant, ast.Name, ast.Attribute)) else ""
