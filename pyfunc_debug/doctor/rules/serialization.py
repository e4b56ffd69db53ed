"""Nodes restored from a file whose names in TensorFlow's registry belong to other functions of this process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("serialization",)
_FIX = (
    "a SavedModel does not hold Python: it stores only the name of the node's function, {token}, and this process gave "
    "that name to another function. Load the model before anything makes a py_function, and register its functions in "
    "the order in which they were made, or save a model without py_function (graph code, or a custom op)"
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each restored node and function that TensorFlow runs in its place."""
    nodes = {node.token: node for node in facts.nodes.values()}
    for _, _, noted in facts.notices.get("serialization", []):
        node = nodes.get(noted["name"])  # the notice may have come before the node's first call
        if node is None or _registers(facts, node):
            continue
        name, where = facts.name(node), facts.source_line(node.file, node.line)
        place = "" if "lambda at" in name else f" ({where})" if node.file is not None else ""
        restored = f"node {noted['op']} of {noted['function']}, which was restored from a file,"
        first = facts.calls(node.id).first
        calls = () if first is None else (first,)
        fix = _FIX.format(token=node.token)
        if (node.graph, node.name) == (noted["function"], noted["op"]):  # perhaps this very process saved it
            yield Finding(
                "serialization", "warning", node.id, calls,
                f"{restored} runs {name}{place}, because {node.token} is its name here: right only if the model was "
                "saved by this process",
                fix, node.file, node.line, (), confidence="likely",
            )  # fmt: skip
        else:
            yield Finding(
                "serialization", "error", node.id, calls,
                f"{restored} runs {name}{place} instead of the function that it was saved with: {node.token} is the "
                f"name of {name} in this process",
                fix, node.file, node.line,
            )  # fmt: skip


def _registers(facts: Facts, node: Node) -> bool:
    """Whether a node was made for its name alone, by which a restored one finds its function: its result is dropped."""
    made = pastes.call_of(facts, node)
    parent = pastes.source(facts, made[0]).parent(made[1]) if made is not None else None
    return isinstance(parent, ast.Expr)
