"""Gradients of the user's own that finite differences of the body contradict: checked by sample as recording ended."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding, Node

NAMES = ("gradient-check",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for number, call, noticed in facts.notices["gradient-check"]:
        node = facts.nodes[number] if number is not None else None
        if node is None or call is None:
            continue
        function, tree = facts.function(node), facts.tree(node.file)
        custom = code.own_gradients(function, tree) if function is not None and tree is not None else []
        own = custom[0] if len(custom) == 1 else None
        whose = f" of {own.name}" if isinstance(own, ast.FunctionDef) and own is not function else ""
        place = "".join(f"[{one}]" for one in noticed["index"])
        yield Finding(
            NAMES[0], "warning", node.id, tuple(noticed["gradients"]),
            f"the gradient that @tf.custom_gradient gives {node.body}{whose} is not its slope: "
            f"d{noticed['path']}{place} is {noticed['recorded']:.4g}, and {noticed['finite']:.4g} by finite "
            f"differences of the body, in call #{call} and in each of the {len(noticed['gradients'])} calls that were "
            "checked",
            (_derived(facts, node, own) if own is not None else "")
            or "correct the inner function, whose result is the upstream gradient times the slope; or remove "
            "@tf.custom_gradient, and return only the value: TensorFlow derives the gradient",
            node.file, own.lineno if own is not None else node.line, confidence="proven",
        )  # fmt: skip


def _derived(facts: Facts, node: Node, function: Definition) -> str:
    """The function without its own gradient: TensorFlow derives it."""
    if not isinstance(function, ast.FunctionDef) or len(function.decorator_list) != 1 or node.file is None:
        return ""
    values = pastes.returns(function)
    first, text = function.decorator_list[0].lineno, facts.source(node.file)
    pairs = [one for one in values if isinstance(one, ast.Tuple) and len(one.elts) == 2]
    if len(values) != 1 or len(pairs) != 1 or first != function.lineno - 1:
        return ""
    value = pastes.replaced(facts, node.file, {pairs[0]: pastes.text_of(facts, node.file, pairs[0].elts[0])})
    return pastes.written(Edit(node.file, first, function.lineno, (text[function.lineno - 1],)), value)
