"""Rows into a Parquet file, some at a time, with pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

ROWS = 50_000
"""A good number of rows for a page: they become one row group."""


def write_parquet(path: str, types: Mapping[str, str], pages: Iterable[Sequence[tuple[Any, ...]]]) -> None:
    """Writes a file.

    Args:
      path: The file.
      types: By column: integer, real, text, blob, or time (ns since 1970, UTC).
      pages: Rows.

    Raises:
      ImportError: pyarrow is not installed.
      OSError: it cannot be written there.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"integer": pa.int64(), "real": pa.float64(), "blob": pa.binary(), "time": pa.timestamp("ns", "UTC")}
    schema = pa.schema([(name, kinds.get(kind, pa.string())) for name, kind in types.items()])
    with pq.ParquetWriter(path, schema) as writer:
        for page in pages:
            columns = [pa.array(column, field.type, from_pandas=False) for column, field in zip(zip(*page), schema)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
