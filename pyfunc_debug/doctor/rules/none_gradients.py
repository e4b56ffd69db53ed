"""Inputs that get no gradient, which TensorFlow turns into zeros without a word."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyfunc_debug.doctor.bodies import listed, several, together
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.locations import path, sites
from pyfunc_debug.records import Finding

NAMES = ("none-gradient",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and its inputs, from the first gradient call in which it was seen."""
    reader = facts.reader
    rows = reader.rows(
        "SELECT t.node, n.body, n.file, n.line, t.call, t.facts FROM notice t JOIN node n ON n.id = t.node "
        "WHERE t.rule = 'gradient-none' AND n.origin = 'user' GROUP BY t.node HAVING t.id = min(t.id)"
    )
    for group in together(rows, 5):
        node, body, file, line, call, told = group[0]
        nodes = several(row[0] for row in group)
        inputs = [path(reader, node, position) for position in json.loads(told)["inputs"]]
        which = f"input {inputs[0]}" if len(inputs) == 1 else f"inputs {', '.join(inputs)}"
        yield Finding(
            "none-gradient", "warning", node, () if call is None else (call,),
            f"{body} has no gradient for its {which}: TensorFlow uses zeros "
            f"instead{sites(reader, nodes or (node,))}{listed(nodes)}",
            "a .numpy() or another step outside TensorFlow cuts the gradient: compute with TensorFlow's ops, or wrap "
            "the py_function in tf.custom_gradient; if the input has no influence, do not pass it",
            file, line, nodes,
        )  # fmt: skip
