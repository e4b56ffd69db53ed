"""One SELECT over the recordings of a job, answered by SQLite, or by DuckDB where there is much to read."""

from __future__ import annotations

import contextlib
import importlib.util
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyfunc_debug.analysis.job import each_open
from pyfunc_debug.analysis.job_duckdb import by_duckdb
from pyfunc_debug.analysis.job_tables import WHOSE, Source, pages, sources
from pyfunc_debug.errors import BadOptionError, CannotWriteError, NotInstalledError
from pyfunc_debug.pfrec.checks import tables
from pyfunc_debug.pfrec.database import connect
from pyfunc_debug.pfrec.reader import selected

ENGINES = ("sqlite", "duckdb")
LARGE_BYTES = 20_000_000
"""DuckDB answers from here on."""


def ask(
    paths: Sequence[str], sql: str, engine: str | None = None, say: Callable[[str], None] = lambda text: None
) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Runs a SELECT over several recordings. It can only read.

    Args:
      paths: The recordings.
      sql: The query, in the SQL of the engine.
      engine: One of ENGINES; None for the one that fits their size.
      say: Told which engine answers, and of how much, before it begins.

    Returns:
      Column names, and the rows as the engine finds them.

    Raises:
      BadOptionError: there is no such engine, or it does not accept the query; the latter also while rows are taken.
      BadRecordingError: one of them is damaged.
      CannotWriteError: there is no room for their tables.
      NotInstalledError: the engine was asked for, and is not installed.
    """
    if engine is not None and engine not in ENGINES:
        raise BadOptionError(f"engine={engine!r} is not one of {', '.join(ENGINES)}")
    job = sources(paths)
    size = sum(one.size for one in job)
    installed = all(importlib.util.find_spec(name) for name in ("duckdb", "pyarrow"))
    chosen = engine or ("duckdb" if size >= LARGE_BYTES and installed else "sqlite")
    if chosen == "duckdb" and not installed:
        raise NotInstalledError("DuckDB is not installed: pip install 'pyfunc-debug[fleet]'")
    of = f"{len(job)} recording{'s' * (len(job) != 1)}, {size / 1e6:,.1f} MB"
    if chosen == "duckdb":
        say(f"DuckDB answers, from {of}")
        rows = by_duckdb(job, sql)
    else:
        slow = engine is None and size >= LARGE_BYTES
        say(f"SQLite answers, from {of}{'; DuckDB is not installed (the extra fleet)' if slow else ''}")
        rows = _by_sqlite(job, sql)
    return list(next(rows)), rows


def _by_sqlite(job: Sequence[Source], sql: str) -> Iterator[tuple[Any, ...]]:
    """The names of the columns, then the rows: from copies of the tables that the query names."""
    with contextlib.closing(connect("", isolation_level=None)) as db:  # a file that goes with the connection
        for table, columns in tables().items():
            kinds = [*(f"{name} TEXT" for name in WHOSE), *(f"{one.name} {one.type}" for one in columns)]
            db.execute(f"CREATE TABLE {table} ({', '.join(kinds)})")
        try:
            _fill(db, job, _read_by(db, sql))
        except sqlite3.Error as error:
            raise CannotWriteError(f"cannot copy the tables of the recordings: {error}") from error
        yield from selected(db, sql)


def _fill(db: sqlite3.Connection, job: Sequence[Source], wanted: Sequence[str]) -> None:
    db.execute("BEGIN")
    for one, reader in zip(job, each_open([one.path for one in job]), strict=True):
        for table in wanted:
            marks = ", ".join("?" * (len(WHOSE) + len(tables()[table])))
            for page in pages(reader, table):
                db.executemany(f"INSERT INTO {table} VALUES ({marks})", ((*one.whose, *row) for row in page))
    db.execute("COMMIT")


def _read_by(db: sqlite3.Connection, sql: str) -> list[str]:
    """The tables that a query reads; of one that SQLite does not accept any, as it fails on empty ones as well."""
    named: dict[str, None] = {}

    def note(action: int, table: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and table in tables():
            named[table] = None
        return sqlite3.SQLITE_OK

    db.set_authorizer(note)
    with contextlib.suppress(sqlite3.Error, sqlite3.Warning, ValueError):
        db.execute(f"EXPLAIN {sql}").close()
    return list(named)
