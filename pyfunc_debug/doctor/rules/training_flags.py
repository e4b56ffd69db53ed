"""An own step of training that calls the model without `training=True`, or a validation that calls it with it."""

from __future__ import annotations

import ast
import re
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


_HELD_BACK = re.compile(r"(?:.*_)?(?:val|valid|validation|test|eval)(?:_(?!train).*)?")
"""Names of data, or of functions, that validate or test: `val_ds`, `self.test_data`, `validation_step`."""
_MEANT = re.compile(r"mc_|discriminator|monte|uncertain|bayes|ensemble|\bstochastic", re.I)
"""Who writes one of these asks for dropout in prediction on purpose, as pix2pix does."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a step, or a validation."""
    told: set[tuple[str, int]] = set()
    yield from _validations(facts)
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


def _validations(facts: Facts) -> Iterator[Finding]:
    """`for x, y in val_ds: model(x, training=True)`, of a model that an own step of the file trains."""
    told: set[tuple[str, int]] = set()
    for step in own_steps(facts):
        layers = [one for one in pastes.walk(step.own.tree, ast.Call) if pastes.last_name(one.func) in _LAYERS]
        trains = [one for one in step.calls if _flag(one) is not None]
        if not layers or not trains or step.model == "self" or any(map(_MEANT.search, facts.code(step.file))):
            continue
        for call in pastes.walk(step.own.tree, ast.Call):
            flag = _flag(call) if ast.unparse(call.func) == step.model else None
            where = _held_back(step, call) if flag is not None else None
            if flag is None or where is None or (step.file, call.lineno) in told:
                continue
            told.add((step.file, call.lineno))
            kinds = list(dict.fromkeys(pastes.last_name(one.func) for one in layers))
            lines = dict.fromkeys([where.lineno, call.lineno])
            yield Finding(
                NAMES[0], "warning", None, (),
                f"{step.own.text(call)} validates with training=True: {listed(kinds)} then work as in training"
                + (", and learn from the data that are held back" if "BatchNormalization" in kinds else ""),
                pastes.written(pastes.replaced(facts, step.file, {flag: "False"})), step.file, call.lineno,
                evidence=tuple(f"line {one}: {facts.line(step.file, one)}" for one in lines), confidence="likely",
            )  # fmt: skip


def _flag(call: ast.Call) -> ast.expr | None:
    """The `True` of `training=True`."""
    given = [one.value for one in call.keywords if one.arg == "training"]
    return given[0] if given and isinstance(given[0], ast.Constant) and given[0].value is True else None


def _held_back(step: OwnStep, call: ast.Call) -> ast.stmt | None:
    """The innermost loop over data to validate with, or the function that does so, in which a call stands.

    A call under a tape trains, whatever its function is called. A loop inside of it, as `for _ in range(20)`, may take
    the mean of several answers.
    """
    for one in step.own.around(call):
        if isinstance(one, ast.With) and "GradientTape" in ast.unparse(one.items[0].context_expr):
            return None
        if isinstance(one, (ast.ListComp, ast.GeneratorExp, ast.While)):
            return None
        if isinstance(one, ast.For):
            parts = [part for part in ast.walk(one.iter) if isinstance(part, (ast.Name, ast.Attribute))]
            names = [ast.unparse(part).rpartition(".")[2] for part in parts]
            return one if any(map(_HELD_BACK.fullmatch, names)) else None
        if isinstance(one, ast.FunctionDef):
            return one if _HELD_BACK.fullmatch(one.name) else None
    return None
