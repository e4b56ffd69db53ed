"""The source gutter: a function's lines, how often each ran at trace and at run, and what it printed."""

from __future__ import annotations

import ast
import difflib
import html
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.text import Text

from pyfunc_debug.analysis.tables import render
from pyfunc_debug.errors import BadOptionError, NotKeptError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.places import source_line
from pyfunc_debug.program import syntax
from pyfunc_debug.records import Line, Printed
from pyfunc_debug.values.policy import matches

PRINTS_SHOWN = 3
_NO_LINES = "lines were not counted: record with lines=True (or --lines) to see how often each ran"


@dataclass(frozen=True)
class SourceLine:
    """A line of the source.

    Attributes:
      counts: None where Python ran nothing.
      lambdas: The same of the lambda on it.
      label: Where it is in the graph.
      graph: How often the graph ran it, where that was counted (lines="graph").
      graph_lambdas: The same of the lambda on it.
    """

    number: int
    text: str
    counts: Line | None
    lambdas: Line | None
    label: str
    prints: tuple[Printed, ...]
    graph: Line | None = None
    graph_lambdas: Line | None = None

    @property
    def traced(self) -> str:
        """`3x`, `1,000+x`, or empty."""
        return _times(self.counts.traced, self.counts.capped) if self.counts is not None else ""

    @property
    def ran(self) -> str:
        """Like `traced`, in bodies or else in the graph; "-" where nobody counted what the graph did."""
        in_graph = _times(self.graph.ran, self.graph.capped) if self.graph is not None else ""
        if self.counts is None:
            return in_graph
        return _times(self.counts.ran, self.counts.capped) or in_graph or "-"

    @property
    def by_profiler(self) -> bool:
        """Whether `ran` is the graph's."""
        return self.graph is not None and (self.counts is None or self.counts.ran is None)


@dataclass(frozen=True)
class Source:
    """A function with its gutter.

    Attributes:
      graph_counted: Whether the graphs' lines were counted in this recording, of this function or of others.
    """

    name: str
    file: str
    lines: tuple[SourceLine, ...]
    notes: tuple[str, ...] = ()
    graph_counted: bool = False

    def __str__(self) -> str:
        return source_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return source_html(self)


def make_source(reader: Reader, name: str) -> Source:
    """The gutter of a traced function or a body.

    Args:
      reader: The recording.
      name: Its name or a glob; the first that matches and whose source was kept.

    Raises:
      BadOptionError: nothing of that name; the message names the nearest.
      NotKeptError: its source is not in the recording.
    """
    where = _find(reader, name)
    if where is None:
        older = [one for (one,) in reader.rows("SELECT name FROM function WHERE file IS NULL OR line IS NULL")]
        if any(matches(name, one, one.rpartition(".")[2]) for one in older):
            raise NotKeptError(
                f"{name} was traced before recording began, so its lines are not known here: record its graph trace too"
            )
        known = sorted({row[0] for row in (*reader.rows(_NAMES), *_counted(reader))})
        near = difflib.get_close_matches(name, known, 3, 0.4) or known[:5]
        raise BadOptionError(
            f"no function or body matches {name!r}" + (f". There are: {', '.join(near)}" if near else "")
        )
    found, file, line = where
    text = reader.source(file)
    if text is None:
        raise NotKeptError(f"the source of {found} ({source_line(file, line)}) is not in this recording")
    first, last = extent(text, line)
    rows = source_lines(text, reader.lines(file), reader.prints(file), first, last)
    recorded = bool(reader.meta.get("options", {}).get("lines"))
    by_graph = bool(reader.rows("SELECT 1 FROM line WHERE kind IN ('graph', 'graph lambda') LIMIT 1"))
    return Source(found, file, rows, () if recorded else (_NO_LINES,), by_graph)


def source_lines(
    text: str, counts: Iterable[Line], printed: Iterable[Printed], first: int, last: int
) -> tuple[SourceLine, ...]:
    """Lines of a file with what ran and what they printed.

    Args:
      text: The file.
      counts: Counts of its lines.
      printed: What its lines printed.
      first: First line wanted, from 1.
      last: Last line wanted.
    """
    lines = {(one.kind, one.line): one for one in counts}
    prints: dict[int, list[Printed]] = defaultdict(list)
    for one in printed:
        prints[one.line].append(one)
    return tuple(
        SourceLine(number, source, lines.get(("line", number)), lines.get(("lambda", number)),
                   _label(lines.get(("line", number))), tuple(prints.get(number, ())), lines.get(("graph", number)),
                   lines.get(("graph lambda", number)))
        for number, source in enumerate(text.splitlines(), 1)
        if first <= number <= last
    )  # fmt: skip


_NAMES = (
    "SELECT name, file, line FROM function WHERE file IS NOT NULL AND line IS NOT NULL "
    "UNION SELECT body, file, line FROM node WHERE file IS NOT NULL AND line IS NOT NULL"
)


def _find(reader: Reader, name: str) -> tuple[str, str, int] | None:
    for found, file, line in reader.rows(_NAMES):
        if matches(name, found, found.rpartition(".")[2]):
            return found, file, line
    return next((one for one in _counted(reader) if matches(name, one[0], one[0].rpartition(".")[2])), None)


def _counted(reader: Reader) -> Iterator[tuple[str, str, int]]:
    """Name, file and line of other functions whose lines were counted: a layer's `call`, a model's `train_step`."""
    for file, text in reader.rows("SELECT file, text FROM source WHERE file IN (SELECT file FROM line) ORDER BY file"):
        lines = {line for (line,) in reader.rows("SELECT DISTINCT line FROM line WHERE file = ?", (file,))}
        for name, first, last in definitions(text):
            if not lines.isdisjoint(range(first, last + 1)):
                yield name, file, first


def definitions(text: str) -> list[tuple[str, int, int]]:
    """Qualified name, first and last line of each function defined in a text."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            name = f"{prefix}{getattr(child, 'name', '')}"
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield name, child.lineno, child.end_lineno or child.lineno
            scope = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            yield from visit(child, f"{name}." if scope else prefix)

    try:
        return list(visit(syntax.parse(text), ""))
    except SyntaxError:
        return []


def extent(text: str, line: int) -> tuple[int, int]:
    """First and last line of the innermost function whose definition (or decorator, or lambda) is at a line."""
    best: tuple[int, int] | None = None
    try:
        tree = syntax.parse(text)
    except SyntaxError:
        tree = ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
            first = min([node.lineno, *decorators])
            head = node.body[0].lineno if isinstance(node.body, list) else node.lineno
            if first <= line <= max(node.lineno, head if head == node.lineno else head - 1):
                best = first, node.end_lineno or node.lineno
    return best if best is not None else (line, line)


def _times(number: int | None, capped: bool) -> str:
    return "" if number is None else f"{number:,}{'+' if capped else ''}x"


def _label(line: Line | None) -> str:
    if line is None or not (line.graph or line.inside):
        return ""
    parts = []
    if line.graph:
        parts.append(f"graph {'/'.join(line.graph)}")
    inside = [one for one in line.inside if f"@{line.line} " not in f"{one} "]  # a header is not inside itself
    if inside:
        parts.append(f"in {', '.join(inside)}")
    return "; ".join(parts)


def lambdas_text(source: SourceLine) -> str:
    """What is known of the lambda on a line; empty without one."""
    counts = []
    if source.lambdas is not None:
        line = source.lambdas
        counts += [(line.traced, line.capped, "at trace"), (line.ran, line.capped, "at run")]
    if source.graph_lambdas is not None:
        counts.append((source.graph_lambdas.ran, source.graph_lambdas.capped, "in the graph"))
    shown = ", ".join(f"{_times(count, capped)} {what}" for count, capped, what in counts if count)
    return f"the lambda: {shown}" if shown else ""


# -- text and HTML ----------------------------------------------------------------------------------------------------


def _printed(line: SourceLine) -> list[str]:
    """What a line printed, by trace and by call."""
    remarks = []
    for one in line.prints[:PRINTS_SHOWN]:
        who = f"call #{one.call}" if one.call is not None else "at trace"
        remarks.append(f"{who} printed: {one.text.rstrip()}")
    more = len(line.prints) - PRINTS_SHOWN
    return remarks + ([f"and {more:,} more prints"] if more > 0 else [])


def source_text(source: Source, color: bool = False) -> str:
    """The gutter as text: number, at trace, at run, the line, and where it is in the graph."""
    traced = max([6, *(len(line.traced) for line in source.lines)])
    ran = max([4, *(len(line.ran) for line in source.lines)])
    out = Text()
    out.append(f"{source.name}  {source_line(source.file, None)}\n", style="bold")
    out.append(f"{'line':>5} {'traced':>{traced}} {'runs':>{ran}}\n", style="dim")
    for line in source.lines:
        out.append(f"{line.number:>5} {line.traced:>{traced}} {line.ran:>{ran}} ", style="dim")
        out.append(f"| {line.text}")
        if lambdas_text(line):
            out.append(f"   # {lambdas_text(line)}", style="dim italic")
        if line.label:
            out.append(f"   # {line.label}", style="dim italic")
        out.append("\n")
        for text in _printed(line):
            out.append(f"{'':>{7 + traced + ran}}|   > {text}\n", style="dim italic")
    for note in _notes(source):
        out.append(f"{note}\n", style="dim")
    width = max([80, *(len(row) for row in out.plain.splitlines())])
    return render(out, width, color)


def _notes(source: Source) -> list[str]:
    notes = list(source.notes)
    if any(line.by_profiler for line in source.lines):
        notes.append("runs of lines in the graph: by TensorFlow's profiler")
    if any(line.ran == "-" for line in source.lines):
        in_graph = "what the graph made of it is not counted"
        if source.graph_counted:
            in_graph = "the graph did not run it, or optimised it away, or the profiler leaves it out"
        notes.append(f"runs -: Python did not run the line in a body; {in_graph}")
    return notes


def source_html(source: Source) -> str:
    """The gutter as HTML for notebooks, escaped."""
    escape = html.escape
    number = ' style="text-align:right;vertical-align:top;opacity:.7;font-variant-numeric:tabular-nums"'
    left = ' style="text-align:left;vertical-align:top"'
    rows = []
    for line in source.lines:
        extra = "".join(f"<div><small>{escape(text)}</small></div>" for text in _printed(line))
        if lambdas_text(line):
            extra += f"<div><small>{escape(lambdas_text(line))}</small></div>"
        rows.append(
            f"<tr><td{number}>{line.number}</td><td{number}>{line.traced}</td><td{number}>{line.ran}</td>"
            f'<td{left}><code style="white-space:pre;background:none;padding:0">{escape(line.text)}</code>{extra}</td>'
            f"<td{left}><small>{escape(line.label)}</small></td></tr>"
        )
    titles = f"<th{number}>line</th><th{number}>traced</th><th{number}>runs</th><th{left}></th><th{left}></th>"
    notes = "".join(f"<div><small>{escape(note)}</small></div>" for note in _notes(source))
    head = f"<div><b>{escape(source.name)}</b> <small>{escape(source_line(source.file, None))}</small></div>"
    return f"{head}<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>{notes}"
