"""Gradients that become very large or almost nothing on their way through a body."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from statistics import median

from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.ranges import squashed
from pyfunc_debug.records import Finding, Node

NAMES = ("exploding-gradient", "vanishing-gradient")
_LEAST_CALLS = 5
_ROWS = 2000
"""How many gradient calls of a body are looked at."""
_LARGE, _SMALL = 1e4, 1e-6
_HINGE = re.compile(r"\bmaximum\(|\brelu\(|hinge")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body, where the median of its gradient calls is beyond the bounds."""
    none = {node for node, _, _ in facts.notices["none-gradient"]}
    for group in facts.lines:
        if facts.calls_of(group, "gradient").count < _LEAST_CALLS or none & {node.id for node in group}:
            continue
        ids = ", ".join(str(node.id) for node in group)
        calls: dict[int, tuple[list[tuple[float, float]], list[tuple[float, float]]]] = {}
        for call, role, low, high, shape in facts.reader.rows(
            "SELECT c.id, v.role, v.min, v.max, v.shape FROM (SELECT id FROM call WHERE "
            f"node IN ({ids}) AND kind = 'gradient' AND status = 'ok' ORDER BY id LIMIT {_ROWS}) c JOIN value v "
            "ON v.call = c.id WHERE v.min IS NOT NULL AND v.shape IS NOT NULL"
        ):
            size = math.prod(json.loads(shape))
            calls.setdefault(call, ([], []))[role == "output"].append((max(abs(low), abs(high)), size))
        growth, share, first = [], [], None
        for call, (came, went) in calls.items():
            largest = max((value for value, _ in came), default=0.0)
            if not largest or not went:
                continue
            first = call if first is None else first
            spread = max(1.0, sum(size for _, size in came) / max(1, sum(size for _, size in went)))  # each is a sum
            growth.append(max(value for value, _ in went) / largest / spread)
            share.append(sum(value * size for value, size in went) / sum(value * size for value, size in came))
        if len(growth) < _LEAST_CALLS or first is None:
            continue
        if median(growth) > _LARGE:
            yield _found(facts, group, NAMES[0], first, median(growth), len(growth))
        elif median(share) < _SMALL and not (median(share) == 0 and _is_hinge(facts, group[0])):
            yield _found(facts, group, NAMES[1], first, median(share), len(growth))


def _is_hinge(facts: Facts, node: Node) -> bool:
    """Whether a body is flat on purpose where nothing is left to learn, as a triplet loss is."""
    return any(_HINGE.search(text) for _, text in facts.body(node))


def _found(facts: Facts, group: list[Node], rule: str, call: int, ratio: float, calls: int) -> Finding:
    node, large = group[0], rule == NAMES[0]
    name = facts.name(node)
    return Finding(
        rule, "warning", node.id, (call,),
        f"the gradient through {node.body} is {ratio:.2g} times as large behind it as before it, in the median of "
        f"{calls:,} gradient calls. " + ("What is trained in front of it gets huge steps: look for a division by small "
        "numbers, an exponential, a factor" if large else "What is trained in front of it learns nothing: its inputs "
        "are where the function is flat (tanh, sigmoid, clip), or it multiplies by almost nothing"),
        "gradients = [tf.clip_by_norm(gradient, 1.0) for gradient in gradients]  # before apply_gradients" if large
        else squashed(facts, node) or f"give {name} inputs of the size of 1: divide them by what they are on average",
        node.file, node.line, several(one.id for one in group),
        (f"gradient {facts.shown(call)}",), "measured",
    )  # fmt: skip
