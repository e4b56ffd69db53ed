"""The ledger: one page of trace versus run. Functions with their graph traces and runs, nodes under them with calls."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyfunc_debug.analysis.contention import Waits, gil_line
from pyfunc_debug.analysis.groups import same_line
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Function, Node

Durations = npt.NDArray[np.int64]
_NONE: Durations = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Times:
    """Durations of calls or runs in ns. `p95_ns` is the smallest duration that 95 % do not exceed."""

    count: int
    mean_ns: float | None
    p95_ns: float | None
    total_ns: int


@dataclass(frozen=True)
class NodeRow:
    """The nodes that one line of the user's code made in one function: one for each graph trace.

    `node` is the one with the most calls. `calls` counts stored and dropped ones; `note` says in words what a number
    cannot. `wait` is the mean wait for the GIL before a call, in words; empty when nobody measured.
    """

    node: Node
    nodes: tuple[Node, ...]
    calls: int
    errors: int
    running: int
    dropped: int
    times: Times
    gradients: int
    gradient_errors: int
    gradient_times: Times
    note: str = ""
    wait: str = ""
    gradient_wait: str = ""


@dataclass(frozen=True)
class FunctionRow:
    """A traced function. `runs` is None where only C++ starts it: then nobody counted, and it shows as "-"."""

    function: Function
    traces: int
    trace_ns: int
    runs: int | None
    backward_runs: int
    run_errors: int
    times: Times
    nodes: tuple[NodeRow, ...]


@dataclass(frozen=True)
class Ledger:
    """The rows, and what to say under them."""

    path: str
    rows: tuple[FunctionRow, ...]
    hidden: int
    calls: int
    footer: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        from pyfunc_debug.analysis.tables import ledger_text

        return ledger_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from pyfunc_debug.analysis.tables import ledger_html

        return ledger_html(self)


def make_ledger(reader: Reader, include_internal: bool = False) -> Ledger:
    """The ledger of a recording.

    Args:
      reader: The recording.
      include_internal: Whether to show TensorFlow's and Keras' own nodes and functions without user nodes.
    """
    nodes = reader.nodes()
    waits = Waits(reader)
    stats = [_with_waits(row, waits) for row in _node_rows(reader, nodes)]
    traces, trace_ns, held = _traces(reader)
    runs = _runs(reader)
    if any(row.gradients for row in stats) or any(backward for _, backward, _ in runs.values()):
        stats = [_with_no_gradient(row) for row in stats]
    by_function: dict[int | None, list[NodeRow]] = defaultdict(list)
    for row in stats:
        by_function[row.node.function].append(row)
    rows, hidden = [], 0
    functions = reader.functions()
    if None in by_function:
        functions.append(Function(0, "(graph not found)", "graph", None, None, "user"))
        by_function[0] = by_function.pop(None)
    useful = _useful(functions, by_function, held, nodes)
    for function in functions:
        own = by_function.get(function.id, [])
        shown = [row for row in own if include_internal or row.node.origin == "user"]
        hidden += len(own) - len(shown)
        if not include_internal and not shown and function.id not in useful:
            hidden += 1
            continue
        forward, backward, errors = runs.get(function.id, ([], 0, 0))
        countable = function.kind == "tf.function" and bool(forward or backward)
        rows.append(
            FunctionRow(
                function=function,
                traces=traces[function.id],
                trace_ns=trace_ns[function.id],
                runs=len(forward) if countable else None,
                backward_runs=backward,
                run_errors=errors,
                times=_times(forward),
                nodes=tuple(shown),
            )
        )
    calls = sum(row.calls + row.gradients for row in stats)
    return Ledger(reader.path, tuple(rows), hidden, calls, (*_legend(rows), *_footer(reader, hidden)))


def _useful(
    functions: list[Function],
    by_function: dict[int | None, list[NodeRow]],
    held: dict[int, set[int]],
    nodes: list[Node],
) -> set[int]:
    """Functions to show although no user node is directly in them: the user's own, and any around a user's node."""
    users = {node.id for node in nodes if node.origin == "user"}
    return {
        function.id
        for function in functions
        if (function.origin == "user" and function.kind == "tf.function") or held.get(function.id, set()) & users
    }


def _with_waits(row: NodeRow, waits: Waits) -> NodeRow:
    ids = [node.id for node in row.nodes]
    wait = waits.mean(ids, "forward") if row.calls else ""
    return replace(row, wait=wait, gradient_wait=waits.mean(ids, "gradient") if row.gradients else "")


def _with_no_gradient(row: NodeRow) -> NodeRow:
    """Where gradients were taken: numpy_function and py_func are not differentiable, which TensorFlow does not say."""
    if row.node.kind == "py_function":
        return row
    return replace(row, note="; ".join(filter(None, [row.note, "no gradient: this op has none"])))


def _node_rows(reader: Reader, nodes: list[Node]) -> list[NodeRow]:
    other: Counter[tuple[int, str, str]] = Counter()
    durations: dict[tuple[int, str], Durations] = {}
    for node, kind, status, count in reader.rows("SELECT node, kind, status, count(*) FROM call GROUP BY 1, 2, 3"):
        other[node, kind, status] = count
        if (node, kind) not in durations:
            durations[node, kind] = _durations(reader, node, kind)
    dropped = {
        (node, kind): (calls, errors)
        for node, kind, calls, errors in reader.rows("SELECT node, kind, calls, errors FROM dropped")
    }
    return [_node_row(group, durations, other, dropped) for group in same_line(nodes)]


def _node_row(
    nodes: list[Node],
    durations: dict[tuple[int, str], Durations],
    other: Counter[tuple[int, str, str]],
    dropped: dict[tuple[int, str], tuple[int, int]],
) -> NodeRow:
    def count(kind: str) -> tuple[int, int, int, int]:
        running = sum(other[node.id, kind, "running"] for node in nodes)
        lost = sum(dropped.get((node.id, kind), (0, 0))[0] for node in nodes)
        errors = sum(other[node.id, kind, "error"] + dropped.get((node.id, kind), (0, 0))[1] for node in nodes)
        return spent(kind).size + running + lost, errors, running, lost

    def spent(kind: str) -> Durations:
        return np.concatenate([durations.get((node.id, kind), _NONE) for node in nodes])

    calls, errors, running, lost = count("forward")
    gradients, gradient_errors, _, _ = count("gradient")
    note = ""
    if running:
        note = f"{running} still running"
    elif calls == 0 and nodes[0].kind == "py_func_stateless":
        note = "not run: optimised away, or not reached"
    busiest = max(nodes, key=lambda node: len(durations.get((node.id, "forward"), ())))
    return NodeRow(
        busiest, tuple(nodes), calls, errors, running, lost, _times(spent("forward")), gradients, gradient_errors,
        _times(spent("gradient")), note,
    )  # fmt: skip


def _durations(reader: Reader, node: int, kind: str) -> Durations:
    """Durations of a node's finished calls in ns. One number a row: a million of them take some 0.3 s."""
    rows = reader.rows(
        "SELECT end_ns - start_ns FROM call WHERE node = ? AND kind = ? AND end_ns IS NOT NULL", (node, kind)
    )
    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))


def _times(durations: Durations | list[int]) -> Times:
    array = np.asarray(durations, dtype=np.int64)
    if not array.size:
        return Times(0, None, None, 0)
    index = min(array.size - 1, int(np.ceil(array.size * 0.95)) - 1)
    return Times(array.size, float(array.mean()), float(np.partition(array, index)[index]), int(array.sum()))


def _traces(reader: Reader) -> tuple[Counter[int], Counter[int], dict[int, set[int]]]:
    """Graph traces and their time by function, and the nodes in each function's graphs."""
    count: Counter[int] = Counter()
    spent: Counter[int] = Counter()
    function_of = {}
    for number, function, duration in reader.rows("SELECT id, function, duration_ns FROM trace"):
        count[function] += 1
        spent[function] += duration
        function_of[number] = function
    held: dict[int, set[int]] = defaultdict(set)
    for trace, node in reader.rows("SELECT trace, node FROM trace_node"):
        if trace in function_of:
            held[function_of[trace]].add(node)
    return count, spent, held


def _runs(reader: Reader) -> dict[int, tuple[list[int], int, int]]:
    """Durations of the forward runs, number of backward runs, and errors, by function."""
    found: dict[int, tuple[list[int], int, int]] = {}
    for function, kind, duration, error in reader.rows("SELECT function, kind, duration_ns, error FROM run"):
        forward, backward, errors = found.setdefault(function, ([], 0, 0))
        if kind == "forward":
            forward.append(duration or 0)
        found[function] = (forward, backward + (kind == "backward"), errors + (error is not None))
    return found


def _legend(rows: list[FunctionRow]) -> list[str]:
    """Why some runs show as "-"."""
    kinds = {row.function.kind for row in rows if row.runs is None}
    starters = [who for kind, who in (("tf.data", "tf.data"), ("graph", "a Session"), ("tf.function", "another graph"))
                if kind in kinds]  # fmt: skip
    return [f"runs -: started in C++ by {' or '.join(starters)}, where nobody counts"] if starters else []


def _footer(reader: Reader, hidden: int) -> tuple[str, ...]:
    meta = reader.meta
    lines = []
    dropped = meta.get("dropped") or {}
    for key, what in (("calls", "calls were counted but not stored"), ("values", "values were not stored"),
                      ("runs", "runs were not stored")):  # fmt: skip
        if dropped.get(key):
            lines.append(f"{dropped[key]:,} {what}: the budget of {meta.get('budget', '?')} bytes was used up")
    wanted = (meta.get("options") or {}).get("nodes", "*")
    if wanted != "*":
        lines.append(f"only calls of nodes that match {wanted} were recorded")
    if meta.get("stopped"):
        lines.append(str(meta["stopped"]))
    if meta.get("state") == "recording":
        lines.append("still recording" if not _dead(meta) else "the program ended without finishing this recording")
    for trouble, times in list((meta.get("troubles") or {}).items())[:3]:
        lines.append(f"pyfunc_debug had trouble ({times}x): {trouble}")
    if meta.get("limits"):
        lines.append(str(meta["limits"]))
    lines += gil_line(reader)
    cost = _cost(meta)
    if cost:
        lines.append(cost)
    if hidden:
        lines.append(
            f"{hidden} of TensorFlow's and Keras' own functions and nodes are hidden "
            "(--all, or ledger(include_internal=True), shows them)"
        )
    return tuple(lines)


def _dead(meta: dict[str, object]) -> bool:
    import socket

    from pyfunc_debug.pfrec.writer import process_lives

    pid = meta.get("pid")
    return isinstance(pid, int) and meta.get("host") == socket.gethostname() and not process_lives(pid)


@dataclass(frozen=True)
class OwnCost:
    """What recording cost, as the recorder says itself. All in ns but `share`, a fraction of `wall_ns`.

    Attributes:
      hook_ns: Of one call without its values, calibrated when the recording ended.
      values_ns: Of all reading and copying of values in the bodies' threads, measured, wall time.
      writer_ns: CPU of the writer thread, measured.
    """

    share: float
    wall_ns: int
    hook_ns: int
    values_ns: int
    writer_ns: int


def own_cost(meta: dict[str, Any]) -> OwnCost | None:
    """The cost of a recording; None while it is not known."""
    cost, clock, end = meta.get("cost"), meta.get("clock"), meta.get("end_ns")
    if not isinstance(cost, dict) or not isinstance(clock, dict) or not isinstance(end, int):
        return None
    wall = end - int(clock["monotonic_ns"])
    if wall <= 0:
        return None
    hook, values, writer = int(cost["hook_ns"]), int(cost["values_ns"]), int(cost["writer_cpu_ns"])
    return OwnCost((hook * int(cost["calls"]) + values + writer) / wall, wall, hook, values, writer)


def _percent(share: float) -> str:
    """Two digits, and never in powers of ten."""
    return f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:,.0f}"


def _time(ns: int) -> str:
    return f"{ns / 1e9:.3g} s" if 1e9 <= ns < 1e12 else f"{ns / 1e9:,.0f} s" if ns >= 1e12 else f"{ns / 1e6:.3g} ms"


def _cost(meta: dict[str, Any]) -> str:
    cost = own_cost(meta)
    if cost is None:
        return ""
    return (
        f"recording cost ~{_percent(cost.share)} % of {_time(cost.wall_ns)}: hook ~{cost.hook_ns / 1e3:.2g} us a "
        f"call (calibrated), values {_time(cost.values_ns)}, writer thread {_time(cost.writer_ns)} CPU "
        "(measured)"
    )


def as_dict(ledger: Ledger) -> dict[str, object]:
    """The ledger for JSON: times in ns, None for what is not known."""

    def times(value: Times) -> dict[str, object]:
        return {"mean_ns": value.mean_ns, "p95_ns": value.p95_ns, "total_ns": value.total_ns}

    return {
        "file": ledger.path,
        "calls": ledger.calls,
        "functions": [
            {
                "name": row.function.name, "kind": row.function.kind, "file": row.function.file,
                "line": row.function.line, "origin": row.function.origin, "traces": row.traces,
                "trace_ns": row.trace_ns, "runs": row.runs, "backward_runs": row.backward_runs,
                "errors": row.run_errors, **times(row.times),
                "nodes": [
                    {
                        "id": node.node.id, "ids": [one.id for one in node.nodes],
                        "body": node.node.body, "kind": node.node.kind, "file": node.node.file,
                        "line": node.node.line, "op": node.node.name, "origin": node.node.origin, "calls": node.calls,
                        "errors": node.errors, "running": node.running, "dropped": node.dropped, **times(node.times),
                        "gradients": node.gradients, "gradient_errors": node.gradient_errors, "note": node.note,
                    }
                    for node in row.nodes
                ],
            }
            for row in ledger.rows
        ],
        "footer": list(ledger.footer),
    }  # fmt: skip


__all__ = ["FunctionRow", "Ledger", "NodeRow", "Times", "as_dict", "make_ledger"]
