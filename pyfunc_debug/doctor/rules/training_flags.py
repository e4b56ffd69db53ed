"""An own step of training that calls the model without `training=True`: dropout and batch normalization are off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.models.own_steps import OwnStep, own_steps
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding

NAMES = ("training-flag",)
_LAYERS = frozenset({
    "BatchNormalization", "Dropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianNoise", "GaussianDropout",
    "AlphaDropout",
})  # fmt: skip
_OFF = ("trainable = False", "learning_phase", "training=True")
"""Who writes one of these thinks of it: of layers that stay as they are, or that get the flag one by one."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a step."""
    told: set[tuple[str, int]] = set()
    for step in own_steps(facts):
        layers = [one for one in pastes.walk(step.own.tree, ast.Call) if pastes.last_name(one.func) in _LAYERS]
        plain = [one for one in step.calls if len(one.args) == 1 and not one.keywords]
        if not layers or not plain or len(plain) < len(step.calls) or (step.file, plain[0].lineno) in told:
            continue
        if step.model == "self" or any(word in text for word in _OFF for text in facts.code(step.file)):
            continue
        told.add((step.file, plain[0].lineno))
        yield _finding(facts, step, plain, layers)


def _finding(facts: Facts, step: OwnStep, plain: list[ast.Call], layers: list[ast.Call]) -> Finding:
    kinds = list(dict.fromkeys(pastes.last_name(one.func) for one in layers))
    text = step.own.text(plain[0])
    return Finding(
        NAMES[0], "warning", None, (),
        f"{text} (line {plain[0].lineno}) trains without training=True: {listed(kinds)} then work as in prediction. "
        "Only fit sets that flag by itself",
        pastes.all_replaced(facts, step.file, {one: step.own.with_argument(one, "training=True") for one in plain}),
        step.file, plain[0].lineno,
        evidence=tuple(f"line {one.lineno}: {facts.line(step.file, one.lineno)}" for one in layers[:2]),
        confidence="likely",
    )  # fmt: skip
