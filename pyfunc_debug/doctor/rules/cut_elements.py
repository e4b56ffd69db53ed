"""Generators that yield fractions where `from_generator` declares whole numbers: TensorFlow cuts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.returned_kinds import CONTRACT
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.declared_dtypes import declared_dtypes
from pyfunc_debug.doctor.generators.shared_sources import passes
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding, Node

NAMES = (CONTRACT,)
_LOOKED = 8
"""How many elements are looked at (interception/yields.py)."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a generator and value of its elements."""
    seen: dict[tuple[str, str | None, int | None, int], list[tuple[int, dict[str, Any]]]] = {}
    for node, _, noticed in facts.notices.get(Notice.CUT_ELEMENT, []):
        one = facts.nodes.get(node) if node is not None else None
        if one is not None:
            seen.setdefault((one.body, one.file, one.line, noticed["position"]), []).append((one.id, noticed))
    for (*_, position), found in seen.items():
        number = found[0][0]
        yield _finding(facts, facts.nodes[number], position, [one for of, one in found if of == number])


def _finding(facts: Facts, node: Node, position: int, found: list[dict[str, Any]]) -> Finding:
    first, which = found[0], f" as value {position + 1}" if len(node.tout) > 1 else ""
    made = pastes.dataset_call(facts, node)
    name = facts.name(node)
    items = sum(one for *_, one in passes(facts, node))
    looked = min(_LOOKED, items) if items >= len(found) else max(one["element"] for one in found)
    elements = f"{len(found)} of the first {looked} elements" if looked > 1 else "1 element"
    edit = None
    if made is not None:
        file, call = made
        own, tf = pastes.source(facts, file), pastes.module(facts, file, "tensorflow") or "tf"
        dtypes = declared_dtypes(own, call)
        if dtypes is not None and len(dtypes) == len(node.tout) and dtypes[position] is not None:
            edit = pastes.replaced(facts, file, {dtypes[position]: f"{tf}.float32"})
    return Finding(
        CONTRACT, "warning", node.id, (),
        f"{name} yields {first['own']:.6g} ({first['source']}){which}, but its dataset declares {first['target']}: "
        f"TensorFlow cuts the fraction without a word, and makes {int(first['own'])} of it. So it did in {elements} "
        "that were looked at",
        pastes.written(edit) if edit is not None
        else f"declare tf.float32 in from_generator; or round in {name}, if whole numbers are meant",
        made[0] if made is not None else node.file, made[1].lineno if made is not None else node.line,
        evidence=(f"element {first['element']}: {first['own']:.6g} became {int(first['own'])}",),
    )  # fmt: skip
