"""`pyfunc-debug query`: SQL on a recording or a job, read-only."""

from __future__ import annotations

import argparse
import base64
import csv
import os
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import Any

from pyfunc_debug.analysis.job_sql import ENGINES, LARGE_BYTES, ask
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.pfrec import schema_text
from pyfunc_debug.pfrec.folders import Chosen, is_many
from pyfunc_debug.program.printable import printable, tell

_SQL = re.compile(r"\s*(select|with|values|explain|--|/\*)\b", re.IGNORECASE)


_TOGETHER = 500
_FORMATS = ("table", "csv", "tsv", "json")


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "query",
        usage="%(prog)s [options] FILE [FILE ...] SQL",
        help="SQL on a recording or a job",
        description="Runs a SELECT on a recording. On several, or folders or patterns of them, the tables have the "
        "columns process and recording in front. --schema shows the tables.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="several, a folder, a pattern: a job's processes as one"
    )
    parser.add_argument("sql", metavar="SQL", nargs="*", help='the question, as one argument: "select ..."')
    # It may take the next word: argparse gives both positional arguments to what stands before an option.
    parser.add_argument("--json", nargs="?", const="", metavar="SQL", help="print a JSON list of objects")
    parser.add_argument(
        "--format", choices=_FORMATS, help="how to print rows (a table in a terminal, csv into a pipe or file)"
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        help=f"of several recordings (duckdb from {LARGE_BYTES // 1_000_000} MB on, if installed)",
    )
    parser.add_argument("--schema", action="store_true", help="print the documented schema and stop")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the rows."""
    if arguments.schema:
        print(schema_text().rstrip())
        return 0
    words = [word for word in (arguments.json, arguments.file, *arguments.sql) if word]
    words.sort(key=lambda word: bool(_SQL.match(word)))
    *files, sql = words or [""]
    if not files or os.path.exists(sql) or _SQL.match(files[-1]):
        raise BadOptionError('write: pyfunc-debug query FILE "SELECT ..."; --schema shows the tables')
    damaged = 0
    if len(files) > 1 or is_many(files[0]):
        chosen = Chosen(files)
        columns, rows = chosen.read(lambda paths: ask(paths, sql, arguments.engine, _say))
        damaged = options.say_left_out(chosen)
    elif arguments.engine == "duckdb":
        raise BadOptionError("--engine duckdb is for several recordings: give their folder, or a pattern")
    else:
        columns, rows = Recording(files[0]).reader.stream(sql)
    form = "json" if arguments.json is not None else arguments.format
    form = form or ("table" if sys.stdout.isatty() else "csv")
    if form == "json":
        options.show_json_list(dict(zip(columns, map(_plain, row))) for row in rows)
    elif form == "table":
        _print_table(columns, rows)
    else:
        writer = csv.writer(sys.stdout, "excel-tab" if form == "tsv" else "excel", lineterminator="\n")
        writer.writerow(map(printable, columns))
        writer.writerows(["" if cell is None else printable(str(_plain(cell))) for cell in row] for row in rows)
    return damaged


def _say(text: str) -> None:
    tell(f"pyfunc-debug: {text}")


def _print_table(columns: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    """Some rows at a time, as they come; no column becomes narrower than it was in the first."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from pyfunc_debug.analysis.tables import render

    width, color = options.terminal()
    widths: list[int | None] = [None] * len(columns)
    first = True
    while page := list(islice(rows, _TOGETHER)):
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=first)
        cells = [["-" if cell is None else str(_plain(cell)) for cell in row] for row in page]
        for column, known in zip(columns, widths):
            table.add_column(Text(column), min_width=known)
        for row in cells:
            table.add_row(*map(Text, row))
        print(render(table, width, color))
        if first and len(page) == _TOGETHER:
            longest = [max(map(len, column)) for column in zip(columns, *cells)]
            if sum(longest) + 2 * len(longest) <= width:  # else rich shares out the width, as well as it can
                widths = [*longest]
        first = False
    if first:
        print("(no rows)")


def _plain(cell: Any) -> Any:
    """As JSON has it; lists, dates and decimals are DuckDB's."""
    if isinstance(cell, bytes):
        return base64.b64encode(cell).decode()
    if isinstance(cell, Decimal):
        return float(cell)
    if isinstance(cell, (list, tuple)):
        return [_plain(one) for one in cell]
    if isinstance(cell, dict):
        return {str(name): _plain(one) for name, one in cell.items()}
    return cell if cell is None or isinstance(cell, (int, float, str)) else str(cell)
