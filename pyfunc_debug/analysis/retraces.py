"""Graph traces of one function with their reasons, their cost, their runs and their nodes; as a table and as HTML."""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from pyfunc_debug.analysis.tables import count, kind_text, milliseconds, render
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.places import source_line
from pyfunc_debug.records import GraphTrace

_ALIKE = 5
"""From this number of graph traces in a row for one reason, only the first two and the last are shown."""
_VALUES = re.compile(r"(?<=: )(Python value|shape|tf\.).*", re.DOTALL)
"""What differs between the reasons of graph traces that are alike: the values after the argument's name."""


@dataclass(frozen=True)
class NodeUse:
    """A node in a graph. `calls` counts all its calls in the recording; None when nothing was recorded."""

    body: str
    kind: str | None
    file: str | None
    line: int | None
    calls: int | None


@dataclass(frozen=True)
class TraceRow:
    """One graph trace. None means "not known": it happened unrecorded, or C++ started its runs.

    Attributes:
      name: TensorFlow's name of the graph; None when tracing failed.
      runs: Runs that Python started.
      object: Number of the tf.function object, to distinguish objects of one Python function.
      stale: Python values that were others when the graph ran than when it was traced, a sentence each.
      tried: What became of `avoid` when it was followed; None where it was not asked for.
    """

    name: str | None
    signature: str
    reason: tuple[str, ...]
    closest: str | None
    avoid: str | None
    duration_ns: int | None
    runs: int | None
    nodes: tuple[NodeUse, ...]
    object: int | None = None
    error: str | None = None
    stale: tuple[str, ...] = ()
    tried: str | None = None


@dataclass(frozen=True)
class Explanation:
    """Why a tf.function was traced as often as it was. `notes` say what is not known, and why."""

    name: str
    file: str | None
    line: int | None
    rows: tuple[TraceRow, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return explanation_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return explanation_html(self)


def explain_function(reader: Reader, function: int, object: int | None = None) -> Explanation:
    """The explanation of a function in a recording.

    Args:
      reader: The recording.
      function: Number of the function.
      object: Only the graph traces of this tf.function object.
    """
    about = next(one for one in reader.functions() if one.id == function)
    wanted = [
        trace for trace in reader.traces() if trace.function == function and (object is None or trace.object == object)
    ]
    runs = dict(reader.rows("SELECT trace, count(*) FROM run WHERE kind = 'forward' GROUP BY trace"))
    nodes = _node_uses(reader)
    changed = stale_values(reader.rows)
    rows = tuple(_row(trace, runs, nodes, changed.get(trace.id, ())) for trace in wanted)
    notes = []
    if any(row.runs is None and row.error is None for row in rows):
        notes.append("runs -: Python started none; runs inside another graph, tf.data or a Session are not counted")
    return Explanation(about.name, about.file, about.line, rows, tuple(notes))


def _node_uses(reader: Reader) -> dict[int, NodeUse]:
    calls = dict(reader.rows("SELECT node, count(*) FROM call WHERE kind = 'forward' GROUP BY node"))
    for node, lost in reader.rows("SELECT node, calls FROM dropped WHERE kind = 'forward'"):
        calls[node] = calls.get(node, 0) + lost
    return {
        node.id: NodeUse(node.body, node.kind, node.file, node.line, calls.get(node.id, 0))
        for node in reader.nodes()
        if node.origin == "user"
    }


def stale_values(rows: Callable[[str], Iterable[Any]]) -> dict[int, tuple[str, ...]]:
    """Python values that changed between a graph's trace and a run of it, in words, by graph trace.

    Args:
      rows: Asks the recording with SQL.
    """
    found: dict[int, tuple[str, ...]] = {}
    for (text,) in rows("SELECT facts FROM notice WHERE rule = 'stale-closure' ORDER BY id"):
        one = json.loads(text)
        where = source_line(one["file"], one["line"])
        sentence = f"`{one['name']}` (read at {where}) "
        if one.get("other_object"):
            sentence += "is another object than when this graph was traced: the graph keeps the first"
        else:
            sentence += (
                f"was {one['then']} when this graph was traced and {one['now']} when it ran later: the graph keeps "
                f"{one['then']}"
            )
        found[one["trace"]] = (*found.get(one["trace"], ()), sentence)
    return found


def _row(trace: GraphTrace, runs: dict[int, int], nodes: dict[int, NodeUse], stale: tuple[str, ...]) -> TraceRow:
    return TraceRow(
        trace.name, trace.signature, trace.reason, trace.closest, trace.avoid, trace.duration_ns, runs.get(trace.id),
        tuple(nodes[node] for node in trace.nodes if node in nodes), trace.object, trace.error, stale,
    )  # fmt: skip


# -- text and HTML ----------------------------------------------------------------------------------------------------


def explanation_text(explanation: Explanation, width: int = 80, color: bool = False) -> str:
    """The explanation as text."""
    where = source_line(explanation.file, explanation.line)
    graphs = _graphs(explanation)
    head = Text(explanation.name, style="bold")
    head.append(f"  {where}  {graphs}" if where else f"  {graphs}", style="dim not bold")
    parts = [render(head, width, color)]
    if explanation.rows:
        parts.append(render(_table(explanation), width, color))
    if explanation.notes:
        parts.append(render(Text("\n".join(explanation.notes), style="dim"), width, color))
    return "\n\n".join(parts)


def _graphs(explanation: Explanation) -> str:
    number = len(explanation.rows)
    return "not traced yet" if not number else f"{number} graph trace{'s' if number != 1 else ''}"


def _table(explanation: Explanation) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("#", justify="right")
    table.add_column("traced for, and why", ratio=1, overflow="fold")
    table.add_column("trace ms", justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    for shown in _shown(explanation.rows):
        cell = Text(shown.head, style="bold" if shown.is_one else "not bold")
        for text, style in shown.lines:
            cell.append(f"\n{text}", style=style)
        table.add_row(shown.numbers, cell, milliseconds(shown.duration_ns), count(shown.runs))
    return table


@dataclass(frozen=True)
class _Shown:
    """A line of the table: one graph trace, or several in a row that have the same reason."""

    numbers: str
    head: str
    lines: list[tuple[str, str]]
    duration_ns: int | None
    runs: int | None
    is_one: bool = True


def _shown(rows: tuple[TraceRow, ...]) -> list[_Shown]:
    """The lines of the table: of many rows with one reason the first two and the last."""
    shown: list[_Shown] = []
    for _, group in itertools.groupby(enumerate(rows, 1), lambda one: _cause(one[1])):
        alike = list(group)
        folded = alike[2:-1] if len(alike) >= _ALIKE else []
        for number, row in alike[:2] if folded else alike:
            shown.append(_Shown(str(number), row.signature, _lines(row), row.duration_ns, row.runs))
        if folded:
            (first, _), (last, row) = folded[0], alike[-1]
            shown.append(
                _Shown(
                    f"{first}-{last - 1}", f"{len(folded)} more graph traces for the same reason", [],
                    _sum(row.duration_ns for _, row in folded), _sum(row.runs for _, row in folded), False,
                )
            )  # fmt: skip
            shown.append(_Shown(str(last), row.signature, _lines(row), row.duration_ns, row.runs))
    return shown


def _cause(row: TraceRow) -> Any:
    """What rows have in common that may be shown as one: the arguments that changed, and how. Else the row itself."""
    if row.error is not None or row.stale or row.tried is not None or not row.reason:
        return id(row)
    return (
        [_VALUES.sub(r"\1", reason) for reason in row.reason],
        [(node.body, node.line) for node in row.nodes],
        row.object,
        row.avoid is None,
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    """None where one is not known."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def reasons(row: TraceRow) -> list[tuple[str, str]]:
    """What stands under a signature: kind (reason, first, failed, stale, closest, avoid or tried) and text."""
    lines = [("reason", reason) for reason in row.reason] or [("first", "first graph trace")]
    if row.error is not None:
        lines.append(("failed", f"tracing failed with {row.error}"))
    lines += [("stale", sentence) for sentence in row.stale]
    if row.closest is not None and row.closest != row.signature:
        lines.append(("closest", f"closest before: {row.closest}"))
    if row.avoid is not None:
        head = "one graph would do with" if row.avoid.startswith("input_signature=") else "to avoid it"
        lines.append(("avoid", f"{head}: {row.avoid}"))
    if row.tried is not None:
        lines.append(("tried", row.tried))
    return lines


def _lines(row: TraceRow) -> list[tuple[str, str]]:
    """What stands under a signature, with rich's style."""
    lines = [
        (text, "not bold" if kind in ("reason", "failed", "stale") else "dim not bold") for kind, text in reasons(row)
    ]
    return lines + [(_node_line(node), "dim not bold") for node in row.nodes]


def _node_line(node: NodeUse) -> str:
    kind = kind_text(node.kind) if node.kind is not None else "node"
    calls = "" if node.calls is None else f", {node.calls:,} calls" if node.calls != 1 else ", 1 call"
    return f"  {node.body}  {kind} {source_line(node.file, node.line)}{calls}"


def explanation_html(explanation: Explanation) -> str:
    """The explanation as an HTML table for notebooks, escaped, in the colours of the page."""
    escape = html.escape
    where = f"{source_line(explanation.file, explanation.line)} {_graphs(explanation)}".strip()
    head = f"<div><b>{escape(explanation.name)}</b> <small>{escape(where)}</small></div>"
    left, right = ' style="text-align:left;vertical-align:top"', ' style="text-align:right;vertical-align:top"'
    rows = []
    for shown in _shown(explanation.rows):
        under = "".join(
            f"<div>{escape(text)}</div>" if style == "not bold" else f"<div><small>{escape(text)}</small></div>"
            for text, style in shown.lines
        )
        name = escape(shown.head)
        code = f'<code style="background:none;padding:0">{name}</code>' if shown.is_one else f"<small>{name}</small>"
        rows.append(
            f"<tr><td{right}>{shown.numbers}</td><td{left}>{code}{under}</td>"
            f"<td{right}>{milliseconds(shown.duration_ns)}</td><td{right}>{count(shown.runs)}</td></tr>"
        )
    titles = f"<th{right}>#</th><th{left}>traced for, and why</th><th{right}>trace ms</th><th{right}>runs</th>"
    body = f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>" if rows else ""
    notes = "".join(f"<div><small>{escape(note)}</small></div>" for note in explanation.notes)
    return head + body + notes
