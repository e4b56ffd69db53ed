"""Nodes where Python cannot follow: XLA compiles them, a worker asks for them, replicas take turns; eager in vain."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.graphs import leaving
from pyfunc_debug.doctor.rules.needless_python import as_graph_code
from pyfunc_debug.events import Body
from pyfunc_debug.interception.graphs.held import HeldNode
from pyfunc_debug.records import Confidence, Finding, Node, Severity

NAMES = ("devices", "distribution", "eager-switch", "xla")
_MUCH_BYTES = 1_000_000


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that makes nodes, and a function of tf.data."""
    if not list(failures(facts, ("xla",))):
        for nodes, noted in _groups(facts, "compiled"):
            yield _compiled(facts, nodes, noted)
    for nodes, noted in _groups(facts, "remote"):
        yield _remote(facts, nodes, noted)
    for nodes, noted in _groups(facts, "replica"):
        if noted[0]["strategy"].startswith("TPU"):
            yield _tpu(facts, nodes, noted)
        elif len({one["device"] for one in noted}) > 1:
            yield _replicas(facts, nodes, noted)
    for nodes, noted in _groups(facts, "crossing"):
        yield from _crossing(facts, nodes, noted[0])
    for _, _, one in facts.notices.get("not-eager", []):
        yield _not_eager(facts, one)


def _groups(facts: Facts, notice: str) -> Iterator[tuple[list[Node], list[dict[str, Any]]]]:
    """The user's nodes of each line that some notices are about, and these."""
    groups: dict[object, list[tuple[Node, dict[str, Any]]]] = {}
    for number, _, noted in facts.notices.get(notice, []):
        node = facts.nodes.get(number) if number is not None else None
        if node is not None and node.origin == "user":
            groups.setdefault((node.body, node.file, node.line, node.stack[-1:]), []).append((node, noted))
    for group in groups.values():
        yield [node for node, _ in group], [noted for _, noted in group]


def _held(node: Node) -> HeldNode:
    body = Body(node.body, node.file, node.line, (), internal=False)
    return HeldNode(
        node.token or "", "py_function" if node.kind == "py_function" else "numpy_function", body, node.name or "",
        node.graph or "", node.stack, generator=False, restored=False,
    )  # fmt: skip


def _finding(
    facts: Facts, rule: str, severity: Severity, nodes: Sequence[Node], message: str, outside: str,
    evidence: tuple[str, ...] = (), confidence: Confidence = "measured",
) -> Finding:  # fmt: skip
    node = nodes[0]
    site = node.stack[-1] if node.stack else None
    fix = as_graph_code(facts, node) or leaving.replacement(_held(node), outside)
    return Finding(
        rule, severity, node.id, (), message, fix, site.file if site else node.file, site.line if site else node.line,
        several(one.id for one in nodes), evidence, confidence,
    )  # fmt: skip


def _called(node: Node) -> str:
    return f"the {node.kind} of {leaving.name_of(_held(node))}"


def _compiled(facts: Facts, nodes: list[Node], noted: list[dict[str, Any]]) -> Finding:
    ended = facts.meta.get("ended")
    failed = isinstance(ended, dict) and ended.get("error") is not None
    name = noted[0]["function"].rpartition(".")[2]
    return _finding(
        facts, "xla", "error" if failed else "warning", nodes,
        f"jit_compile=True asks XLA to compile {name}, which holds {_called(nodes[0])}. XLA cannot compile Python: "
        "each run of it fails",
        "what is compiled", (f"op {nodes[0].name}, noticed when {name} was traced",),
    )  # fmt: skip


def _remote(facts: Facts, nodes: list[Node], noted: list[dict[str, Any]]) -> Finding:
    one = noted[0]
    return _finding(
        facts, "distribution", "warning", nodes,
        f"{one['function'] or 'a function'} was sent to {_job(one['device'])}, but {_called(nodes[0])} runs in this "
        f"process ({_job(one['here'])}): TensorFlow ties it to the process that made it. Its inputs travel here, its "
        "results back, and a function that returns such a result can fail: \"Expects 1 arguments, but 0 is provided\"",
        "what the workers run", (f"run on {one['device']}",),
    )  # fmt: skip


def _job(device: str) -> str:
    """`/job:worker/task:0` of a device's name."""
    return "/".join(part for part in device.split("/") if not part.startswith(("replica:", "device:")))


def _replicas(facts: Facts, nodes: list[Node], noted: list[dict[str, Any]]) -> Finding:
    calls = facts.calls_of(nodes)
    devices = sorted({one["device"].rpartition("device:")[2] for one in noted})
    count = len(devices)
    return _finding(
        facts, "distribution", "note", nodes,
        f"{noted[0]['strategy']}.run made {_called(nodes[0])} once for each of {count} replicas "
        f"({', '.join(devices)}). All run in this process, where one thread at a time runs Python: the replicas take "
        "turns there",
        "strategy.run", (f"{calls.count:,} calls, {calls.total_ns / 1e6:,.1f} ms in all",),
    )  # fmt: skip


def _tpu(facts: Facts, nodes: list[Node], noted: list[dict[str, Any]]) -> Finding:
    return _finding(
        facts, "distribution", "error", nodes,
        f"{noted[0]['strategy']}.run was to run {_called(nodes[0])} on a TPU, which runs what XLA compiled. XLA cannot "
        "compile Python: it fails there",
        "strategy.run", (f"op {nodes[0].name}",), "likely",
    )  # fmt: skip


def _crossing(facts: Facts, nodes: list[Node], noted: dict[str, Any]) -> Iterator[Finding]:
    """Values that come from another device than the node's, or go to one, with what they weigh."""
    marks = ", ".join("?" * len(nodes))
    moved, total, most = [], 0, 0
    for role, position, device in noted["values"]:
        path, calls, size = facts.reader.rows(
            f"SELECT min(v.path), count(v.nbytes), total(v.nbytes) FROM call c JOIN value v ON v.call = c.id "
            f"WHERE c.node IN ({marks}) AND c.kind = 'forward' AND v.role = ? AND v.position = ?",
            (*(one.id for one in nodes), role, position),
        )[0]
        if calls:
            moved.append(f"{path} {'from' if role == 'input' else 'to'} {device}")
            total, most = total + int(size), max(most, calls)
    if total < _MUCH_BYTES:
        return
    yield _finding(
        facts, "devices", "note", nodes,
        f"{_called(nodes[0])} is on {noted['device']}, and its values are not: {', '.join(moved)}. That is "
        f"{total / most / 1e3:,.1f} kB a call from device to device, {total / 1e6:,.1f} MB in {most:,} calls",
        f"what runs on {noted['values'][0][2]}",
        ("from the devices that the graph asks for; how long the way takes was not measured",),
    )  # fmt: skip


def _not_eager(facts: Facts, noted: dict[str, Any]) -> Finding:
    name = noted["function"].rpartition(".")[2]
    called = f"the lambda at {facts.source_line(noted['file'], noted['line'])}" if name == "<lambda>" else name
    return Finding(
        "eager-switch", "note", None, (),
        f"tf.config.run_functions_eagerly(True) does not reach tf.data: {called} was traced all the same. Its lines "
        "ran once, without data, and a graph runs for the elements",
        _debug_mode(facts)
        or "tf.data.experimental.enable_debug_mode()  # before the dataset is built: its functions then run in Python",
        noted["file"], noted["line"], evidence=(f"traced: {called}",),
    )  # fmt: skip


def _debug_mode(facts: Facts) -> str:
    """The line that goes above the switch that was meant."""
    for file in facts.files:
        for call in pastes.walk(facts.tree(file), ast.Call):
            given = [ast.unparse(one) for one in call.args]
            if given == ["True"] and ast.unparse(call.func).endswith("run_functions_eagerly"):
                switch = f"{ast.unparse(call.func).rpartition('config.')[0]}data.experimental.enable_debug_mode()"
                return pastes.written(pastes.above(facts, file, call.lineno, switch))
    return ""
