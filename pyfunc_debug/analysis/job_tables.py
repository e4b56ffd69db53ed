"""The tables of a job, for engines of SQL: those of a recording, with whose row it is in two columns more."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.analysis.job import process_names
from pyfunc_debug.analysis.parquet import ROWS
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.checks import tables

WHOSE = ("process", "recording")
"""The columns in front of a table's own: the process's name in the job's ledger, and the path of its recording."""


@dataclass(frozen=True)
class Source:
    """A recording of the job."""

    process: str
    path: str

    @property
    def whose(self) -> tuple[str, str]:
        """Its values in the columns of WHOSE."""
        return self.process, self.path

    @property
    def size(self) -> int:
        """Bytes of its file."""
        return os.stat(self.path).st_size


def sources(paths: Sequence[str]) -> list[Source]:
    """The recordings of a job, with the names of their processes.

    Raises:
      BadRecordingError: one cannot be read.
    """
    return [Source(name, path) for name, path in zip(process_names(paths), paths, strict=True)]


def pages(reader: Reader, table: str) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a table of the schema, some at a time; NULL in columns that came after the file was made.

    Raises:
      BadRecordingError: the file is damaged.
    """
    there = {name for (name,) in reader.rows("SELECT name FROM pragma_table_info(?)", (table,))}
    if there:
        columns = (one.name if one.name in there else f"NULL AS {one.name}" for one in tables()[table])
        yield from reader.pages(f"SELECT {', '.join(columns)} FROM {table}", ROWS)
