"""Random numbers that Keras' layers, losses and steps draw in Python: once, while Keras traces them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.drawn_lines import drawn_line
from pyfunc_debug.doctor.facts import Facts
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
