"""The user's files with what ran where: bodies with calls and times, traced functions, call sites, findings."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.analysis.facts import ProgramFacts
from pyfunc_debug.analysis.source import PRINTS_SHOWN, SourceLine, lambdas_text, source_lines
from pyfunc_debug.program import syntax
from pyfunc_debug.records import Finding, Line, Printed
from pyfunc_debug.report.colours import Pieces, coloured

Json = dict[str, Any]
MAX_LINES = 4000


def files(connection: sqlite3.Connection) -> list[str]:
    """Files whose text the recording holds."""
    return [file for (file,) in connection.execute("SELECT file FROM source ORDER BY file")]


def page(
    connection: sqlite3.Connection,
    facts: ProgramFacts,
    ledger: Sequence[Json],
    file: str,
    findings: Sequence[Finding] | None = None,
) -> Json | None:
    """One file with its marks, or None if the recording does not hold its text.

    Each mark has `kind` (`body` runs at run, `function` at graph trace, `site` is where a node was made, `finding`),
    `line`, `end`, and words or numbers to show next to them. `counts` holds lines that Python or the graph ran, or that
    printed, if lines were counted.
    """
    row = connection.execute("SELECT text FROM source WHERE file = ?", (file,)).fetchone()
    if row is None:
        return None
    lines = row[0].splitlines()
    ends = _ends(row[0])
    marks: list[Json] = []
    for item in ledger:
        line = item["line"]
        if item["file"] == file and line and item["call_kind"] != "gradient":
            end = max((e for first, e in ends if first == line), default=line)
            kind = "body" if item["type"] == "node" else "function"
            if kind == "function" and item["kind"] == "eager":
                continue
            marks.append(
                {
                    "kind": kind,
                    "line": line,
                    "end": min(end, len(lines)),
                    "key": item["key"],
                    "name": item["name"],
                    "count": item["calls"] if kind == "body" else item["traced"],
                    "runs": item["runs"],
                    "mean_ns": item["mean_ns"],
                    "total_ns": item.get("total_ns"),
                }
            )
    counts = {item["key"]: item for item in ledger}
    for key in facts.groups:
        node = facts.nodes[key]
        here = [frame for frame in node.stack if frame.file == file]
        if here:
            calls = counts.get(f"n{key}", {}).get("calls")
            gradients = counts.get(f"n{key}g", {}).get("calls")
            marks.append(
                {"kind": "site", "line": here[-1].line, "end": here[-1].line, "key": f"n{key}",
                 "name": facts.label(key), "count": calls, "gradients": gradients}
            )  # fmt: skip
    marks += [_finding_mark(found, found.line) for found in findings or () if found.file == file and found.line]
    first = 0
    if len(lines) > MAX_LINES:
        wanted = min((mark["line"] for mark in marks), default=1)
        first = max(0, min(wanted - 200, len(lines) - MAX_LINES))
    return {
        "file": file,
        "name": facts.file_name(file),
        "first": first + 1,
        "total": len(lines),
        "lines": [_shortened(pieces) for pieces in coloured(_as_typed(row[0]))[first : first + MAX_LINES]],
        "marks": marks,
        "counted": bool((facts.meta.get("options") or {}).get("lines")),
        "counts": _counts(connection, file, row[0], first + 1, first + MAX_LINES),
    }


_MAGIC = re.compile(r"^(\s*)get_ipython\(\)\.run_line_magic\('([^']*)', '((?:[^'\\]|\\.)*)'\)$", re.MULTILINE)


def _as_typed(text: str) -> str:
    """A cell with its line magics as they were typed; IPython keeps what it made of them."""
    return _MAGIC.sub(lambda found: f"{found[1]}%{found[2]} {found[3]}".rstrip(), text)


def _shortened(pieces: Pieces) -> Pieces:
    """A line of data in a source may have megabytes."""
    shown, room = [], 2000
    for kind, text in pieces:
        shown.append((kind, text[:room]))
        room -= len(text)
        if room <= 0:
            break
    return shown


def _counts(connection: sqlite3.Connection, file: str, text: str, first: int, last: int) -> list[Json]:
    lines = [
        Line(file, line, kind, traced, ran, bool(capped), tuple(json.loads(graph)), tuple(json.loads(inside)))
        for line, kind, traced, ran, capped, graph, inside in connection.execute(
            "SELECT line, kind, traced, ran, capped, graph, inside FROM line WHERE file = ?", (file,)
        )
    ]
    prints = [
        Printed(*found)
        for found in connection.execute(
            "SELECT trace, call, file, line, function, text FROM print WHERE file = ? ORDER BY id", (file,)
        )
    ]
    if not lines and not prints:
        return []
    return [
        {
            "line": line.number,
            "traced": line.traced,
            "ran": line.ran,
            "words": [text for text in (line.label, _by_profiler(line), lambdas_text(line)) if text],
            "prints": [[one.call, one.text.rstrip()[:300]] for one in line.prints[:PRINTS_SHOWN]],
            "more_prints": max(0, len(line.prints) - PRINTS_SHOWN),
        }
        for line in source_lines(text, lines, prints, first, last)
        if line.counts or line.lambdas or line.prints or line.graph or line.graph_lambdas
    ]


def _by_profiler(line: SourceLine) -> str:
    return f"{line.ran} in the graph, by TensorFlow's profiler" if line.by_profiler else ""


def _finding_mark(finding: Finding, line: int) -> Json:
    return {
        "kind": "finding",
        "line": line,
        "end": line,
        "name": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
    }


def _ends(text: str) -> list[tuple[int, int]]:
    """First and last lines of functions and lambdas; a decorated function counts from its first decorator too."""
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    result = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            result.append((node.lineno, node.end_lineno or node.lineno))
            if node.decorator_list:
                result.append((node.decorator_list[0].lineno, node.end_lineno or node.lineno))
        elif isinstance(node, ast.Lambda):
            result.append((node.lineno, node.end_lineno or node.lineno))
    return result
