"""Recordings without TensorFlow: rows as the recorder writes them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from pyfunc_debug.pfrec import Writer

FILE = "/home/u/train.py"


def written(path: Path, source: str = "", meta: dict[str, Any] | None = None, **tables: list[dict[str, Any]]) -> str:
    """A finished recording with these rows, and one source file, `FILE`."""
    writer = Writer(str(path), True)
    writer.start({"pid": 1, **(meta or {}), "state": "complete"})
    writer.close()
    tables.setdefault("thread", THREADS)
    tables["source"] = [{"file": FILE, "text": source}]
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        for table, rows in tables.items():
            for row in rows:
                marks = ", ".join("?" * len(row))
                file.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    return str(path)


def node(id: int = 1, body: str = "bad", line: int | None = 1, **columns: Any) -> dict[str, Any]:
    """A row of the table node: a py_function of one input `x`."""
    return {
        "id": id, "token": f"pyfunc_{id}", "kind": "py_function", "body": body, "file": FILE, "line": line,
        "name": f"op{id}", "graph": None, "function": None, "stack": None, "tout": json.dumps(["float32"]),
        "paths": json.dumps(["x"]), "out_paths": json.dumps(["out"]), "origin": "user", **columns,
    }  # fmt: skip


def call(id: int, node: int = 1, **columns: Any) -> dict[str, Any]:
    """A row of the table call: one millisecond, one call after the other."""
    return {
        "id": id, "node": node, "kind": "forward", "thread": 1, "start_ns": id * 1_000_000,
        "end_ns": (id + 1) * 1_000_000, "cpu_ns": 1_000_000, "status": "ok", **columns,
    }  # fmt: skip


THREADS = [{"id": 1, "name": "MainThread", "native_id": 1}]
