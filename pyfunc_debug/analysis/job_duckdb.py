"""DuckDB behind a SELECT over many recordings.

It reads Parquet files, one a table of a recording. They are written when a query names the table; those of completed
recordings stay in the user's cache for the next one. The query itself can read these files and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyfunc_debug.analysis.footer import is_interrupted
from pyfunc_debug.analysis.job import each_open
from pyfunc_debug.analysis.job_tables import WHOSE, Source, pages
from pyfunc_debug.analysis.parquet import write_parquet
from pyfunc_debug.errors import BadOptionError, CannotWriteError
from pyfunc_debug.pfrec import Reader, schema_text
from pyfunc_debug.pfrec.checks import tables
from pyfunc_debug.pfrec.reader import bad_query
from pyfunc_debug.places import one_line
from pyfunc_debug.program.cache import cache_folder

_MEMORY = "1GB"
_ROWS = 1000
_KEPT_S = 7 * 86_400
"""How long tables stay that no query names."""
_FORMAT = 1
_TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "TEXT": "VARCHAR", "BLOB": "BLOB"}
_AS_SQLITE = ("integer_division = true", "default_null_order = 'sqlite'")
"""What gives another answer than SQLite without an error."""


def by_duckdb(job: Sequence[Source], sql: str) -> Iterator[tuple[Any, ...]]:
    """The names of the columns, then the rows.

    Raises:
      BadOptionError: DuckDB does not accept the query, or it is not a SELECT; also while rows are taken.
      BadRecordingError: a recording is damaged.
      CannotWriteError: there is no room for the tables.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="pyfunc_debug-") as folder, duckdb.connect() as db:
        try:
            with _told():
                wanted = _read_by(db, sql)
            files = _files(job, wanted, folder)
            _lend(db, job, files, folder)
            with _told():
                yield from _rows(db, sql)
        finally:
            db.close()  # before its folder goes


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Errors of DuckDB as ours."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise bad_query(one_line(str(error).partition("\n")[0])) from error


def _read_by(db: Any, sql: str) -> list[str]:
    """The tables of a recording that a query reads; it is asked of empty ones."""
    import duckdb

    if [one.type for one in duckdb.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
        raise BadOptionError("bad query: a query can only read (one SELECT)")
    db.execute("SET python_enable_replacements = false")  # our own variables are not tables
    for table, columns in tables().items():
        kinds = [*(f"{name} VARCHAR" for name in WHOSE), *(f'"{one.name}" {_TYPES[one.type]}' for one in columns)]
        db.execute(f'CREATE TABLE "{table}" ({", ".join(kinds)})')
    named = {name.lower() for name in db.get_table_names(sql)}
    return [table for table in tables() if table in named]


def _lend(db: Any, job: Sequence[Source], files: dict[str, list[str]], folder: str) -> None:
    """Puts the files in the place of empty tables, and everything else out of reach."""
    for setting in (*_AS_SQLITE, f"memory_limit = '{_MEMORY}'"):
        db.execute(f"SET {setting}")
    db.execute("SET temp_directory = ?", [folder])
    for table, paths in files.items():
        db.execute(f'DROP TABLE "{table}"')
        db.execute(f'CREATE TABLE "_of_{table}" (filename VARCHAR, {", ".join(f"{name} VARCHAR" for name in WHOSE)})')
        db.executemany(f'INSERT INTO "_of_{table}" VALUES (?, ?, ?)', [
            (path, *one.whose) for path, one in zip(paths, job, strict=True)
        ])  # fmt: skip
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        db.execute(
            f'CREATE VIEW "{table}" AS SELECT {", ".join(WHOSE)}, r.* EXCLUDE (filename) FROM '
            f'read_parquet([{listed}], filename = true) r JOIN "_of_{table}" USING (filename)'
        )
    db.execute("SET allowed_paths = ?", [sorted({path for paths in files.values() for path in paths})])
    for name in ("enable_external_access", "autoinstall_known_extensions", "autoload_known_extensions"):
        db.execute(f"SET {name} = false")
    db.execute("SET lock_configuration = true")


def _rows(db: Any, sql: str) -> Iterator[tuple[Any, ...]]:
    """On a thread of its own: there Ctrl-C does not reach DuckDB, and from here it can be interrupted.

    Also between two pages: DuckDB computes the next ones meanwhile, and closing would wait for them.
    """
    with ThreadPoolExecutor(1) as worker:
        try:
            found = worker.submit(db.execute, sql).result()
            yield tuple(column[0] for column in found.description)
            while page := worker.submit(found.fetchmany, _ROWS).result():
                yield from page
        except BaseException:
            db.interrupt()
            raise


def _files(job: Sequence[Source], wanted: Sequence[str], folder: str) -> dict[str, list[str]]:
    """A Parquet file for each of these tables of each recording; the missing ones are written."""
    kept = _kept()
    files: dict[str, list[str]] = {table: [] for table in wanted}
    try:
        for number, reader in enumerate(each_open([one.path for one in job])):
            name = _name(reader) if kept is not None else None
            for table in wanted:
                path = os.path.join(folder, f"{number}-{table}") if name is None else f"{kept}/{name}-{table}.parquet"
                try:
                    os.utime(path)
                except FileNotFoundError:
                    types = {column.name: column.type.lower() for column in tables()[table]}
                    write_parquet(part := os.path.join(folder, "part"), types, pages(reader, table))
                    shutil.move(part, path)
                files[table].append(path)
    except OSError as error:
        raise CannotWriteError(f"cannot write the tables that DuckDB reads: {error}") from error
    return files


def _kept() -> str | None:
    """The folder for tables that stay, without those that nobody has asked for lately; None where there can be none."""
    folder = cache_folder() / "tables"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for entry in os.scandir(folder):
            if entry.stat().st_mtime < time.time() - _KEPT_S:
                os.unlink(entry)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


def _name(reader: Reader) -> str | None:
    """What tells a completed recording from every other, and from itself after a change; None for one that may grow."""
    meta = reader.meta
    grows = meta.get("state") == "recording" and not is_interrupted(reader.path, meta)
    if grows or os.path.exists(reader.path + "-wal"):
        return None
    facts = os.stat(reader.path)
    told = repr((os.path.realpath(reader.path), facts.st_ino, facts.st_size, facts.st_mtime_ns, schema_text(), _FORMAT))
    return hashlib.blake2b(told.encode(errors="surrogateescape"), digest_size=16).hexdigest()
