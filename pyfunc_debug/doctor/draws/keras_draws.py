"""Random numbers that Keras' layers, losses and steps draw in Python: once, while Keras traces them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.draws.drawn_in_python import in_words
from pyfunc_debug.doctor.draws.drawn_lines import drawn_line
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.models.eager_steps import run_eagerly
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding

_MOST = 4
"""Lines that are shown."""


def drawn(
    facts: Facts, file: str, owner: str, function: ast.FunctionDef, steps: int, by: str = ""
) -> Iterator[Finding]:
    """The lines of a function that draw, if any: Keras' steps get what was drawn at trace.

    Args:
      facts: The recording.
      file: The file of the function.
      owner: The function's name, with its class.
      function: The function.
      steps: How often Keras ran its graph.
      by: The function of the user's that was traced, where it was not Keras that traced its own.
    """
    found = {one.line: one for one in reversed(code.python_random(function, facts.tree(file)))}
    if not found:
        return
    lines = sorted(found)
    several = len(lines) > 1
    yield Finding(
        "trace-only", "warning", None, (),
        f"line{'s' * several} {listed(lines)} of {owner} draw{'s' * (not several)} {'' if several else 'a '}random "
        f"number{'s' * several} in Python. "
        + (
            f"{by} runs as a graph: all {steps:,} runs got what was drawn while it was traced" if by
            else f"Keras runs its steps in a graph: all {steps:,} steps got what was drawn while Keras traced them"
        ),
        _fix(facts, file, [found[line] for line in lines]), file, lines[0],
        evidence=tuple(f"line {line}: {facts.line(file, line)}" for line in lines[:_MOST]),
    )  # fmt: skip


def told_once(steps: int, by: str, several: bool) -> str:
    """The sentence that lines ran once: while Keras traced its steps, or while a function of the user's was traced.

    Args:
      steps: How often the graph ran.
      by: The user's function; "" for Keras.
      several: Whether there are several lines.
    """
    lines = f"the line{'s' * several} ran"
    if by:
        return f"{by} runs as a graph: {lines} while it was traced, and not in each of its {steps:,} runs"
    return f"Keras runs its steps in a graph: {lines} while Keras traced them, and not in each of its {steps:,} steps"


def _fix(facts: Facts, file: str, draws: list[code.Write]) -> str:
    """The lines that draw in the graph, and where Python decides by what is drawn, what lets AutoGraph convert them."""
    edits = [drawn_line(facts, file, one, autograph=False) for one in draws]
    if None not in edits:
        return pastes.written(*edits)
    edits = [drawn_line(facts, file, one) for one in draws]
    if None not in edits:
        return pastes.written(*edits, *_converted(facts, file, draws))
    return run_eagerly(facts, file) or in_words(facts, file, draws[0], "in a callback, into a tf.Variable")


def _converted(facts: Facts, file: str, draws: list[code.Write]) -> list[Edit | None]:
    """`@tf.function` for the functions that draw: Keras itself does not convert what it traces."""
    tf, tree = pastes.module(facts, file, "tensorflow") or "tf", facts.tree(file)
    around = {one.lineno: one for draw in draws for one in pastes.around(tree, draw.line, ast.FunctionDef)[-1:]}
    if any(one.decorator_list for one in around.values()):
        return [None]
    said = "# Keras itself does not convert an `if`"
    return [pastes.above(facts, file, line, f"@{tf}.function  {said}") for line in around]
