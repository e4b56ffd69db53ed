"""A loss of Keras' that gets the predictions first: it takes the labels first, and the two are not alike in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import parameters
from pyfunc_debug.doctor.models.compiled_losses import compiled_losses
from pyfunc_debug.doctor.models.own_steps import OwnStep, own_steps
from pyfunc_debug.doctor.rules.ran_out import files_of_keras
from pyfunc_debug.records import Finding

NAMES = ("swapped-loss",)
_LOSSES = re.compile(r"(?:^|\.)(?:\w*[cC]ross_?[eE]ntropy|KLDivergence|kl_divergence|Poisson|poisson|hinge|\w*Hinge)$")
"""Losses that give something else with their arguments the other way round."""
_PREDICTED = re.compile(r"^(?:y_?(?:pred\w*|hat)|pred(?:s|icted|ictions?)?|outputs?|logits?|probs?)$")
_TRUE = re.compile(r"^(?:y_?true\w*|true|truth|ground_truth|gt|targets?|labels?|y)$")
_APART = re.compile(r"\blog\(|cross_?entropy|\bwhere\(|\bpow\(|hinge|divergence")
"""What gives another number with the two the other way round: a difference squared does not."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call, and one a loss that `compile` got."""
    for file in files_of_keras(facts):
        for function in compiled_losses(facts, file):
            yield from _defined_so(facts, file, function)
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


def _defined_so(facts: Facts, file: str, function: ast.FunctionDef) -> Iterator[Finding]:
    """A finding for a loss whose first parameter is named for what comes second."""
    first, second, *_ = [*parameters(function), "", ""]
    called = any(ast.unparse(one.func) == function.name for one in pastes.walk(facts.tree(file), ast.Call))
    own = pastes.source(facts, file)
    if called or not _PREDICTED.search(first) or not _TRUE.search(second):
        return
    if not _APART.search(own.code_of(function)):
        return
    line = facts.source(file)[function.lineno - 1]
    new = line.replace(f"({first}, {second}", f"({second}, {first}", 1)
    edit = Edit(file, function.lineno, function.lineno, (new,)) if new != line else None
    yield Finding(
        NAMES[0], "error", None, (),
        f"{function.name} calls what it gets first {first}, and Keras gives a loss the labels first: {first} are the "
        f"labels there, and {second} the predictions",
        pastes.written(edit) or f"def {function.name}({second}, {first}, ...)",
        file, function.lineno, evidence=(f"line {function.lineno}: {line.strip()}",), confidence="likely",
    )  # fmt: skip
