"""Tables for other programs: the recording's own, and of calls everything that one asks for in one row."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pyfunc_debug.analysis.source import extent
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.stopped import HELD_SQL

TABLES = {
    "calls": "call", "values": "value", "nodes": "node", "functions": "function", "traces": "trace", "runs": "run",
    "failures": "failure", "threads": "thread", "gil": "gil",
}  # fmt: skip
"""The names that users give, and the tables of the file."""
_LEFT_OUT = ("blob", "digest", "histogram")


def _of_values(what: str, role: str) -> str:
    return f"(SELECT {what} FROM value v WHERE v.call = c.id AND v.role = '{role}')"


def _digest(role: str) -> str:
    """Equal for equal values of that role, all of them; NULL where one was not read whole."""
    one = "v.dtype || ' ' || coalesce(v.shape, '') || ' ' || hex(v.digest)"
    return _of_values(f"CASE WHEN count(*) = count(v.digest) THEN group_concat({one}, '; ') END", role)


_ADDED = {
    "body": ("text", "n.body"),
    "function_name": ("text", "f.name"),
    "thread_name": ("text", "t.name"),
    "time": ("time", "c.start_ns + {offset}"),
    "ms": ("real", "(c.end_ns - c.start_ns - coalesce(held.ns, 0)) / 1e6"),
    "wait_ms": ("real", "g.wait_ns / 1e6"),
    "gil_grade": ("text", "g.grade"),
    "failure_type": ("text", "x.type"),
    "message": ("text", "x.message"),
    "inputs": ("text", _of_values("group_concat(v.path || ' ' || v.text, '; ')", "input")),
    "outputs": ("text", _of_values("group_concat(v.path || ' ' || v.text, '; ')", "output")),
    "nan": ("integer", _of_values("sum(v.nan)", "output")),
    "inf": ("integer", _of_values("sum(v.inf)", "output")),
    "input_digest": ("text", _digest("input")),
    "output_digest": ("text", _digest("output")),
    "code": ("text", """json_extract('{codes}', '$."' || c.node || '"')"""),
}
"""What a row of `calls` has besides the columns of the file. `ms` is without time at breakpoints."""


def flat_query(reader: Reader, table: str) -> tuple[str, dict[str, str]]:
    """The SQL of a table, and the types of its columns: integer, real, text, blob, or time (ns since 1970, UTC).

    Raises:
      BadOptionError: no such table.
    """
    if table not in TABLES:
        raise BadOptionError(f"there is no table {table!r}: choose one of {', '.join(TABLES)}")
    own: list[tuple[Any, ...]] = reader.rows("SELECT name, lower(type) FROM pragma_table_info(?)", (TABLES[table],))
    types = {name: kind for name, kind in own if name not in _LEFT_OUT}
    if table != "calls":
        return f"SELECT {', '.join(types)} FROM {TABLES[table]}", types
    clock = reader.meta["clock"]
    offset = int(clock["wall_ns"]) - int(clock["monotonic_ns"])
    columns = [f"c.{name}" for name in types]
    filled = {"{offset}": str(offset), "{codes}": json.dumps(_codes(reader))}
    for name, (_, sql) in _ADDED.items():
        for mark, text in filled.items():
            sql = sql.replace(mark, text)
        columns.append(f"{sql} AS {name}")
    joins = (
        "JOIN node n ON n.id = c.node LEFT JOIN function f ON f.id = n.function LEFT JOIN thread t ON t.id = c.thread "
        "LEFT JOIN failure x ON x.id = c.failure LEFT JOIN gil g ON g.call = c.id "
        f"LEFT JOIN {HELD_SQL} held ON held.call = c.id"
    )
    text = f"SELECT {', '.join(columns)} FROM call c {joins} ORDER BY c.id"
    return text, {**types, **{name: kind for name, (kind, _) in _ADDED.items()}}


def _codes(reader: Reader) -> dict[str, str]:
    """By number of a node, a digest of its body's text: not for text that is not kept."""
    texts: dict[str, str] = dict(reader.rows("SELECT file, text FROM source"))
    found = {}
    for node, file, line in reader.rows("SELECT id, file, line FROM node WHERE line IS NOT NULL"):
        if file in texts:
            first, last = extent(texts[file], line)
            lines = texts[file].splitlines()[first - 1 : last]
            found[str(node)] = hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()
    return found
