"""A graph from a file that calls a Python function of the process that saved it: this one has none of that name."""

from __future__ import annotations

import re

from pyfunc_debug.doctor.failures.explanation import Explanation
from pyfunc_debug.doctor.failures.situation import Situation

RULE = "serialization"
_SAID = re.compile(r"Could not find callback with key=(pyfunc_\d+)|callback (pyfunc_\d+) is not found")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the registry did not have a node's function."""
    text, spot = str(situation.error), situation.last
    found = _SAID.search(text)
    if spot is None or found is None:
        return None
    token = found[1] or found[2]
    known = situation.rows("SELECT 1 FROM node WHERE token = ? AND file IS NOT NULL", (token,))
    if known:
        return None
    node = _NODE.search(text)
    name = f" ({node[1]})" if node is not None else ""
    cause = (
        f"This graph comes from a file with a py_function in it{name}. A file holds of its Python only the name "
        f"{token}, and only the process that saved it has a function of that name."
    )
    advice = (
        "Where it is saved: write what it does with TensorFlow's ops and save again, or save up to its inputs, return "
        "these, and call the Python function here on them."
    )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
