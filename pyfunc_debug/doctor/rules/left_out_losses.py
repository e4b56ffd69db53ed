"""An own step of training whose loss lacks what regularizers and `add_loss` add: only `fit` takes it by itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.models.own_steps import OwnStep, own_steps
from pyfunc_debug.records import Finding

NAMES = ("left-out-loss",)
_ADDS = re.compile(r"\b(?:kernel|bias|activity|embeddings|recurrent)_regularizer\s*=\s*(?!None)|\.add_loss\(")
_TAKES = re.compile(r"\.losses\b(?!\.| import)|compute_loss|compiled_loss|l2_loss|reg_loss|regularization")
"""Who writes one of these adds them, or computes them otherwise."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a step."""
    told: set[tuple[str, int]] = set()
    for step in own_steps(facts):
        lines = facts.code(step.file)
        made = [number for number, text in enumerate(lines, 1) if _ADDS.search(text)]
        if not made or any(_TAKES.search(text) for text in lines) or (step.file, step.block.lineno) in told:
            continue
        told.add((step.file, step.block.lineno))
        yield _finding(facts, step, made[0])


def _finding(facts: Facts, step: OwnStep, made: int) -> Finding:
    tf = pastes.module(facts, step.file, "tensorflow") or "tf"
    last, loss = step.block.body[-1], step.losses[0]
    sets = isinstance(last, ast.Assign) and [ast.unparse(one) for one in last.targets] == [loss]
    text = f"{loss} += {tf}.add_n({step.model}.losses)"
    return Finding(
        NAMES[0], "warning", None, (),
        f"the loss of this step (line {last.lineno}) lacks what line {made} adds to {step.model}.losses: only fit "
        "takes it by itself, and here nothing does",
        pastes.written(pastes.behind(step.file, last, text)) if sets and len(step.losses) == 1
        else f"loss += {tf}.add_n({step.model}.losses)  # under the tape",
        step.file, last.lineno, evidence=(f"line {made}: {facts.line(step.file, made)}",), confidence="likely",
    )  # fmt: skip
