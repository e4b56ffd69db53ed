"""Datasets of `from_generator` that one line builds again and again: TensorFlow keeps the generator of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets import built_once, folds
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.doctor.generators import late_generators
from pyfunc_debug.doctor.graphs import growing
from pyfunc_debug.records import Finding, Node

NAMES = ("dataset-in-loop",)
_MANY, _SEVERAL = 10, 3
"""Datasets of one line: without much in their closures; and with it, or dropped by each pass of a loop."""
_TRACED = 5
"""`retraces` tells of functions that were mapped over five datasets."""
_MUCH_BYTES = 10_000_000


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that builds them."""
    lines: dict[tuple[object, ...], list[Node]] = {}
    for node in facts.nodes.values():
        if node.origin != "user" and node.stack and node.file is not None and facts.source(node.file):
            key = (node.body, node.file, node.line, *((one.file, one.line) for one in node.stack))
            lines.setdefault(key, []).append(node)
    held = {
        (noticed["file"], noticed["line"]): noticed.get("old_nbytes", 0)
        for _, _, noticed in facts.notices.get("memory", [])
    }
    told: set[tuple[str, int]] = set()
    for nodes in lines.values():
        size = held.get((nodes[0].file, nodes[0].line), 0)
        found = pastes.dataset_call(facts, nodes[0])
        if found is None or len(nodes) < _SEVERAL:
            continue
        if len(nodes) >= (_SEVERAL if size >= _MUCH_BYTES else _MANY):
            yield _finding(facts, nodes, size, *found)
            continue
        place = (found[0], found[1].lineno)
        dropped = folds.dropped_by(facts, nodes[0], found[1]) if place not in told and not _retraced(facts) else None
        if dropped is not None:
            told.add(place)
            yield _of_folds(facts, nodes, *dropped, *found)


def _finding(facts: Facts, nodes: list[Node], size: int, file: str, call: ast.Call) -> Finding:
    node, count = nodes[0], len(nodes)
    name = facts.name(node)
    same = {one.id for one in facts.nodes.values() if one.origin != "user" and one.stack == node.stack}
    spent = sum(trace.duration_ns for trace in facts.traces if same.intersection(trace.nodes)) / 1e6
    message = (
        f"the dataset that takes its elements from {name} was built {count:,} times. TensorFlow traced its functions "
        f"again for each ({spent:,.0f} ms together), and keeps {name} of each until the process ends"
    )
    if size:
        message += (
            f", with the arrays in its closure: {size / 1e6:,.1f} MB that only older ones need, "
            f"{size / (count - 1) / 1e6:,.1f} MB more each time"
        )
    evidence = [
        f"{len(same):,} entries in TensorFlow's table of Python functions, {len(same) / count:.0f} more each time",
        *growing.memory(facts),
    ]
    outer = node.stack[0] if len(node.stack) > 1 else None
    if outer is not None:
        evidence.insert(0, f"line {outer.line} asks for it: {facts.line(outer.file, outer.line)}")
    fix = late_generators.built_once(facts, file, call) or _independent(facts, file, call) or (
        f"dataset = tf.data.Dataset.from_generator({name}, ...)  # once, above the loop; {name} runs again in each "
        "pass, and reads there what has changed"
    )  # fmt: skip
    return Finding(
        NAMES[0], "warning", node.id, (), message, fix, file, call.lineno, evidence=tuple(evidence),
        nodes=tuple(one.id for one in nodes),
    )  # fmt: skip


def _retraced(facts: Facts) -> bool:
    """Whether `retraces` has such datasets to tell of, with functions that are mapped over them."""
    traces = [one for one in facts.traces if facts.functions[one.function].origin == "user"]
    return sum(bool(one.reason) and one.reason[0].startswith("a new dataset") for one in traces) >= _TRACED


def _of_folds(
    facts: Facts, nodes: list[Node], around: str, loop: ast.For | ast.While, file: str, call: ast.Call
) -> Finding:
    """A few small ones that the passes of a loop drop: each may need data of its own, as a fold does."""
    own, name, count = pastes.source(facts, around), facts.name(nodes[0]), len(nodes)
    message = (
        f"the dataset that takes its elements from {name} was built {count:,} times, in passes of the loop in line "
        f"{loop.lineno}, which drops it. TensorFlow keeps {name} of each, with what it holds, until the process ends"
    )
    tf = pastes.module(facts, around, "tensorflow") or "tf"
    first, last = loop.body[0], loop.body[-1]
    indent, end = indent_of(own.lines[first.lineno - 1]), (last.end_lineno or last.lineno) + 1
    line = f"{tf}.keras.backend.clear_session()  # TensorFlow then lets go of them"
    inside = first.lineno > loop.lineno and not isinstance(last, (ast.Return, ast.Break, ast.Continue, ast.Raise))
    fix = pastes.written(Edit(around, end, end - 1, (f"{indent}{line}",))) if inside else ""
    evidence = (
        "where each pass can read the same data, build the dataset once, above the loop, instead",
        "clear_session() also resets Keras' names of layers, and forgets a global dtype policy, a distribution "
        "and its seed generator: set them again behind it",
    )
    return Finding(
        NAMES[0], "note", nodes[0].id, (), message, fix or line, file, call.lineno, evidence=evidence,
        nodes=tuple(one.id for one in nodes),
    )  # fmt: skip


def _independent(facts: Facts, file: str, call: ast.Call) -> str:
    """The lines that call its builder once, where it needs nothing of the loop."""
    asked = built_once.call_of(facts, file, call)
    return "" if asked is None else built_once.once(facts, asked)
