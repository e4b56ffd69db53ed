"""A list of losses that is not as long as the model's outputs: Keras compares only where both have one, in silence."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.models.compiled_models import Compiled, compiled_models, outputs
from pyfunc_debug.records import Finding

NAMES = ("uncounted-loss",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `compile`."""
    for compiled in compiled_models(facts):
        loss, count = compiled.loss, outputs(compiled)
        losses = loss.elts if isinstance(loss, (ast.List, ast.Tuple)) else []
        if not losses or count is None or any(isinstance(one, ast.Starred) for one in losses):
            continue
        if count == 1 < len(losses):
            yield _added(facts, compiled, losses)
        elif len(losses) < count:
            yield _fewer(facts, compiled, losses, count)


def _fewer(facts: Facts, compiled: Compiled, losses: list[ast.expr], count: int) -> Finding:
    """`loss=["mse"]` for two outputs: the second is not trained."""
    texts = [pastes.text_of(facts, compiled.file, one) for one in losses]
    assert compiled.loss is not None
    left, same = count - len(losses), len(set(texts)) == 1
    new = f"[{', '.join([*texts, *texts[:1] * left])}]"
    rest = "the last one is" if left == 1 else f"the last {left} are"
    return Finding(
        NAMES[0], "warning", None, (),
        f"{compiled.model} has {count} outputs, and the list of losses {len(losses)}: {rest} compared with nothing, "
        "and not trained by it",
        pastes.written(pastes.replaced(facts, compiled.file, {compiled.loss: new})) if same
        else f"a list of {count} losses, one for each output; None for one that has no labels",
        compiled.file, compiled.loss.lineno, confidence="likely",
    )  # fmt: skip


def _added(facts: Facts, compiled: Compiled, losses: list[ast.expr]) -> Finding:
    """`loss=["mse", "mae"]` for one output: the second is not computed."""
    keras, loss = pastes.module(facts, compiled.file, "keras"), compiled.loss
    assert loss is not None
    tf = pastes.module(facts, compiled.file, "tensorflow")
    keras = keras or (f"{tf}.keras" if tf else "keras")
    text = pastes.text_of(facts, compiled.file, loss)
    first = pastes.text_of(facts, compiled.file, losses[0])
    new = f"lambda y_true, y_pred: sum({keras}.losses.get(one)(y_true, y_pred) for one in {text})"
    return Finding(
        NAMES[0], "warning", None, (),
        f"{compiled.model} has one output, and a list of {len(losses)} losses: Keras takes one for each output, and "
        f"computes the first only, {first}",
        pastes.written(pastes.replaced(facts, compiled.file, {loss: new})),
        compiled.file, loss.lineno, confidence="likely",
    )  # fmt: skip
