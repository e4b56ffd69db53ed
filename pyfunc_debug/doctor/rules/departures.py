"""Nodes that left the process while it was recorded: saved with a model, or given to the tf.data service."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.string_ops import as_string_ops
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.graphs import leaving
from pyfunc_debug.doctor.graphs.saved_behind import saved_behind
from pyfunc_debug.doctor.rules.needless_python import as_graph_code
from pyfunc_debug.events import TFLITE, Body
from pyfunc_debug.interception.graphs.held import HeldNode
from pyfunc_debug.records import Finding, Frame, Node

NAMES = ("distribution", "serialization")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of the user's and place that its nodes went to."""
    nodes = {node.token: node for node in facts.nodes.values()}
    for rule, notice in (("serialization", "saved"), ("distribution", "distributed")):
        groups: dict[object, list[dict[str, Any]]] = {}
        for _, _, noted in facts.notices.get(notice, []):
            groups.setdefault((noted["body"], noted["file"], noted["line"], noted["to"]), []).append(noted)
        places = {(one.file, one.line) for one in failures(facts, (rule,))}
        for group in groups.values():
            found = _finding(facts, rule, group, [nodes[one["name"]] for one in group if one["name"] in nodes])
            if (found.file, found.line) not in places:
                yield found


def _finding(facts: Facts, rule: str, group: Sequence[dict[str, Any]], nodes: Sequence[Node]) -> Finding:
    noted = group[0]
    stack = nodes[0].stack if nodes else ()
    site = None if noted["site"] is None else Frame(noted["site"][0], noted["site"][1], noted["site"][2])
    body = Body(noted["body"], noted["file"], noted["line"], (), internal=False)
    node = HeldNode(
        noted["name"],
        noted["kind"],
        body,
        noted["op"],
        noted["function"],
        stack,
        noted["generator"],
        restored=False,
        takes=tuple(noted.get("takes", ())),
        shared=tuple(noted.get("shared", ())),
    )
    name, graduates = leaving.name_of(node), facts.front != "shell"
    kind = nodes[0].kind if nodes else node.kind  # a py_func is one, too
    if rule == "serialization":
        message = (
            f"the {kind} of {name} was saved to {noted['to']}, which holds only the name {node.token} of its "
            "function: another process that loads it fails at this node, or runs another function of that name"
        )
        outside = "what is saved"
        if noted["to"] == TFLITE:
            outside = "what is converted"
            message = (
                f"the {node.kind} of {name} is in a model that a TFLiteConverter converts, and {TFLITE} runs ops only, "
                'no Python: the conversion fails, or with allow_custom_ops=True the interpreter does ("unresolved '
                'custom op")'
            )
        fix = _in_graph(facts, nodes) or leaving.replacement(node, outside, graduates)
        behind = None if fix.startswith(("Put", "Replace")) else _behind(facts, nodes, site, node)
        if behind is not None:
            fix, given = behind
            message += (
                f". Saved with {given} as an input, it does not run {name}: who loads it calls {name} first, and feeds "
                "what that returns"
            )
    elif node.generator:
        message = (
            f"the elements of a dataset for the tf.data service at {noted['to']} come from the Python generator "
            f"{name}, which no other process has"
        )
        fix = _saved_first(facts, site) or leaving.generator_fix(name)
    else:
        message = (
            f"a dataset with the {node.kind} of {name} went to the tf.data service at {noted['to']}: a worker in "
            "another process has no function of its name"
        )
        fix = (
            _in_graph(facts, nodes)
            or _saved_first(facts, site)
            or leaving.replacement(node, "what is distributed", graduates)
        )
    where = stack[-1] if stack else site
    evidence = [f"op {node.op}{f' of {node.graph}' if node.graph else ''}, token {node.token}"]
    if site is not None and site != where:
        verb = "converted" if noted["to"] == TFLITE else "saved" if rule == "serialization" else "handed over"
        evidence.append(f"{verb} at {facts.source_line(site.file, site.line)}")
    return Finding(
        rule, "warning", nodes[0].id if nodes else None, (), message, fix, where.file if where else body.file,
        where.line if where else body.line, tuple(one.id for one in nodes) if len(nodes) > 1 else (), tuple(evidence),
        "measured" if rule == "serialization" else "likely",
    )  # fmt: skip


def _in_graph(facts: Facts, nodes: Sequence[Node]) -> str:
    return (as_graph_code(facts, nodes[0]) or as_string_ops(facts, nodes[0])) if nodes else ""


def _behind(facts: Facts, nodes: Sequence[Node], site: Frame | None, node: HeldNode) -> tuple[str, str] | None:
    """The lines that save what is behind a node, where that is the first op on the signature's inputs."""
    if site is None or len(nodes) != 1:
        return None
    return saved_behind(facts, nodes[0], site, node.takes, node.shared)


def _saved_first(facts: Facts, site: Frame | None) -> str:
    """Lines above the one that hands a dataset over: its elements are made here, once, and read from a folder there."""
    for call in pastes.around(facts.tree(site.file), site.line, ast.Call) if site is not None else ():
        given: ast.expr | None = None
        if isinstance(call.func, ast.Attribute) and call.func.attr == "apply":
            given = call.func.value
        elif ast.unparse(call.func).endswith("register_dataset"):
            given = pastes.argument(call, 1, "dataset")
        tf = pastes.module(facts, site.file, "tensorflow") if site is not None else None
        if site is not None and tf is not None and isinstance(given, ast.Name):
            name = given.id
            lines = f'{name}.save("{name}_elements")', f'{name} = {tf}.data.Dataset.load("{name}_elements")'
            return pastes.written(pastes.above(facts, site.file, pastes.first_line(call), *lines))
    return ""
