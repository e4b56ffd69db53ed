"""What differs between two recordings, or two calls: node by node, call by call, value by value."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from pyfunc_debug.analysis.equality import Status, Tolerance, ValueDifference, compare_values
from pyfunc_debug.analysis.pairing import pair_calls, pair_nodes
from pyfunc_debug.analysis.tables import render
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Call, Node, Value

_WORST: tuple[Status, ...] = ("equal", "unknown", "close", "missing", "different")
_MOST_ROWS = 500
_SHOWN = 20


@dataclass(frozen=True)
class CallDifference:
    """The calls of one number of one node. `left` and `right` are call ids; None where there is no such call."""

    body: str
    kind: str
    number: int
    left: int | None
    right: int | None
    status: Status
    values: tuple[ValueDifference, ...]
    note: str = ""
    source_line: str = ""

    def __str__(self) -> str:
        return difference_text(Differences("", "", (self,), Counter([self.status]), 0))

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Differences:
    """Calls of two recordings that are not equal, in the order of the left one; `counts` has them all by status.

    `names` is what the two sides are called.
    """

    left: str
    right: str
    rows: tuple[CallDifference, ...]
    counts: Counter[Status]
    omitted: int
    names: tuple[str, str] = ("left", "right")

    @property
    def first(self) -> CallDifference | None:
        """The first call that is different or missing; None if there is none."""
        return next((row for row in self.rows if row.status in ("different", "missing")), None)

    def __bool__(self) -> bool:
        """Whether anything is different or missing."""
        return bool(self.counts["different"] or self.counts["missing"])

    def __str__(self) -> str:
        return difference_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return difference_html(self)


def difference(left: Reader, right: Reader, tolerance: Tolerance | None = None) -> Differences:
    """Compares two recordings call by call. TensorFlow's own nodes are left out.

    Args:
      left: The earlier recording, or the one that is right.
      right: The other.
      tolerance: How far numbers may be apart and still be close.
    """
    tolerance = tolerance or Tolerance()
    counts: Counter[Status] = Counter()
    rows: list[CallDifference] = []
    omitted = 0
    for mine, others in pair_nodes(left, right):
        for row in _node_differences((mine or others)[0], _calls(left, mine), _calls(right, others), tolerance):
            counts[row.status] += 1
            if row.status == "equal":
                continue
            if len(rows) < _MOST_ROWS:
                rows.append(row)
            else:
                omitted += 1
    rows.sort(key=lambda row: (row.left is None, row.left or row.right or 0))
    return Differences(left.path, right.path, tuple(rows), counts, omitted)


def compare_calls(left: Call, right: Call, body: str = "", tolerance: Tolerance | None = None) -> CallDifference:
    """Compares inputs, outputs and outcome of two calls, of one recording or of two."""
    tolerance = tolerance or Tolerance()
    values = (*_values("input", left.inputs, right.inputs, tolerance),
              *_values("output", left.outputs, right.outputs, tolerance))  # fmt: skip
    note = ""
    outcomes = [call.failure.type if call.failure is not None else call.status for call in (left, right)]
    status = _worst([value.status for value in values]) if values else "unknown"
    if outcomes[0] != outcomes[1]:
        status, note = "different", f"{outcomes[0]} here, {outcomes[1]} there"
    elif not values and not left.inputs and left.status == "ok":
        note = "no values were kept"
    return CallDifference(body, left.kind, 0, left.id, right.id, status, values, note)


def _calls(reader: Reader, nodes: Sequence[Node]) -> list[Call]:
    return list(reader.calls([node.id for node in nodes])) if nodes else []


def _node_differences(
    node: Node, left: list[Call], right: list[Call], tolerance: Tolerance
) -> Iterator[CallDifference]:
    for kind in ("forward", "gradient"):
        mine = [call for call in left if call.kind == kind]
        others = [call for call in right if call.kind == kind]
        for number, pair in enumerate(pair_calls(mine, others, tolerance), 1):
            one, other = pair.left, pair.right
            if one is None or other is None:
                yield CallDifference(node.body, kind, number, one.id if one else None, other.id if other else None,
                                     "missing", (), f"only in the {'left' if one else 'right'} recording")  # fmt: skip
                continue
            row = compare_calls(one, other, node.body, tolerance)
            note = row.note or ("in another order: paired by equal inputs" if pair.moved else "")
            yield replace(row, kind=kind, number=number, note=note)


# -- values -----------------------------------------------------------------------------------------------------------


def _values(
    role: str, left: Sequence[Value], right: Sequence[Value], tolerance: Tolerance
) -> Iterator[ValueDifference]:
    for index in range(max(len(left), len(right))):
        if index >= len(left) or index >= len(right):
            only = left[index] if index < len(left) else right[index]
            mine = only.text if index < len(left) else None
            yield ValueDifference(role, only.path, "missing", mine, None if mine else only.text)
            continue
        yield compare_values(role, left[index], right[index], tolerance)


def _worst(statuses: Sequence[Status]) -> Status:
    return max(statuses, key=_WORST.index)


# -- text and HTML ----------------------------------------------------------------------------------------------------


def _head(found: Differences) -> str:
    if not sum(found.counts.values()):
        return "no calls to compare"
    parts = [f"{found.counts[status]:,} {status}" for status in reversed(_WORST) if found.counts[status]]
    return f"{sum(found.counts.values()):,} calls compared: {', '.join(parts)}"


def difference_lines(row: CallDifference, names: tuple[str, str] = ("left", "right")) -> list[tuple[str, str]]:
    """What is said of a row: (text, rich's style).

    Args:
      row: The row.
      names: What the two sides are called.
    """
    calls = (row.left, row.right)
    sides = ", ".join(f"{name} {'-' if call is None else f'#{call}'}" for name, call in zip(names, calls))
    gradient = "∇ " if row.kind == "gradient" else ""
    number = f" call {row.number}" if row.number else ""
    if row.left is None and row.right is None:
        sides = ""
    head = [f"{gradient}{row.body}{number}", row.source_line, sides, row.note]
    lines = [("  ".join(part for part in head if part), "bold")]
    width = max(map(len, names))
    for value in row.values:
        if value.status == "equal":
            continue
        note = ", ".join(
            text
            for text in (value.note, "" if value.largest is None else f"apart by up to {value.largest:.3g}")
            if text
        )
        lines.append((f"{value.role} {value.path}: {value.status}{f' ({note})' if note else ''}", ""))
        for name, text in zip(names, (value.left, value.right)):
            lines.append((f"  {name.ljust(width)}  {text if text is not None else '-'}", "dim"))
    return lines


def difference_text(found: Differences, width: int = 80, color: bool = False) -> str:
    """The differences as text."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("status", no_wrap=True)
    table.add_column("call, and what differs", ratio=1, overflow="fold")
    for row in found.rows[:_SHOWN]:
        cell = Text()
        for index, (text, style) in enumerate(difference_lines(row, found.names)):
            cell.append(("\n" if index else "") + text, style=style)
        table.add_row(row.status, cell)
    parts = [_head(found)] if found.left else []
    if found.rows:
        parts.append(render(table, width, color))
    more = len(found.rows) - _SHOWN + found.omitted
    if more > 0:
        parts.append(f"and {more:,} more")
    return "\n\n".join(parts)


def difference_html(found: Differences) -> str:
    """The differences as an HTML table for notebooks, escaped."""
    rows = []
    for row in found.rows[:_SHOWN]:
        cells = "".join(
            f"<div>{html.escape(text)}</div>" if style != "dim" else f"<div><small>{html.escape(text)}</small></div>"
            for text, style in difference_lines(row, found.names)
        )
        left = ' style="text-align:left;vertical-align:top"'
        rows.append(f"<tr><td{left}>{row.status}</td><td{left}>{cells}</td></tr>")
    table = f"<table><tbody>{''.join(rows)}</tbody></table>" if rows else ""
    return f"<div>{html.escape(_head(found))}</div>{table}"
