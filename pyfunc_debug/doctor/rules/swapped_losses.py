"""A loss of Keras' that gets the predictions first: it takes the labels first, and the two are not alike in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.own_steps import OwnStep, own_steps
from pyfunc_debug.records import Finding

NAMES = ("swapped-loss",)
_LOSSES = re.compile(r"(?:^|\.)(?:\w*[cC]ross_?[eE]ntropy|KLDivergence|kl_divergence|Poisson|poisson|hinge|\w*Hinge)$")
"""Losses that give something else with their arguments the other way round."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call."""
    told: set[tuple[str, int]] = set()
    for step in own_steps(facts):
        predicted = _predicted(step)
        for call in pastes.walk(step.block, ast.Call):
            if len(call.args) < 2 or call.keywords or (step.file, call.lineno) in told or not _is_loss(step, call):
                continue
            first, second = call.args[:2]
            if _is_made_of(first, step, predicted) and not _is_made_of(second, step, predicted):
                told.add((step.file, call.lineno))
                yield _finding(facts, step, call)


def _predicted(step: OwnStep) -> set[str]:
    """The names that the model's results have under the tape."""
    return {
        target.id for one in pastes.walk(step.block, ast.Assign) for target in one.targets
        if isinstance(target, ast.Name) and one.value in step.calls
    }  # fmt: skip


def _is_made_of(node: ast.expr, step: OwnStep, predicted: set[str]) -> bool:
    return node in step.calls or (isinstance(node, ast.Name) and node.id in predicted)


def _is_loss(step: OwnStep, call: ast.Call) -> bool:
    """Whether a call is one of a loss of Keras': of its function, or of an object that the file makes."""
    name = ast.unparse(call.func)
    made = pastes.assigned(step.own.tree, name)
    if made:
        return len(made) == 1 and isinstance(made[0], ast.Call) and _of_keras(ast.unparse(made[0].func))
    return _of_keras(name) and "." in name


def _of_keras(name: str) -> bool:
    return _LOSSES.search(name) is not None and ".nn." not in name


def _finding(facts: Facts, step: OwnStep, call: ast.Call) -> Finding:
    text = step.own.text
    first, second = call.args[:2]
    return Finding(
        NAMES[0], "error", None, (),
        f"{text(call.func)} gets the predictions first ({text(first)}): a loss of Keras' takes (y_true, y_pred), and "
        "gives another number for the two the other way round",
        pastes.written(pastes.replaced(facts, step.file, {first: text(second), second: text(first)})),
        step.file, call.lineno, evidence=(f"line {call.lineno}: {facts.line(step.file, call.lineno)}",),
    )  # fmt: skip
