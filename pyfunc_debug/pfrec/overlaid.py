"""A recording of which some tables are read with other rows: whoever asks with SQL need not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyfunc_debug.pfrec.reader import Connection, Reader

Rows = Sequence[tuple[Any, ...]]


class Overlaid(Reader):
    """The same recording, with other rows in some of its tables. They are in memory: the file stays as it is.

    Args:
      reader: The recording; it is not to be closed before this one.
      tables: All rows of these tables, by the table's name.
    """

    def __init__(self, reader: Reader, tables: Mapping[str, Rows]) -> None:
        self._take_over(reader)
        self._under, self._tables = reader, tables

    def _open(self) -> Connection:
        connection = super()._open()
        for table, rows in self._tables.items():
            (made,) = connection.execute("SELECT sql FROM main.sqlite_master WHERE name = ?", (table,)).fetchone()
            connection.execute(made.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))  # is found before the file's
            if rows:
                connection.executemany(f"INSERT INTO temp.{table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        return connection
