"""NumPy bodies that write into their input, or return memory that they use again: both are TensorFlow's memory too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("writes-input", "reused-memory")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body. From the source: an array is what has a shape in the recorded calls."""
    bodies: dict[tuple[str, str | None, int | None], list[Node]] = {}
    for group in facts.lines:
        for node in group:
            if node.kind != "py_function" and facts.calls(node.id).count:
                bodies.setdefault((node.body, node.file, node.line), []).append(node)
    for nodes in bodies.values():
        function = facts.function(nodes[0])
        if function is None:
            continue
        writes = code.array_writes(function)
        yield from _input(facts, nodes, function, writes)
        yield from _memory(facts, nodes, function, writes)


def _input(facts: Facts, nodes: list[Node], function: code.Definition, writes: list[code.Write]) -> Iterator[Finding]:
    node = nodes[0]
    given = code.parameters(function)
    given = given[1:] if given[:1] == ["self"] else given
    for write in writes:
        if write.name not in given:
            continue
        position = given.index(write.name)
        call = facts.calls_of(nodes).first
        shape = _shape(facts, call, position)
        if shape is None or shape == "[]":  # a number: `x += 1` then makes a new one
            continue
        yield Finding(
            "writes-input", "warning", node.id, () if call is None else (call,),
            f"{node.body} writes into its input {write.name!r}. numpy_function hands out TensorFlow's own memory, so "
            "that this can change a constant, a variable or cached elements of the caller",
            _copied(facts, node, function, write), node.file, write.line,
            several(one.id for one in nodes), (f"line {write.line}: {write.text}",), "likely",
        )  # fmt: skip
        return


def _copied(facts: Facts, node: Node, function: code.Definition, write: code.Write) -> str:
    """The copy, once, at the beginning of the body."""
    copy, first = f"{write.name} = {write.name}.copy()", pastes.beginning(function)
    edit = pastes.above(facts, node.file, first, copy) if first is not None else None
    return pastes.written(edit) or f"{copy}  # before line {write.line}: {write.text}"


def _shape(facts: Facts, call: int | None, position: int) -> str | None:
    rows = facts.reader.rows(
        "SELECT shape FROM value WHERE call = ? AND role = 'input' AND position = ?", (call, position)
    )
    return rows[0][0] if rows else None


def _memory(facts: Facts, nodes: list[Node], function: code.Definition, writes: list[code.Write]) -> Iterator[Finding]:
    node, local = nodes[0], code.local_names(function)
    outer = {write.name: write for write in writes if write.name not in local}
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Return) or one.value is None:
            continue
        values = one.value.elts if isinstance(one.value, (ast.Tuple, ast.List)) else [one.value]
        for value in values:
            name = value.id if isinstance(value, ast.Name) else None
            if name is None or name not in outer or facts.calls_of(nodes).count < 2:
                continue
            calls = facts.calls_of(nodes)
            yield Finding(
                "reused-memory", "warning", node.id, (calls.first or 0, calls.last or 0),
                f"{node.body} returns {name!r}, an array that lives outside of it and that its next call overwrites. "
                "TensorFlow may still use that memory as the result of this call",
                pastes.written(pastes.replaced(facts, node.file, {value: f"{name}.copy()"})), node.file, one.lineno,
                several(one.id for one in nodes), (f"line {outer[name].line}: {outer[name].text}",), "likely",
            )  # fmt: skip
            return
