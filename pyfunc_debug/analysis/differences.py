"""What differs between two recordings, or two calls: node by node, call by call, value by value.

Nodes are paired by body, function and op, calls by their number within the node. Calls that ran in parallel have no
fixed order, so a node's calls are paired by equal inputs before anything is called different.
"""

from __future__ import annotations

import html
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from pyfunc_debug.analysis.tables import render
from pyfunc_debug.errors import NotKeptError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Call, Node, Value

Status = Literal["equal", "close", "different", "missing", "unknown"]
_WORST: tuple[Status, ...] = ("equal", "unknown", "close", "missing", "different")
_STATISTICS = ("min", "max", "mean", "std")
_COUNTS = ("nan", "inf", "zeros")
_MOST_ROWS = 500
_SHOWN = 20


@dataclass(frozen=True)
class Tolerance:
    """Two numbers are close when they differ by at most `absolute + relative * abs(right)`."""

    relative: float = 1e-5
    absolute: float = 1e-8


@dataclass(frozen=True)
class ValueDifference:
    """One input or output of two calls.

    `largest` is the largest absolute difference of two elements, None when elements were not kept; `note` says on what
    the status rests when it is not on all elements.
    """

    role: str
    path: str
    status: Status
    left: str | None
    right: str | None
    largest: float | None = None
    note: str = ""


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
    """Calls of two recordings that are not equal, in the order of the left one; `counts` has them all by status."""

    left: str
    right: str
    rows: tuple[CallDifference, ...]
    counts: Counter[Status]
    omitted: int

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
    for mine, other in _pair_nodes(left, right):
        node = mine or other
        assert node is not None
        for row in _node_differences(node, _calls(left, mine), _calls(right, other), tolerance):
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


# -- pairing ----------------------------------------------------------------------------------------------------------


def _pair_nodes(left: Reader, right: Reader) -> Iterator[tuple[Node | None, Node | None]]:
    sides = [_keyed(reader) for reader in (left, right)]
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        yield sides[0].get(key), sides[1].get(key)


def _keyed(reader: Reader) -> dict[tuple[object, ...], Node]:
    """Nodes by what stays the same from one recording to the next: neither tokens nor line numbers do."""
    functions = {function.id: function.name for function in reader.functions()}
    seen: Counter[tuple[object, ...]] = Counter()
    found: dict[tuple[object, ...], Node] = {}
    for node in reader.nodes():
        if node.origin != "user":
            continue
        key: tuple[object, ...] = (node.kind, node.body, functions.get(node.function or 0), node.name)
        seen[key] += 1
        found[(key, seen[key])] = node
    return found


def _calls(reader: Reader, node: Node | None) -> list[Call]:
    return [] if node is None else list(reader.calls([node.id]))


def _node_differences(
    node: Node, left: list[Call], right: list[Call], tolerance: Tolerance
) -> Iterator[CallDifference]:
    for kind in ("forward", "gradient"):
        mine = [call for call in left if call.kind == kind]
        others = [call for call in right if call.kind == kind]
        for number, (one, other, moved) in enumerate(_pair_calls(mine, others, tolerance), 1):
            if one is None or other is None:
                yield CallDifference(node.body, kind, number, one.id if one else None, other.id if other else None,
                                     "missing", (), f"only in the {'left' if one else 'right'} recording")  # fmt: skip
                continue
            row = compare_calls(one, other, node.body, tolerance)
            note = row.note or ("in another order: paired by equal inputs" if moved else "")
            yield CallDifference(node.body, kind, number, one.id, other.id, row.status, row.values, note)


def _pair_calls(
    left: list[Call], right: list[Call], tolerance: Tolerance
) -> list[tuple[Call | None, Call | None, bool]]:
    """Calls by number; where the inputs of a pair differ, by equal inputs if that finds a partner."""
    pairs: list[tuple[Call | None, Call | None, bool]] = []
    loose: list[int] = []
    for number in range(max(len(left), len(right))):
        one = left[number] if number < len(left) else None
        other = right[number] if number < len(right) else None
        pairs.append((one, other, False))
        if one is None or other is None or not _same_inputs(one, other, tolerance):
            loose.append(number)
    partners: dict[object, list[Call]] = defaultdict(list)
    for number in loose:
        candidate = pairs[number][1]
        if candidate is not None:
            partners[_input_key(candidate)].append(candidate)
    matched: dict[int, Call] = {}
    for number in loose:
        one = pairs[number][0]
        waiting = partners.get(_input_key(one)) if one is not None and one.inputs else None
        if waiting:
            matched[number] = waiting.pop(0)
    if not matched:
        return pairs
    taken = {call.id for call in matched.values()}
    rest = [pairs[number][1] for number in loose]
    free = [call for call in rest if call is not None and call.id not in taken]
    for number in loose:
        one, was, _ = pairs[number]
        other = matched.get(number) or (free.pop(0) if free else None)
        pairs[number] = (one, other, other is not None and other is not was)
    return [pair for pair in pairs if pair[0] is not None or pair[1] is not None]


def _same_inputs(one: Call, other: Call, tolerance: Tolerance) -> bool:
    return all(value.status in ("equal", "close", "unknown")
               for value in _values("input", one.inputs, other.inputs, tolerance))  # fmt: skip


def _input_key(call: Call) -> object:
    return tuple(
        (value.dtype, value.shape, *(getattr(value, name) for name in (*_STATISTICS, *_COUNTS)), value.histogram)
        for value in call.inputs
    )


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


def compare_values(role: str, left: Value, right: Value, tolerance: Tolerance) -> ValueDifference:
    """Compares two values: by elements where both were kept, else by what their summaries say."""

    def result(status: Status, largest: float | None = None, note: str = "") -> ValueDifference:
        return ValueDifference(role, left.path, status, left.text, right.text, largest, note)

    if left.dtype != right.dtype:
        return result("different", note=f"{left.dtype} and {right.dtype}")
    if left.shape != right.shape:
        return result("different", note=f"shapes {left.shape} and {right.shape}")
    arrays = []
    for value in (left, right):
        try:
            arrays.append(value.array())
        except NotKeptError:
            pass
    if len(arrays) == 2 and left.kept == right.kept == "full":
        return result(*_elements(arrays[0], arrays[1], tolerance))
    return result(*_summaries(left, right, tolerance))


def _elements(
    left: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
    right: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
    tolerance: Tolerance,
) -> tuple[Status, float | None, str]:
    if left.dtype.kind not in "biufcV":
        same = bool((left == right).all())
        return ("equal" if same else "different"), None, ""
    if left.dtype.kind == "V":  # bfloat16 and its like
        left, right = left.astype(np.float32), right.astype(np.float32)
    kinds = np.complex128 if left.dtype.kind == "c" else np.float64
    first, second = left.astype(kinds), right.astype(kinds)
    same = (left == right) | (np.isnan(first) & np.isnan(second))
    if bool(same.all()):
        return "equal", 0.0, ""
    with np.errstate(invalid="ignore"):
        apart = np.abs(first - second)
        bound = tolerance.absolute + tolerance.relative * np.abs(second)
        near = same | (np.isfinite(apart) & np.isfinite(bound) & (apart <= bound))
    finite = apart[~same & np.isfinite(apart)]
    largest = float(finite.max()) if finite.size else None
    wrong = int((~near).sum())
    if not wrong:
        return "close", largest, ""
    return "different", largest, f"{wrong:,} of {left.size:,} elements beyond tolerance"


def _summaries(left: Value, right: Value, tolerance: Tolerance) -> tuple[Status, float | None, str]:
    numbers = [(getattr(left, name), getattr(right, name)) for name in _STATISTICS]
    counts = [(getattr(left, name), getattr(right, name)) for name in _COUNTS]
    if all(one is None for pair in (*numbers, *counts) for one in pair):
        if left.dtype == "string" and left.text and not left.note and left.text != right.text:
            return "different", None, ""
        return "unknown", None, "only shapes were kept"
    if any(one != other for one, other in counts) or any((one is None) != (other is None) for one, other in numbers):
        return "different", None, "by summary"
    pairs = [(float(one), float(other)) for one, other in numbers if one is not None and other is not None]
    if all(one == other for one, other in pairs) and left.histogram == right.histogram:
        return "equal", None, "by summary"
    if all(math.isclose(one, other, rel_tol=tolerance.relative, abs_tol=tolerance.absolute) for one, other in pairs):
        return "close", None, "by summary"
    return "different", None, "by summary"


def _worst(statuses: Sequence[Status]) -> Status:
    return max(statuses, key=_WORST.index)


# -- text and HTML ----------------------------------------------------------------------------------------------------


def _head(found: Differences) -> str:
    if not sum(found.counts.values()):
        return "no calls to compare"
    parts = [f"{found.counts[status]:,} {status}" for status in reversed(_WORST) if found.counts[status]]
    return f"{sum(found.counts.values()):,} calls compared: {', '.join(parts)}"


def difference_lines(row: CallDifference) -> list[tuple[str, str]]:
    """What a row shows: (text, rich's style)."""
    sides = f"#{row.left if row.left is not None else '-'} and #{row.right if row.right is not None else '-'}"
    gradient = "∇ " if row.kind == "gradient" else ""
    number = f" call {row.number}" if row.number else ""
    if row.left is None and row.right is None:
        sides = ""
    head = [f"{gradient}{row.body}{number}", row.source_line, sides, row.note]
    lines = [("  ".join(part for part in head if part), "bold")]
    for value in row.values:
        if value.status == "equal":
            continue
        note = ", ".join(
            text
            for text in (value.note, "" if value.largest is None else f"apart by up to {value.largest:.3g}")
            if text
        )
        lines.append((f"{value.role} {value.path}: {value.status}{f' ({note})' if note else ''}", ""))
        lines.append((f"  {value.left if value.left is not None else '-'}", "dim"))
        lines.append((f"  {value.right if value.right is not None else '-'}", "dim"))
    return lines


def difference_text(found: Differences, width: int = 80, color: bool = False) -> str:
    """The differences as text."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("status", no_wrap=True)
    table.add_column("call, and what differs", ratio=1, overflow="fold")
    for row in found.rows[:_SHOWN]:
        cell = Text()
        for index, (text, style) in enumerate(difference_lines(row)):
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
            for text, style in difference_lines(row)
        )
        left = ' style="text-align:left;vertical-align:top"'
        rows.append(f"<tr><td{left}>{row.status}</td><td{left}>{cells}</td></tr>")
    table = f"<table><tbody>{''.join(rows)}</tbody></table>" if rows else ""
    return f"<div>{html.escape(_head(found))}</div>{table}"
