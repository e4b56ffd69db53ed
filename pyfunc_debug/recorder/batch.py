"""Rows on their way into the file."""

from __future__ import annotations

from typing import Any


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    return value


class Batch:
    """Rows waiting for one commit, by table."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.blobs: list[tuple[bytes, str, str, str, bytes]] = []

    def add(self, table: str, *row: Any) -> None:
        self.rows.setdefault(table, []).append(row)

    def clean(self) -> None:
        """Makes every value one that SQLite accepts: lone surrogates are escaped, integers beyond 64 bits are text."""
        for table, rows in self.rows.items():
            self.rows[table] = [tuple(map(_clean, row)) for row in rows]
