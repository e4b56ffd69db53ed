"""Steps of training that a program writes itself: a tape, a model under it, and that model's variables asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, asked_of_tape, gradients_of_tape, tapes

TRAINABLE = ("trainable_variables", "trainable_weights")
"""What a model of Keras' lists for who trains it."""


@dataclass(frozen=True)
class OwnStep:
    """One block of a tape that trains a model.

    Attributes:
      file: The user's file.
      own: Its source.
      block: The block of the tape.
      model: The model whose variables are asked for, as it is written: `model`, `self`.
      calls: The calls of the model under the tape.
      losses: What is differentiated, by the names it has.
    """

    file: str
    own: Source
    block: ast.With
    model: str
    calls: tuple[ast.Call, ...]
    losses: tuple[str, ...]


def own_steps(facts: Facts) -> Iterator[OwnStep]:
    """The steps of all files whose text is in the recording."""
    for file in facts.files:
        own = pastes.source(facts, file)
        for block in tapes(own):
            asked = gradients_of_tape(own, block)
            models = {
                ast.unparse(part.value) for one in asked
                for given in (*one.args[1:], *(each.value for each in one.keywords if each.arg == "sources"))
                for part in ast.walk(given)
                if isinstance(part, ast.Attribute) and part.attr in TRAINABLE
            }  # fmt: skip
            if len(models) != 1:
                continue
            (model,) = models
            calls = tuple(one for one in pastes.walk(block, ast.Call) if ast.unparse(one.func) == model)
            losses = tuple(dict.fromkeys(map(ast.unparse, asked_of_tape(own, block))))
            if calls:
                yield OwnStep(file, own, block, model, calls, losses)
