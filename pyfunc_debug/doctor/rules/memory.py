"""What grows with each call or each epoch: TensorFlow's registry of Python functions, and what its entries hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.source import read
from pyfunc_debug.doctor.replacement import direct_call
from pyfunc_debug.doctor.rules.retraces import made_once
from pyfunc_debug.records import Finding, Node

NAMES = ("memory",)
_MANY = 1000
"""Fewer entries are not reported: a node has one."""
_SEVERAL = 3
_MUCH_BYTES = 10_000_000


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body whose entries pile up."""
    nodes = {node.token: node for node in facts.nodes.values()}
    for number, _, noticed in facts.notices.get("memory", []):
        count, size = noticed["entries"], noticed["nbytes"]
        if count < _MANY and not (count >= _SEVERAL and size >= _MUCH_BYTES):
            continue
        node = facts.nodes.get(number) if number is not None else nodes.get(noticed["name"])
        if node is None:
            node = next(
                (one for one in facts.nodes.values() if (one.file, one.line) == (noticed["file"], noticed["line"])),
                None,
            )
        if node is not None:
            yield _finding(facts, node, noticed)


def _finding(facts: Facts, node: Node, noticed: dict[str, Any]) -> Finding:
    count, size = noticed["entries"], noticed["nbytes"]
    name = facts.name(node)
    same = [one for one in facts.nodes.values() if (one.body, one.file, one.line) == (node.body, node.file, node.line)]
    calls = facts.calls_of(same).count
    eager = [one for one in same if (made := facts.functions.get(one.function or 0)) and made.kind == "eager"]
    eagerly = facts.calls_of(eager).count
    if eagerly > count / 2:  # its other nodes are not what grows
        node = max(eager, key=lambda one: facts.calls(one.id).count)
    site = facts.site(node.id)
    held = f", and with them {size / 1e6:,.1f} MB of arrays in their closures" if size >= _MUCH_BYTES / 10 else ""
    each = f", {size / count:,.0f} for each entry" if size else ""
    evidence = [f"{count:,} entries, {calls:,} calls, {size:,} bytes in closures{each}"]
    if eagerly > count / 2:
        grows = "each eager call of a py_function leaves one"
        edit = (
            direct_call((site.file, site.line)) if site and facts.source(site.file) == read(site.file).lines else None
        )
        pasted = "" if edit is None else "\n" + "\n".join(f"  {line.strip()}" for line in edit.lines)
        fix = (
            f"Outside of a graph, call {name} itself: tf.py_function brings nothing there. "
            f"{edit.instruction() if edit else ''}{pasted}"
        ).strip()
    else:
        grows = "each time the dataset or the tf.function is made again, its nodes leave one each"
        made_by = facts.functions.get(node.function or 0)
        fix = (made_once(facts, made_by) if made_by is not None else "") or (
            f"make the dataset or the tf.function that calls {name} once, before the loop, and use it again"
        )
    return Finding(
        "memory", "warning", node.id, (),
        f"TensorFlow keeps {count:,} entries for {name} that were made while recording{held}: {grows}, and none goes "
        "before the process ends",
        fix, site.file if site else node.file, site.line if site else node.line, evidence=tuple(evidence),
    )  # fmt: skip
