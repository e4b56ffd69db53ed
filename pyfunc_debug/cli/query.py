"""`pyfunc-debug query`: SQL on a recording, read-only."""

from __future__ import annotations

import argparse
import base64
import re
from typing import Any

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.pfrec import schema_text

_SQL = re.compile(r"\s*(select|with|values|explain|--|/\*)\b", re.IGNORECASE)


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "query", help="SQL on a recording", description="Runs a SELECT on a recording. --schema shows the tables."
    )
    parser.add_argument("file", metavar="FILE", nargs="?")
    parser.add_argument("sql", metavar="SQL", nargs="?")
    # It may take the next word: argparse gives both positional arguments to what stands before an option.
    parser.add_argument("--json", nargs="?", const="", metavar="", help="print a JSON list of objects")
    parser.add_argument("--schema", action="store_true", help="print the documented schema and stop")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the rows."""
    if arguments.schema:
        print(schema_text().rstrip())
        return 0
    words = [word for word in (arguments.json, arguments.file, arguments.sql) if word]
    words.sort(key=lambda word: bool(_SQL.match(word)))
    if len(words) != 2:
        raise BadOptionError('write: pyfunc-debug query FILE "SELECT ..."; --schema shows the tables')
    columns, rows = Recording(words[0]).reader.query(words[1])
    if arguments.json is not None:
        options.show_json([dict(zip(columns, map(_plain, row))) for row in rows])
        return 0
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from pyfunc_debug.analysis.tables import render

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(Text(column))
    for row in rows:
        table.add_row(*(Text("-" if cell is None else str(_plain(cell))) for cell in row))
    print(render(table, *options.terminal()) if rows else "(no rows)")
    return 0


def _plain(cell: Any) -> Any:
    return base64.b64encode(cell).decode() if isinstance(cell, bytes) else cell
