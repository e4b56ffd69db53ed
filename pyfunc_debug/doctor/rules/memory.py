"""What grows with each call or each epoch: TensorFlow's registry of Python functions, and what its entries hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.open_figures import open_figure
from pyfunc_debug.doctor.bodies.replacement import direct_call
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import read
from pyfunc_debug.doctor.graphs import growing
from pyfunc_debug.doctor.rules.retraces import made_once
from pyfunc_debug.records import Finding, Node

NAMES = ("memory",)
_MANY = 500
"""Fewer entries are not reported: a node has one."""
_SEVERAL = 3
_MUCH_BYTES = 10_000_000
_MANY_FIGURES = 10


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
        if node is not None and node.origin == "user" and not _in_one_graph(facts, node, count):
            yield _finding(facts, node, noticed)
    yield from _kept(facts)
    yield from _figures(facts)


def _in_one_graph(facts: Facts, node: Node, entries: int) -> bool:
    """Whether most are nodes of a single graph, as of a loop that Python unrolls: then they do not grow."""
    same = {one.id for one in _of_body(facts, node)}
    return any(2 * len(same.intersection(trace.nodes)) > entries for trace in facts.traces)


def _of_body(facts: Facts, node: Node) -> list[Node]:
    """All nodes of a node's body."""
    body = (node.body, node.file, node.line)
    return [one for one in facts.nodes.values() if (one.body, one.file, one.line) == body]


def _kept(facts: Facts) -> Iterator[Finding]:
    """Containers of the program's own that a body puts an array into in each call, and that nothing empties."""
    for number, _, noticed in facts.notices.get("kept", []):
        node = facts.nodes.get(number) if number is not None else None
        count, size, name, line = (noticed[key] for key in ("entries", "nbytes", "name", "line"))
        if node is None or count < _SEVERAL or size < _MUCH_BYTES:
            continue
        same = _of_body(facts, node)
        calls = facts.calls_of(same).count + facts.counted_only(one.id for one in same)
        if 2 * count < calls or _emptied(facts, node, name):
            continue
        yield Finding(
            "memory", "note" if _read_elsewhere(facts, node, name) else "warning", node.id, (),
            f"{node.body} keeps {size / 1e6:,.1f} MB in {name}: {count:,} entries after {calls:,} calls, "
            f"{size / count / 1e3:,.1f} kB each. It grows with each call that brings a new one",
            _bounded(facts, node, name, line), node.file, line,
            evidence=(f"line {line}: {facts.line(node.file, line)}", *growing.memory(facts)), confidence="likely",
        )  # fmt: skip


def _emptied(facts: Facts, node: Node, name: str) -> bool:
    """Whether the file takes anything out of a container again, or bounds it."""
    text = "\n".join(facts.code(node.file))
    gone = rf"(?:\bdel {re.escape(name)}\b|{re.escape(name)}\.(?:clear|pop\w*|remove|discard)\(|maxlen)"
    return re.search(gone, text) is not None


def _figures(facts: Facts) -> Iterator[Finding]:
    """Bodies that leave a figure of pyplot's open in each call."""
    told = set()
    for group in facts.lines:
        calls = facts.calls_of(group).count
        found = open_figure(facts, group[0]) if calls >= _MANY_FIGURES else None
        if found is None or (group[0].file, found.line) in told:
            continue
        told.add((group[0].file, found.line))
        yield Finding(
            "memory", "warning", group[0].id, (),
            f"{group[0].body} makes a figure in each call ({found.maker}) and never closes it: pyplot keeps every one, "
            f"with its canvas, until the process ends. {calls:,} calls so far",
            found.fix, group[0].file, found.line, evidence=tuple(growing.memory(facts)), confidence="likely",
        )  # fmt: skip


def _read_elsewhere(facts: Facts, node: Node, name: str) -> bool:
    """Whether something outside of the body asks for what is kept: then it is wanted."""
    function, tree = facts.function(node), facts.tree(node.file)
    inside = {id(one) for one in ast.walk(function)} if function is not None else set()
    last = name.rpartition(".")[2]
    for one in pastes.walk(tree, ast.Attribute if "." in name else ast.Name):
        known = one.attr if isinstance(one, ast.Attribute) else one.id if isinstance(one, ast.Name) else ""
        if known == last and isinstance(one.ctx, ast.Load) and id(one) not in inside:  # type: ignore[attr-defined]
            return True
    return False


def _bounded(facts: Facts, node: Node, name: str, line: int) -> str:
    """The line that fills a container, and one that keeps it at a hundred."""
    found = pastes.lines_of(facts, node.file, line)
    least = f"del {name}[:-100]  # keeps the newest 100"
    code = facts.code(node.file)[line - 1 : line]
    if any("[" in text.partition("=")[0] for text in code):
        least = f"{name}.pop(next(iter({name}))) if len({name}) > 100 else None  # keeps the newest 100"
    elif not any(".append(" in text for text in code):
        least = f"{name}.pop() if len({name}) > 100 else None  # keeps 100"
    if found is None or node.file is None:
        return least
    indent, texts = found
    return pastes.written(Edit(node.file, line, line + len(texts) - 1, (*texts, f"{indent}{least}")))


def _finding(facts: Facts, node: Node, noticed: dict[str, Any]) -> Finding:
    count, size = noticed["entries"], noticed["nbytes"]
    name = facts.name(node)
    same = _of_body(facts, node)
    calls = facts.calls_of(same).count
    eager = [one for one in same if (made := facts.functions.get(one.function or 0)) and made.kind == "eager"]
    eagerly = facts.calls_of(eager).count
    if eagerly > count / 2:  # its other nodes are not what grows
        node = max(eager, key=lambda one: facts.calls(one.id).count)
    site = facts.site(node.id)
    held = f", and with them {size / 1e6:,.1f} MB of arrays in their closures" if size >= _MUCH_BYTES / 10 else ""
    each = f", {size / count:,.0f} for each entry" if size else ""
    evidence = [
        f"{count:,} entries, {calls:,} calls, {size:,} bytes in closures{each}",
        *growing.growth(facts, "entries", "entries in all"), *growing.memory(facts),
    ]  # fmt: skip
    if eagerly > count / 2:
        grows = "each eager call of a py_function leaves one, and a kernel that TensorFlow caches for it"
        evidence.append(
            "TensorFlow does so without a recording too: 38 kB an eager call on TensorFlow 2.21, and more of large "
            f"inputs{growing.a_call(facts)}. Outside of a graph tf.py_function brings {name} nothing but conversions; "
            "in a tf.function, one entry serves all calls"
        )
        tf = (pastes.module(facts, site.file, "tensorflow") if site else None) or "tf"
        casts = tuple(f"{tf}.{one}" for one in node.tout)
        known = site is not None and facts.source(site.file) == read(site.file).lines
        edit = direct_call((site.file, site.line), cast=casts, eager=True) if site is not None and known else None
        fix = pastes.written(edit) if edit is not None else f"call {name} itself, without tf.py_function around it"
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
