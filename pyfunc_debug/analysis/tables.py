"""The ledger and lists as tables: for a terminal of 80 columns, and as plain HTML without scripts."""

from __future__ import annotations

import html
import io
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pyfunc_debug.places import source_line
from pyfunc_debug.program.printable import printable

if TYPE_CHECKING:
    from pyfunc_debug.analysis.job import JobLedger
    from pyfunc_debug.analysis.ledger import CallSums, FunctionRow, Ledger, NodeRow
    from pyfunc_debug.records import Function

_KINDS = {
    "py_function": "py",
    "numpy_function": "numpy",
    "py_func": "py_func",
    "py_func_stateless": "py_func, stateless",
}
_FUNCTION_KINDS = {"tf.function": "", "tf.data": "tf.data", "graph": "v1 graph", "eager": ""}
HEADERS = ("name", "traced", "runs", "calls", "err", "mean ms", "p95 ms", "GIL ms")
TOTALS = ("total", "share")
_NARROWEST = 16
"""Columns of names at least."""
_TAIL = 8
"""Of the end of a file's name at least: else its line says more."""


def _library(file: str | None) -> str:
    return "Keras" if file is not None and f"{os.sep}keras{os.sep}" in file else "TensorFlow"


def milliseconds(ns: float | None) -> str:
    """A duration in ms with two decimals, fewer for large ones; "-" when it is not known."""
    if ns is None:
        return "-"
    ms = ns / 1e6
    return f"{ms:.2f}" if ms < 100 else f"{ms:,.0f}"


def count(number: int | None) -> str:
    """A count; "-" when nobody counted."""
    return "-" if number is None else f"{number:,}"


def kind_text(kind: str) -> str:
    """Short name of a node's kind for a narrow column."""
    return _KINDS[kind]


def function_name(function: Function) -> str:
    """The function's name; of TensorFlow's and Keras' own only the last part."""
    return function.name.rpartition(".")[2] if function.origin == "tensorflow" else function.name


def function_kind(function: Function) -> str:
    """What is said of a function's kind after its name: nothing of a tf.function."""
    return _FUNCTION_KINDS[function.kind]


def headers(ledger: Ledger) -> tuple[str, ...]:
    """`HEADERS`, without the last when nobody measured the GIL."""
    measured = any(node.forward.wait or node.gradient.wait for row in ledger.rows for node in row.nodes)
    return HEADERS if measured else HEADERS[:-1]


def function_cells(row: FunctionRow) -> tuple[str, ...]:
    """What a function's line says under `HEADERS`."""
    if row.function.kind == "eager":
        return (function_name(row.function), "-", "-", "", "", "", "", "")
    runs = "-" if row.runs is None else f"{row.runs:,}x"
    if row.backward_runs:
        runs += f" {row.backward_runs:,}∇"
    return (
        function_name(row.function),
        "-" if row.traced is None else f"{row.traced:,}x",
        runs,
        "",
        count(row.run_errors) if row.run_errors else "",
        milliseconds(row.times.mean_ns) if row.times.count else "",
        milliseconds(row.times.p95_ns) if row.times.count else "",
        "",
    )


def node_cells(row: NodeRow) -> list[tuple[str, ...]]:
    """What a node's line says under `HEADERS`, and the line of its gradient if it has calls."""
    lines: list[tuple[str, ...]] = [
        (
            row.node.body, "", "", count(row.calls), count(row.errors),
            milliseconds(row.times.mean_ns), milliseconds(row.times.p95_ns), row.forward.wait,
        )
    ]  # fmt: skip
    if row.gradients:
        times = row.gradient.times
        lines.append(
            ("∇ gradient", "", "", count(row.gradients), count(row.gradient.errors), milliseconds(times.mean_ns),
             milliseconds(times.p95_ns), row.gradient.wait)
        )  # fmt: skip
    return lines


def least_width(table: Table, name: int = 16) -> int:
    """How wide a table must be at least so that no number in it is cut: names fold, digits do not.

    Gives each column but the first room for its longest cell.

    Args:
      table: Its first column holds names; columns with a `ratio` hold text that folds.
      name: Least width of the names.
    """
    needed = name
    for column in table.columns[1:]:
        if column.ratio is None:
            longest = max((len(str(cell)) for cell in column.cells if cell is not column.header), default=1)
            column.min_width = max(longest, len(str(column.header)) if column.no_wrap else 5)
            needed += column.min_width + 1
        else:
            needed += name
    return needed


class _SafeConsole(Console):
    """Colours are its own; what control characters the text holds are shown, not obeyed."""

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def render(renderable: object, width: int = 80, color: bool = False) -> str:
    """Something of rich's as text that is safe for a terminal."""
    out = io.StringIO()
    console = _SafeConsole(
        file=out, width=width, force_terminal=color, force_jupyter=False, color_system="auto" if color else None,
        highlight=False,
    )  # fmt: skip
    console.print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n")).rstrip("\n")


def ledger_table(ledger: Ledger, width: int | None = None, totals: bool = False) -> Table:
    """The ledger as a rich table.

    Args:
      ledger: What it shows.
      width: Columns of the terminal: names and places are shortened so that each row is one line. None: they fold.
      totals: Whether it also has the time of all calls of a row, and its share of that of all.
    """
    table = _ledger_table(ledger, totals, None)
    if width is None:
        return table
    others = least_width(table, 0) + len(table.columns) - 1  # a column has a space on each side
    return _ledger_table(ledger, totals, max(width - others, _NARROWEST))


def _ledger_table(ledger: Ledger, totals: bool, room: int | None) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("name  (times in ms)", overflow="fold", ratio=1, min_width=_NARROWEST)
    for header in headers(ledger)[1:]:
        table.add_column(header.removesuffix(" ms"), justify="right", no_wrap=True)
    width = len(table.columns)
    for header in TOTALS if totals else ():
        table.add_column(header, justify="right", no_wrap=True)
    for row in ledger.rows:
        library = row.function.origin == "tensorflow"
        kind = _library(row.function.file) if library else function_kind(row.function)
        where = "" if library else source_line(row.function.file, row.function.line)
        label, where = _fitted(function_name(row.function), kind, where, room)
        name = Text(label, style="bold")
        name.append(f"  {where}" if where else "", style="dim not bold")
        table.add_row(name, *function_cells(row)[1:width])
        for node in row.nodes:
            _add_node(table, node, width, ledger.all_ns if totals else None, bool(ledger.calls), room)
    return table


def _add_node(table: Table, row: NodeRow, width: int, all_ns: float | None, calls: bool, room: int | None) -> None:
    """A node's lines: `width` columns, and where `all_ns` is given those of `TOTALS`; `calls`: whether there is any."""
    first, *others = node_cells(row)
    kind = kind_text(row.node.kind)
    if row.generator:
        kind = "generator"
    elif row.node.origin == "tensorflow":
        kind += ", TensorFlow's own"
    label, where = _fitted(
        first[0], kind, source_line(row.node.file, row.node.line), None if room is None else room - 2
    )
    name = Text(f"  {label}")
    name.append(f"  {where}", style="dim")
    style = "bold" if row.errors else ""
    totals = [() if all_ns is None else _totals(sums, all_ns) for sums in (row.forward, row.gradient)]
    table.add_row(name, *first[1:width], *totals[0], style=style)
    for cells in others:
        table.add_row(Text(f"    {cells[0]}", style="dim"), *cells[1:width], *totals[1])
    if row.note and (calls or not row.only_unused):  # that none has any is said below the table
        table.add_row(Text(f"    {row.note}", style="dim italic"))


def _fitted(name: str, kind: str, where: str, room: int | None) -> tuple[str, str]:
    """A row's name, and its kind and place, in `room` columns together.

    What has no room goes in this order: the beginning of the file's name, the kind, the file, the middle of the name.
    """
    whole = f"{kind} {where}".strip()
    if room is None or len(name) + len(whole) + 2 * bool(whole) <= room:
        return name, whole
    file, colon, line = where.rpartition(":")
    if not colon and len(name) + 2 + len(kind) <= room:
        return name, kind
    left = room - len(name) - 2
    for start in (f"{kind} " if kind else "", ""):
        tail = left - len(start) - len(colon + line) - 1
        if colon and tail >= min(_TAIL, len(file)):
            return name, f"{start}…{file[-tail:]}:{line}" if tail < len(file) else f"{start}{where}"
    short = colon + line if colon else whole
    if len(short) + 2 + _TAIL > room:
        short = ""
    left = room - len(short) - 2 * bool(short)
    return (name if len(name) <= left else f"{name[: left // 2]}…{name[-((left - 1) // 2) :]}"), short


def _totals(sums: CallSums, all_ns: float) -> tuple[str, str]:
    if not sums.times.count or not all_ns:
        return "-", "-"
    return milliseconds(sums.total_ns), f"{sums.total_ns / all_ns:.1%}"


def ledger_text(
    ledger: Ledger,
    width: int = 80,
    color: bool = False,
    totals: bool = False,
    explained: bool = False,
    short: bool = False,
) -> str:
    """The ledger as text; `totals` as in `ledger_table`.

    With `explained`, findings stand beside it: then it does not say of an empty recording that it is empty. With
    `short`, of its footer only what is said unasked.
    """
    if not ledger.rows and explained and ledger.whole:
        head = ""
    elif not ledger.rows:
        head = "No py_function of yours was made, and no tf.function of yours was traced, while recording."
        if ledger.hidden:
            head += (
                f" {ledger.hidden} of TensorFlow's and Keras' own functions and nodes are hidden: of functions of "
                "yours that ran in these, the doctor tells known traps only."
            )
        head = head if ledger.whole else "No py_function and no tf.function stands in this part of the recording."
        head = render(Text(head), width, color)
    else:
        table = ledger_table(ledger, width, totals)
        head = render(table, max(width, least_width(table)), color)
        if not ledger.calls and any(row.nodes for row in ledger.rows):
            head += "\n\nNo call of a py_function was recorded."
    below = _below(ledger, short)
    foot = render(Text("\n".join(below), style="dim"), width, color) if below else ""
    return "\n\n".join(part for part in (head, foot) if part).rstrip()


def _below(ledger: Ledger, short: bool) -> tuple[str, ...]:
    """What is said under the table."""
    return (*ledger.legend, *ledger.short) if short else ledger.footer


def job_text(ledger: JobLedger, width: int = 80, color: bool = False) -> str:
    """The ledger of a job as text: its processes, its bodies, and what stands out."""
    processes = _plain_table("process", "host", "pid", "calls", "err", "s in calls", "recording")
    for process in ledger.processes:
        processes.add_row(
            process.name, process.host, str(process.pid or "?"), count(process.calls), count(process.errors),
            f"{process.total_ns / 1e9:,.2f}", process.state, style="bold" if process.state == "died" else "",
        )  # fmt: skip
    bodies = _plain_table("body  (times in ms)", "processes", "calls", "err", "mean", "slowest in", "mean there")
    for row in ledger.rows:
        name = Text(row.body)
        name.append(f"  {kind_text(row.kind)} {source_line(row.file, row.line)}", style="dim")
        slowest = row.slowest
        bodies.add_row(
            name, f"{len(row.by)}", count(row.calls), count(row.errors), milliseconds(row.mean_ns),
            "-" if slowest is None or len(row.by) < 2 else ledger.processes[slowest].name,
            "-" if slowest is None or len(row.by) < 2 else milliseconds(row.by[slowest].times.mean_ns),
            style="bold" if row.errors else "",
        )  # fmt: skip
    shown = [render(table, max(width, least_width(table)), color) for table in (processes, bodies) if table.row_count]
    if not ledger.rows:
        shown.append("No process ran a py_function.")
    if ledger.remarks:
        shown.append(render(Text("\n".join(ledger.remarks)), width, color))
    return "\n\n".join(shown)


def _plain_table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column(first, overflow="fold", ratio=1, min_width=16)
    for header in others:
        words = header in ("host", "recording", "slowest in")
        table.add_column(header, justify="left" if words else "right", no_wrap=True)
    return table


def ledger_html(ledger: Ledger, short: bool = False) -> str:
    """The ledger as an HTML table for notebooks, escaped, in the colours of the page; `short` as in `ledger_text`."""
    width = len(headers(ledger))
    rows = []
    for row in ledger.rows:
        kind = _library(row.function.file) if row.function.origin == "tensorflow" else function_kind(row.function)
        label = f"<b>{html.escape(function_name(row.function))}</b> <small>{html.escape(kind)} " \
                f"{html.escape(source_line(row.function.file, row.function.line))}</small>"  # fmt: skip
        rows.append(_html_row(label, function_cells(row)[1:width], 0))
        for node in row.nodes:
            lines = node_cells(node)
            small = f"{kind_text(node.node.kind)} {source_line(node.node.file, node.node.line)}"
            name = f"{html.escape(lines[0][0])} <small>{html.escape(small)}</small>"
            rows.append(_html_row(name, lines[0][1:width], 1))
            rows += [_html_row(html.escape(cells[0]), cells[1:width], 2) for cells in lines[1:]]
            if node.note:
                rows.append(_html_row(f"<small><i>{html.escape(node.note)}</i></small>", (), 2))
    head = "".join(f"<th{_align(index)}>{html.escape(header)}</th>" for index, header in enumerate(headers(ledger)))
    foot = "".join(f"<div><small>{html.escape(line)}</small></div>" for line in _below(ledger, short))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{foot}"


def _align(index: int) -> str:
    return ' style="text-align:left"' if index == 0 else ' style="text-align:right"'


def _html_row(label: str, cells: Iterable[str], depth: int) -> str:
    first = f'<td style="text-align:left;padding-left:{0.5 + depth * 1.2}em">{label}</td>'
    rest = "".join(
        f'<td style="text-align:right;font-variant-numeric:tabular-nums">{html.escape(cell)}</td>' for cell in cells
    )
    return f"<tr>{first}{rest}</tr>"
