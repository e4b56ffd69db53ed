"""Random numbers that Keras' layers, losses and steps draw in Python: once, while Keras traces them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.drawn_lines import drawn_line
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding

_MOST = 4
"""Lines that are shown."""


def drawn(facts: Facts, file: str, owner: str, function: ast.FunctionDef, steps: int) -> Iterator[Finding]:
    """The lines of a function that draw, if any: Keras' steps get what was drawn at trace.

    Args:
      facts: The recording.
      file: The file of the function.
      owner: The function's name, with its class.
      function: The function.
      steps: How often Keras ran its graph.
    """
    found = {one.line: one for one in reversed(code.global_random(function, facts.tree(file)))}
    if not found:
        return
    lines = sorted(found)
    edits = [drawn_line(facts, file, found[line]) for line in lines]
    edits += _imported(facts, file) if None not in edits else []
    whole = pastes.written(*edits) if None not in edits else ""
    several = len(lines) > 1
    first = f"tf.numpy_function(lambda: {found[lines[0]].text}, [], tf.float64)"
    yield Finding(
        "trace-only", "warning", None, (),
        f"line{'s' * several} {listed(lines)} of {owner} draw{'s' * (not several)} {'' if several else 'a '}random "
        f"number{'s' * several} in Python. Keras runs its steps in a graph: all {steps:,} steps got what was drawn "
        "while Keras traced them",
        whole or f"tf.cast({first}, tf.float32)  # draws each time", file, lines[0],
        evidence=tuple(f"line {line}: {facts.line(file, line)}" for line in lines[:_MOST]),
    )  # fmt: skip


def _imported(facts: Facts, file: str) -> list[Edit | None]:
    """The import of TensorFlow that a program of Keras' only has not; in a notebook another cell may have it."""
    tree = facts.tree(file)
    lines = [
        one.lineno for one in getattr(tree, "body", ())
        if isinstance(one, ast.Import) or (isinstance(one, ast.ImportFrom) and one.module != "__future__")
    ]  # fmt: skip
    if not file.endswith(".py") or not lines or pastes.module(facts, file, "tensorflow") is not None:
        return []
    return [Edit(file, lines[0], lines[0] - 1, ("import tensorflow as tf",))]
