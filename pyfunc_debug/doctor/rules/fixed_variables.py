"""`tape.gradient(loss, model.variables)`: some of them are not trainable, and have None for a gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding

NAMES = ("fixed-variable",)
_ALL = {"variables": "trainable_variables", "weights": "trainable_weights"}
_MOVED = ("moving_mean", "moving_variance")
_SHOWN = 3


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that asks a tape."""
    for _, _, noticed in facts.notices["fixed-asked"]:
        if facts.source(noticed["file"]):
            yield _finding(facts, noticed["file"], noticed["line"], noticed)


def _finding(facts: Facts, file: str, line: int, noticed: dict[str, Any]) -> Finding:
    fixed = [str(one) for one in noticed["fixed"]]
    short = list(dict.fromkeys(one.rpartition("/")[2] for one in fixed))
    statistics = set(short) <= set(_MOVED)
    shown = listed(short[:_SHOWN]) if len(short) <= _SHOWN else f"{', '.join(short[:_SHOWN])} and more"
    why = (
        "BatchNormalization moves them itself in each call with training=True" if statistics else
        "nothing is to train them"
    )  # fmt: skip
    asked = _asked(facts, file, line)
    return Finding(
        NAMES[0], "warning", None, (),
        f"tape.gradient gave None for {len(fixed)} of {noticed['asked']} variables, as they are not trainable: "
        f"{shown}. That is right, {why}: ask for the trainable ones",
        pastes.all_replaced(facts, file, asked) or "ask the tape for `trainable_variables`", file, line,
        evidence=(f"line {line}: {facts.line(file, line)}",),
    )  # fmt: skip


def _asked(facts: Facts, file: str, line: int) -> dict[ast.expr, str]:
    """`model.variables` in what asks the tape, and where its gradients are applied, with what to write for it."""
    own, tree = pastes.source(facts, file), facts.tree(file)
    statement = own.statement(line)
    calls = [one for one in pastes.walk(statement, ast.Call) if pastes.last_name(one.func) == "gradient"]
    given = pastes.argument(calls[0], 1, "sources") if len(calls) == 1 else None
    if given is None or tree is None:
        return {}
    around = own.function(line) or tree
    owners = [given]
    if isinstance(given, ast.Name):
        owners = [value for value in pastes.assigned(around, given.id) if isinstance(value, ast.Attribute)]
    wanted = {own.text(one) for one in owners if isinstance(one, ast.Attribute) and one.attr in _ALL}
    return {
        one: f"{own.text(one.value)}.{_ALL[one.attr]}" for one in pastes.walk(around, ast.Attribute)
        if own.text(one) in wanted and (_is_applied(own.statement(one.lineno)) or one in owners)
    }  # fmt: skip


def _is_applied(statement: ast.stmt | None) -> bool:
    """Whether a statement gives gradients to an optimizer, or asks a tape for them."""
    called = {pastes.last_name(one.func) for one in pastes.walk(statement, ast.Call)}
    return bool(called & {"apply_gradients", "apply", "gradient"})
