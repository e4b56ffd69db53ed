"""The ledger: one page of trace versus run. Functions with their graph traces and runs, nodes under them with calls.

Computed here, once; the terminal, the notebook's table, the panel and the report only draw it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import ERROR, GRADES, GRADIENT, INTERRUPTED, RUNNING, Array, Columns
from pyfunc_debug.analysis.contention import grade_of, mean_wait
from pyfunc_debug.analysis.death import died_in_calls
from pyfunc_debug.analysis.facts import ProgramFacts, read_facts
from pyfunc_debug.analysis.footer import footer, short_footer, unfinished
from pyfunc_debug.analysis.runs import NO_RUNS, Runs, read_runs
from pyfunc_debug.analysis.tables import function_name
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.recovery import missing_parts
from pyfunc_debug.program.frames import is_tensorflow
from pyfunc_debug.records import FROM_GENERATOR, Function, Node

NO_CALLS = "no calls recorded"
"""What is noted of a node without calls."""
_NOT_SEEN = "not seen in debug mode"
"""The same where Python runs the functions of tf.data by a way of its own."""


@dataclass(frozen=True)
class Times:
    """Durations of calls or runs in ns. `p95_ns` is the smallest duration that 95 % do not exceed."""

    count: int
    mean_ns: float | None
    p95_ns: float | None
    total_ns: int
    max_ns: int | None = None


@dataclass(frozen=True)
class Parts:
    """What the time of measured calls is made of, summed, in ns; None is not measured at this grade.

    `wait_ns` is before bodies, `inside_ns` inside them. `body_ns` is the time of all calls that ended, measured or not.
    """

    wait_ns: float
    held_ns: float | None
    released_ns: float | None
    inside_ns: float | None
    body_ns: float


@dataclass(frozen=True)
class CallSums:
    """The forward calls of a row, or its gradient calls.

    Attributes:
      stored: Calls in the recording.
      dropped: Calls that are counted but not stored: there was no room, or sampling left them out.
      errors: Failed ones, of both.
      failed: Failed ones among those stored.
      running: Stored ones that have not ended.
      interrupted: Stored ones that a person ended at a stop; they are not errors.
      times: Of those that ended, stored or not; p95 is of those stored, without what sampling added.
      parts: What their time is made of; None when the GIL was not measured.
      wait: The mean wait for the GIL, before a call and inside it, in words; empty when nobody measured.
    """

    stored: int
    dropped: int
    errors: int
    failed: int
    running: int
    times: Times
    parts: Parts | None
    wait: str = ""
    interrupted: int = 0

    @property
    def calls(self) -> int:
        """All of them, stored and dropped."""
        return self.stored + self.dropped

    @property
    def total_ns(self) -> float:
        """Their time together, with their waits for the GIL before they began; only calls that ended have one."""
        return self.times.total_ns + (self.parts.wait_ns if self.parts is not None else 0.0)


@dataclass(frozen=True)
class NodeRow:
    """The nodes that one line of the user's code made in one function: one for each graph trace.

    `node` is the one with the most calls. `notes` say in words what a number cannot. `generator`: the body is the
    user's generator of Dataset.from_generator; a call takes an element, and the last one of each pass finds the end.
    """

    node: Node
    nodes: tuple[Node, ...]
    forward: CallSums
    gradient: CallSums
    notes: tuple[str, ...] = ()
    generator: bool = False

    @property
    def calls(self) -> int:
        """Forward calls, stored and dropped."""
        return self.forward.calls

    @property
    def errors(self) -> int:
        """Forward calls that failed."""
        return self.forward.errors

    @property
    def times(self) -> Times:
        """Durations of the forward calls."""
        return self.forward.times

    @property
    def gradients(self) -> int:
        """Gradient calls, stored and dropped."""
        return self.gradient.calls

    @property
    def only_unused(self) -> bool:
        """Whether all that is noted of it is that it has no calls."""
        return self.notes == (NO_CALLS,)

    @property
    def note(self) -> str:
        """`notes` as one text."""
        return "; ".join(self.notes)


@dataclass(frozen=True)
class FunctionRow:
    """A traced function. `runs` is None where only C++ starts it: then nobody counted, and it shows as "-".

    `backward_runs` and `run_errors` are of the runs that Python started; `error` is the type of the exception that
    ended the last of its traces, where each of them failed.
    """

    function: Function
    traces: int
    trace_ns: int
    runs: int | None
    backward_runs: int
    run_errors: int
    times: Times
    nodes: tuple[NodeRow, ...]
    error: str | None = None

    @property
    def traced(self) -> int | None:
        """How often TensorFlow built a graph of it; None for what is not traced: eager code, a v1 graph."""
        return self.traces if self.function.kind in ("tf.function", "tf.data") else None


@dataclass(frozen=True)
class Ledger:
    """The rows, and what to say under them.

    `all_ns` is the time of all calls, with their waits; `whole` whether all parts of the recording were there.
    The footer begins with `legend`, which says what a "-" among the runs is; `short` is what of the others is said
    unasked as a program ends.
    """

    path: str
    rows: tuple[FunctionRow, ...]
    hidden: int
    calls: int
    footer: tuple[str, ...] = field(default=())
    all_ns: float = 0.0
    whole: bool = True
    legend: tuple[str, ...] = field(default=())
    short: tuple[str, ...] = field(default=())

    @property
    def ran(self) -> bool:
        """Whether anything was called or run, as far as it was seen."""
        return bool(self.calls) or any(row.runs for row in self.rows)

    def __str__(self) -> str:
        from pyfunc_debug.analysis.tables import ledger_text

        return ledger_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from pyfunc_debug.analysis.tables import ledger_html

        return ledger_html(self)


def _waited(sums: CallSums) -> float:
    return 0.0 if sums.parts is None else sums.parts.wait_ns + (sums.parts.inside_ns or 0.0)


ORDERS: dict[str, Callable[[NodeRow], float]] = {
    "total": lambda row: row.forward.total_ns + row.gradient.total_ns,
    "mean": lambda row: max(row.times.mean_ns or 0.0, row.gradient.times.mean_ns or 0.0),
    "calls": lambda row: row.calls + row.gradients,
    "wait": lambda row: _waited(row.forward) + _waited(row.gradient),
    "errors": lambda row: row.errors + row.gradient.errors,
}
"""What rows may be ordered by, forward and gradient calls together."""


def ordered(ledger: Ledger, order: str) -> Ledger:
    """The ledger with the largest first: nodes in their function, and functions by their largest node."""
    key = ORDERS[order]
    rows = [replace(row, nodes=tuple(sorted(row.nodes, key=key, reverse=True))) for row in ledger.rows]
    rows.sort(key=lambda row: max(map(key, row.nodes), default=-1.0), reverse=True)
    return replace(ledger, rows=tuple(rows))


def make_ledger(reader: Reader, include_internal: bool = False) -> Ledger:
    """The ledger of a recording.

    Args:
      reader: The recording.
      include_internal: Whether to show TensorFlow's and Keras' own nodes and functions without user nodes.
    """
    facts = read_facts(reader)
    columns = Columns(facts.origin_ns)
    with reader.lent() as connection:
        columns.refresh(connection, final=True)
    return ledger_of(reader, facts, columns, include_internal)


def ledger_of(reader: Reader, facts: ProgramFacts, columns: Columns, include_internal: bool = False) -> Ledger:
    """`make_ledger` from what was read already: a panel asks again and again while a recording grows."""
    rows_of = _node_rows(reader, facts, columns)
    with reader.lent() as connection:
        runs = read_runs(connection)
    differentiated = any(row.gradients for row in rows_of) or any(one.backward for one in runs.values())
    by_function: dict[int, list[NodeRow]] = defaultdict(list)
    for row in rows_of:
        by_function[_NO_FUNCTION if row.node.function is None else row.node.function].append(
            _with_no_gradient(row) if differentiated else row
        )
    functions = dict(facts.functions)
    for missing in by_function.keys() - functions.keys():
        functions[missing] = Function(missing, "(what traced it was not stored)", "eager", None, None, "user")
    useful = _useful(facts)
    rows, hidden = [], 0
    for function in functions.values():
        own = by_function.get(function.id, [])
        own = [replace(row, generator=_is_generator(row, facts.functions)) for row in own]
        shown = [row for row in own if shows(row, facts.functions, include_internal)]
        hidden += len(own) - len(shown)
        if not include_internal and not shown and function.id not in useful:
            hidden += 1
            continue
        rows.append(_function_row(function, facts, runs.get(function.id, NO_RUNS), tuple(shown)))
    calls = sum(row.calls + row.gradients for row in rows_of)
    everything = float(columns.duration.clip(0).sum() + np.nansum(columns.wait))
    legend = tuple(_legend(rows, facts.meta))
    below, short = (*legend, *footer(reader, facts.meta, hidden)), short_footer(reader, facts.meta)
    whole = bool(rows) or not missing_parts(reader.path, facts.meta)
    return Ledger(reader.path, tuple(rows), hidden, calls, below, everything, whole, legend, short)


def shows(row: NodeRow, functions: Mapping[int, Function], include_internal: bool) -> bool:
    """Whether the ledger shows a node."""
    return include_internal or row.node.origin == "user" or _is_generator(row, functions)


def _is_generator(row: NodeRow, functions: Mapping[int, Function]) -> bool:
    """Whether the body is the user's generator of Dataset.from_generator."""
    function = functions.get(-1 if row.node.function is None else row.node.function)
    of_tensorflow = row.node.file is None or is_tensorflow(row.node.file)
    return function is not None and function.name == FROM_GENERATOR and not of_tensorflow


# -- functions --------------------------------------------------------------------------------------------------------

_NO_FUNCTION = -1


def _function_row(function: Function, facts: ProgramFacts, runs: Runs, nodes: tuple[NodeRow, ...]) -> FunctionRow:
    traces = [trace for trace in facts.traces.values() if trace.function == function.id]
    # Runs that C++ starts are not seen: a function without any run of Python's may still have run a thousand times.
    counted = function.kind == "tf.function" and runs.forward > 0
    return FunctionRow(
        function=function,
        traces=len(traces),
        trace_ns=sum(trace.duration_ns for trace in traces),
        runs=runs.forward if counted else None,
        backward_runs=runs.backward,
        run_errors=runs.errors,
        times=times_of(runs.durations),
        nodes=nodes,
        error=traces[-1].error if traces and all(trace.error is not None for trace in traces) else None,
    )


def _useful(facts: ProgramFacts) -> set[int]:
    """Functions to show although no user node is directly in them: the user's own, and any around a user's node."""
    users = {node.id for node in facts.nodes.values() if node.origin == "user"}
    around = {trace.function for trace in facts.traces.values() if not users.isdisjoint(trace.nodes)}
    failed = {trace.function for trace in facts.traces.values() if trace.error is not None}
    return around | {
        function.id
        for function in facts.functions.values()
        if function.origin == "user" and (function.kind == "tf.function" or function.id in failed)
    }


# -- nodes ------------------------------------------------------------------------------------------------------------


def _node_rows(reader: Reader, facts: ProgramFacts, columns: Columns) -> list[NodeRow]:
    measured = (facts.meta.get("gil") or {}).get("grade", "none") != "none"
    dropped = {
        (node, kind): (calls, errors, ns)
        for node, kind, calls, errors, ns in reader.rows("SELECT node, kind, calls, errors, total_ns FROM dropped")
    }
    ordinary = _ordinary(reader, columns)
    gradient = columns.kind == GRADIENT
    counts = dict(zip(*(part.tolist() for part in np.unique(columns.node[~gradient], return_counts=True))))
    note = "" if died_in_calls(reader) else unfinished(reader.path, facts.meta)  # else the lines below say more
    rows = []
    for key, group in facts.groups.items():
        mine = columns.node == key if len(group) == 1 else np.isin(columns.node, group)
        nodes = tuple(facts.nodes[number] for number in group)
        forward, backward = (
            _sums(columns, mask, ordinary, [dropped.get((number, kind), (0, 0, 0)) for number in group], measured)
            for kind, mask in (("forward", mine & ~gradient), ("gradient", mine & gradient))
        )
        busiest = max(nodes, key=lambda node: counts.get(node.id, 0))
        rows.append(
            NodeRow(
                busiest,
                nodes,
                forward,
                backward,
                _notes(busiest, forward, backward, note, "data_debug_mode" in facts.meta),
            )
        )
    return rows


def _ordinary(reader: Reader, columns: Columns) -> Array | None:
    """Where sampling left calls out: those that it took, without the slow and the failed ones that were added."""
    extra = reader.extra_calls()
    return ~np.isin(columns.id, list(extra)) if extra else None


def _sums(
    columns: Columns, mask: Array, ordinary: Array | None, dropped: list[tuple[int, int, int]], measured: bool
) -> CallSums:
    durations = columns.duration[mask]
    ended = durations[durations >= 0]
    times = times_of(ended)
    status = columns.status[mask]
    failed = int((status == ERROR).sum())
    waits, held, released, inside = (
        column[mask] for column in (columns.wait, columns.held, columns.released, columns.reacquire)
    )
    lost = sum(calls for calls, *_ in dropped)
    if lost and times.count:
        total, count = times.total_ns + sum(ns for *_, ns in dropped), times.count + lost
        times = replace(times, count=count, total_ns=total, mean_ns=total / count)
    if ordinary is not None and lost:
        typical = columns.duration[mask & ordinary]
        times = replace(times, p95_ns=times_of(typical[typical >= 0]).p95_ns)
    parts = None
    if not np.isnan(waits).all():
        split = not np.isnan(held).all()
        own, let_go, waited = (_total(part) if split else None for part in (held, released, inside))
        parts = Parts(_total(waits), own, let_go, waited, float(ended.sum()))
    return CallSums(
        stored=len(durations),
        dropped=lost,
        errors=failed + sum(errors for _, errors, _ in dropped),
        failed=failed,
        running=int((status == RUNNING).sum()),
        times=times,
        parts=parts,
        wait=_wait(columns, mask) if measured and (len(durations) or lost) else "",
        interrupted=int((status == INTERRUPTED).sum()),
    )


def _total(column: Array) -> float:
    return float(np.nansum(column, dtype=np.float64))


def _wait(columns: Columns, mask: Array) -> str:
    """The mean wait of calls, before and inside them; of several grades the coarsest counts."""
    known = mask & ~np.isnan(columns.wait)
    if not known.any():
        return mean_wait(None, "none")
    waited = columns.wait[known].astype(np.float64) + np.nan_to_num(columns.reacquire[known])
    return mean_wait(float(waited.mean()), grade_of(GRADES[int(columns.grade[known].min())]))


def _notes(node: Node, forward: CallSums, gradient: CallSums, still: str, debug: bool) -> tuple[str, ...]:
    notes = []
    running, lost = forward.running + gradient.running, forward.dropped + gradient.dropped
    if running and still:  # else the footer names them, see death.py
        notes.append(f"{running:,} {still}")
    if forward.interrupted + gradient.interrupted:
        notes.append(f"{forward.interrupted + gradient.interrupted:,} ended by hand at a stop")
    if lost:
        notes.append(f"{lost:,} calls were counted but not stored")
    if not forward.calls:
        stateless = node.kind == "py_func_stateless"
        notes.append(
            _NOT_SEEN if debug else NO_CALLS + (": TensorFlow may remove a stateless node" if stateless else "")
        )
    return tuple(notes)


def _with_no_gradient(row: NodeRow) -> NodeRow:
    """Where gradients were taken: numpy_function and py_func are not differentiable, which TensorFlow does not say."""
    if row.node.kind == "py_function":
        return row
    return replace(row, notes=(*row.notes, "no gradient: this op has none"))


def durations(columns: Columns, runs: dict[int, Runs], row: FunctionRow | NodeRow, kind: str = "forward") -> Array:
    """What the times of a row are made of: durations of its finished runs or calls, in ns."""
    if isinstance(row, FunctionRow):
        return runs.get(row.function.id, NO_RUNS).durations
    mask = np.isin(columns.node, [node.id for node in row.nodes])
    mask &= (columns.kind == GRADIENT) == (kind == "gradient")
    return columns.duration[mask & (columns.end >= 0)]


def times_of(durations: Array) -> Times:
    """Mean, 95th percentile, sum and maximum of durations in ns."""
    if not durations.size:
        return Times(0, None, None, 0)
    index = max(0, -(-durations.size * 95 // 100) - 1)
    p95 = float(np.partition(durations, index)[index])
    return Times(durations.size, float(durations.mean()), p95, int(durations.sum()), int(durations.max()))


def _legend(rows: list[FunctionRow], meta: Mapping[str, Any]) -> list[str]:
    """Why some runs show as "-"; those that Python starts are stored as they end."""
    rows = [row for row in rows if row.runs is None]
    why = [f"{function_name(row.function)} did not run: {_unfinished_trace(row.error)}" for row in rows if row.error]
    kinds = {row.function.kind for row in rows if row.error is None}
    starters = [who for kind, who in (("tf.data", "tf.data"), ("graph", "a Session"), ("tf.function", "another graph"))
                if kind in kinds]  # fmt: skip
    still = ""
    if "tf.function" in kinds:
        still = "" if meta.get("state") == "complete" else "; or the first had not ended"
        still += "; or they were not stored" if (meta.get("dropped") or {}).get("runs") else ""
    nodes = [node for row in rows if row.error is None for node in row.nodes]
    if "data_debug_mode" in meta and kinds & {"tf.data", FROM_GENERATOR}:
        why.append("runs -: not counted; in tf.data's debug mode Python runs these functions, one call at a time")
    elif starters and nodes and not any(node.calls or node.gradients for node in nodes):
        why.append(f"runs -: none was seen; {' or '.join(starters)} starts them in C++, where nobody counts{still}")
    elif starters:
        why.append(f"runs -: started in C++ by {' or '.join(starters)}, where nobody counts{still}")
    return why


def _unfinished_trace(error: str) -> str:
    if error == "KeyboardInterrupt":
        return "it was interrupted while TensorFlow traced it"
    if error == "SystemExit":
        return "the program ended itself (SystemExit) while TensorFlow traced it"
    return f"its graph trace failed with {error}"


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
                        "errors": node.errors, "running": node.forward.running, "dropped": node.forward.dropped,
                        **times(node.times), "gradients": node.gradients,
                        "gradient_errors": node.gradient.errors, "note": node.note,
                    }
                    for node in row.nodes
                ],
            }
            for row in ledger.rows
        ],
        "footer": list(ledger.footer),
    }  # fmt: skip


__all__ = ["FunctionRow", "Ledger", "NodeRow", "Times", "as_dict", "ledger_of", "make_ledger"]
