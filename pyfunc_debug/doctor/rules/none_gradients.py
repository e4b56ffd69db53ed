"""Inputs that get no gradient, which TensorFlow silently turns into zeros."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies import listed, several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.locations import path, sites
from pyfunc_debug.records import Finding, Node

NAMES = ("none-gradient",)
_LEAVES = re.compile(r"\.numpy\(\)|\bnp\.|\bnumpy\.|\bfloat\(|\bint\(|tf\.stop_gradient|\.item\(\)|\.tolist\(\)")
"""What takes a body out of TensorFlow."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and its inputs, from the first gradient call in which it was seen.

    Labels, masks and constants have no gradient either, and need none: an input counts if it is computed from a
    variable in its graph, or if the body has no gradient for any of its inputs.
    """
    seen: dict[tuple[object, ...], list[tuple[int, int | None]]] = {}
    for node, call, noticed in facts.notices["none-gradient"]:
        if node is None or facts.nodes[node].origin != "user":
            continue
        without = noticed["inputs"]
        trained = [position for position in without if position in noticed.get("trained", ())]
        if not trained and len(without) < len(noticed.get("wanted", without)):
            continue
        known = facts.nodes[node]
        key = (known.body, known.file, known.line, *(trained or without))
        seen.setdefault(key, []).append((node, call))
    for (_, file, line, *positions), found in seen.items():
        nodes = tuple(dict.fromkeys(node for node, _ in found))
        node, call = found[0]
        names = [path(facts.reader, node, position) for position in positions if isinstance(position, int)]
        which = f"input {names[0]}" if len(names) == 1 else f"inputs {', '.join(names)}"
        body = facts.nodes[node].body
        cut, text = _cut(facts, node)
        where = f" Line {cut} leaves TensorFlow: `{text}`." if cut else ""
        yield Finding(
            "none-gradient", "warning", node, () if call is None else (call,),
            f"{body} has no gradient for its {which}, so that TensorFlow uses zeros instead and nothing before it is "
            f"trained through it{sites(facts.reader, nodes)}{listed(nodes)}.{where}",
            _in_ops(facts, facts.nodes[node])
            or f"compute line {cut} with TensorFlow's ops (tf.* instead of np.*, no .numpy()), or give "
            f"{facts.name(facts.nodes[node])} a gradient of its own with @tf.custom_gradient" if cut else
            "compute with TensorFlow's ops from input to output, or give the function a gradient of its own with "
            "@tf.custom_gradient; do not pass an input that has no influence",
            str(file) if file is not None else None, cut or (line if isinstance(line, int) else None), several(nodes),
        )  # fmt: skip


def _cut(facts: Facts, node: int) -> tuple[int | None, str]:
    """The first line of the body that leaves TensorFlow."""
    known = facts.nodes[node]
    for number, text in facts.body(known):
        if _LEAVES.search(text):
            return number, text.strip()
    return None, ""


def _in_ops(facts: Facts, node: Node) -> str:
    """The body's lines in TensorFlow's ops; "" where some of it has no such op."""
    pieces = pastes.in_ops(facts, node)
    return pastes.all_replaced(facts, node.file, pieces) if pieces else ""
