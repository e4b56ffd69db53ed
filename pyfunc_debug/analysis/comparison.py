"""The result of comparing a function as a graph with the same function eagerly, or with another function."""

from __future__ import annotations

import html
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from pyfunc_debug.analysis.differences import (
    CallDifference,
    Differences,
    compare_calls,
    difference_html,
    difference_lines,
    difference_text,
)
from pyfunc_debug.analysis.equality import Tolerance, ValueDifference
from pyfunc_debug.analysis.pairing import pair_calls
from pyfunc_debug.analysis.tables import milliseconds, render
from pyfunc_debug.places import source_line
from pyfunc_debug.records import Call, Node


@dataclass(frozen=True)
class Side:
    """One way of running the function.

    Attributes:
      name: "graph", "eager", or the name of the other function.
      duration_ns: The time of one run, without tracing; it includes what recording costs.
      trace_ns: The time of its graph trace; None when it had none.
      error: Type and first line of the exception that it ended with, or None; for a body's, the one that left the body.
      where: The user's line where that exception was raised, if known.
    """

    name: str
    duration_ns: int | None
    trace_ns: int | None
    error: str | None
    where: str | None


@dataclass(frozen=True)
class Comparison:
    """What differs between two ways of running a function.

    Attributes:
      function: Its name.
      left: How the first ran.
      right: How the second ran.
      calls: Node calls, aligned by line and number; all of them, equal ones too.
      outputs: What the function returned, leaf by leaf.
      gradients: Gradients of the sum of its floating outputs, for its inputs and the variables it reads.
      notes: What else differs (side effects), and what could not be isolated.
      frozen: Sources of random numbers that the graph does not draw from any more: it keeps what was drawn when traced.
    """

    function: str
    left: Side
    right: Side
    calls: tuple[CallDifference, ...]
    outputs: tuple[ValueDifference, ...]
    gradients: tuple[ValueDifference, ...]
    notes: tuple[str, ...]
    frozen: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether no value, gradient, call or outcome differs beyond tolerance, nor would in the next run."""
        return self.first is None and self.left.error == self.right.error and not self.frozen

    @property
    def first(self) -> CallDifference | ValueDifference | None:
        """The first thing that differs: a node's call if there is one, else an output, else a gradient."""
        for status in ("different", "missing"):
            for one in _parts(self):
                if one.status == status:
                    return one
        return None

    def __str__(self) -> str:
        return comparison_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return comparison_html(self)


def align(
    left: Iterable[Call], right: Iterable[Call], nodes: Sequence[Node], tolerance: Tolerance, by_line: bool = True
) -> tuple[CallDifference, ...]:
    """Pairs the calls of two runs by the line they are made from and their number there, in the order of the right run.

    Calls of one line that ran in parallel come in any order: they are paired by equal inputs before they are called
    different.

    Args:
      left: Calls of the one run.
      right: Calls of the other.
      nodes: Nodes of the recording.
      tolerance: How far numbers may be apart.
      by_line: Whether lines distinguish calls; otherwise only bodies do (two different functions).
    """
    by_id = {node.id: node for node in nodes}
    groups: dict[tuple[str, int | None, str, tuple[str, int] | None], tuple[list[Call], list[Call]]] = defaultdict(
        lambda: ([], [])
    )
    for index, calls in enumerate((list(left), list(right))):
        for call in calls:
            node = by_id[call.node]
            if node.origin != "user":
                continue
            site = (node.stack[-1].file, node.stack[-1].line) if node.stack and by_line else None
            key = (node.body, node.line, call.kind, site)
            groups[key][index].append(call)
    rows: list[tuple[int, CallDifference]] = []
    for (body, _, kind, site), (mine, others) in groups.items():
        where = source_line(*site) if site is not None else ""
        for number, pair in enumerate(pair_calls(mine, others, tolerance), 1):
            one, other = pair.left, pair.right
            order = other.id if other is not None else 1 << 62
            if one is not None and other is not None:
                row = compare_calls(one, other, body, tolerance)
                rows.append((order, replace(row, number=number, source_line=where)))
                continue
            only = one or other
            assert only is not None
            stateless = by_id[only.node].kind == "py_func_stateless"
            note = "only eagerly" if one is None and by_line else f"only in the {'second' if one is None else 'first'}"
            if stateless and one is None:
                note += ": TensorFlow optimised it away"
            row = CallDifference(
                body, kind, number, one.id if one else None, other.id if other else None,
                "unknown" if stateless else "missing", (), note, where,
            )  # fmt: skip
            rows.append((order, row))
    rows.sort(key=lambda pair: pair[0])
    return tuple(row for _, row in rows)


# -- text and HTML ----------------------------------------------------------------------------------------------------


def _times(side: Side) -> str:
    if side.error is not None:
        return f"{side.name}: {side.error}" + (f"  at {side.where}" if side.where else "")
    traced = f", after {milliseconds(side.trace_ns)} ms of tracing" if side.trace_ns is not None else ""
    return f"{side.name}: {milliseconds(side.duration_ns)} ms{traced}"


def _parts(found: Comparison) -> list[CallDifference | ValueDifference]:
    return [*found.calls, *found.outputs, *found.gradients]


def _verdict(found: Comparison) -> str:
    names = f"{found.left.name} and {found.right.name}"
    if found.left.error or found.right.error:
        if not (found.left.error and found.right.error):
            return f"{names} end differently"
        return f"{names} both fail, " + ("in the same way" if found.left.error == found.right.error else "differently")
    first = found.first
    if first is None:
        close = any(one.status == "close" for one in _parts(found))
        agree = f"{names} agree" + (" within tolerance" if close else "")
        return f"{agree} here, but random numbers are frozen in the graph" if found.frozen else agree
    if isinstance(first, CallDifference):
        what = "gradient call" if first.kind == "gradient" else "call"
        return f"{names} first differ in {what} {first.number} of {first.body}" + (
            f" ({first.source_line})" if first.source_line else ""
        )
    return f"{names} first differ in {first.role} {first.path}"


def _summary(found: Comparison) -> str:
    counts = Counter(row.status for row in found.calls)
    statuses = ", ".join(f"{number} {status}" for status, number in counts.items())
    parts = [f"node calls: {statuses or 'none'}"]
    for name, values in (("outputs", found.outputs), ("gradients", found.gradients)):
        counts = Counter(value.status for value in values)
        parts.append(f"{name}: {', '.join(f'{number} {status}' for status, number in counts.items()) or 'none'}")
    return "; ".join(parts)


def _differing(found: Comparison) -> Differences:
    rows = tuple(row for row in found.calls if row.status != "equal")
    for values in (found.outputs, found.gradients):
        wrong = tuple(value for value in values if value.status != "equal")
        if wrong:
            worst = max((value.status for value in wrong), key=("unknown", "close", "missing", "different").index)
            rows += (CallDifference(found.function, "forward", 0, None, None, worst, wrong, wrong[0].role + "s"),)
    return Differences("", "", rows, Counter(row.status for row in rows), 0, (found.left.name, found.right.name))


def comparison_text(found: Comparison, width: int = 80, color: bool = False) -> str:
    """The comparison as text."""
    head = Text(f"{found.function}: {_verdict(found)}", style="bold")
    head.append(f"\n{_times(found.left)}\n{_times(found.right)}\n{_summary(found)}", style="not bold")
    parts = [render(head, width, color)]
    table = _differing(found)
    if table.rows:
        parts.append(difference_text(table, width, color))
    if found.notes:
        parts.append(render(Text("\n".join(f"- {note}" for note in found.notes)), width, color))
    return "\n\n".join(parts)


def comparison_html(found: Comparison) -> str:
    """The comparison as HTML for notebooks, escaped."""
    escape = html.escape
    lines = [_times(found.left), _times(found.right), _summary(found)]
    head = f"<div><b>{escape(found.function)}</b>: {escape(_verdict(found))}</div>"
    head += "".join(f"<div><small>{escape(line)}</small></div>" for line in lines)
    table = _differing(found)
    body = difference_html(table).partition("</div>")[2] if table.rows else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in found.notes)
    return head + body + (f"<ul>{notes}</ul>" if notes else "")


__all__ = ["Comparison", "Side", "align", "comparison_html", "comparison_text", "difference_lines"]
