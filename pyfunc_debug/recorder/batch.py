"""Rows on their way into the file."""

from __future__ import annotations

from typing import Any

from pyfunc_debug.recorder.ticket import Ticket

_ROW_BYTES = 400
_LONG = frozenset(("source", "failure", "print", "trace", "stack", "returned", "notice", "meta"))
"""Tables whose texts may be long."""


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    return value


class Batch:
    """Rows waiting for one commit, by table.

    Attributes:
      count: How many rows.
      running, ended: The calls among them.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.blobs: list[tuple[bytes, str, str, str, bytes]] = []
        self.count = 0
        self.running: set[int] = set()
        self.ended: dict[int, tuple[Ticket, bool]] = {}

    def add(self, table: str, *row: Any) -> None:
        self.rows.setdefault(table, []).append(row)
        self.count += 1

    def note_call(self, ticket: Ticket, running: bool, shown: bool) -> None:
        """A call is among the rows; `shown`: the file has it already, as running."""
        if running:
            self.running.add(ticket.call)
        else:
            self.ended[ticket.call] = ticket, shown and ticket.call not in self.running

    def weight(self) -> int:
        """About how many bytes it takes."""
        size = self.count * _ROW_BYTES + sum(len(blob[-1]) for blob in self.blobs)
        for table in _LONG & self.rows.keys():
            size += sum(len(cell) for row in self.rows[table] for cell in row if isinstance(cell, str))
        return size

    def clean(self) -> None:
        """Makes every value one that SQLite accepts: lone surrogates are escaped, integers beyond 64 bits are text."""
        for table, rows in self.rows.items():
            self.rows[table] = [tuple(map(_clean, row)) for row in rows]
