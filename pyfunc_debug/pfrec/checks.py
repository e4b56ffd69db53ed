"""What the tables of a recording must hold, checked before they are first read: who reads need not doubt it.

Anybody may have made or changed the file. SQLite takes any type in any column, and a view for a table: so the tables
are compared with the schema, and their rows with its types, enumerations, lists and references. Nothing is repaired.
"""

from __future__ import annotations

import functools
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

from pyfunc_debug.pfrec.database import connect
from pyfunc_debug.pfrec.schema import schema_text

NEWER = {"static_shape", "returned"}
"""Tables that files of version 1 need not have."""
LATE = {"extra", "random_state", "summary"}
"""Tables that came later, without a new version: files without them are read as before."""
_NEWER_COLUMNS = {("value", "digest")}
_ENUMERATIONS = {
    ("function", "kind"): "tf.function tf.data graph eager",
    ("function", "origin"): "user tensorflow",
    ("node", "kind"): "py_function numpy_function py_func py_func_stateless",
    ("node", "origin"): "user tensorflow",
    ("run", "kind"): "forward backward",
    ("call", "kind"): "forward gradient",
    ("call", "status"): "ok error running",
    ("value", "role"): "input output",
    ("static_shape", "role"): "input output",
    ("blob", "encoding"): "raw strings",
    ("gil", "grade"): "native op-start bound none",
    ("dropped", "kind"): "forward gradient",
    ("summary", "kind"): "forward gradient",
}
_NUMBERS = {("call", "runs"), ("value", "shape")}
"""Lists of numbers in tables that may be long: SQLite looks at them."""
_SHORT = re.compile(r"\[(?:[0-9]{1,18}(?:, ?[0-9]{1,18})*)?\]")
_FIRST, _FEW = 1000, 32
"""How many rows are looked at for what is usual, and how many lists of them are kept."""
_LONGEST = {"histogram": 1000, "blame": 100_000}
"""Lists of which SQLite looks at the brackets alone: most differ, and each number would take longer than all else."""
_DIGESTS = {("value", "blob"), ("value", "digest")}
"""Blobs that are short. The bytes of others are not read."""
_LARGEST = 1 << 60
"""Numbers are smaller: times in ns for 36 years, and sums of a few of them are still numbers of SQLite's."""
_ADDED = 7
"""The sum of this many numbers fits into an integer of 64 bits."""

Spec = Any
"""What JSON must be: a type, a tuple of what it may be, [what each item is], {key: what it is}, or {str: of each}."""
_FRAMES = [[(str, int)]]
_REQUIRED: dict[tuple[str, str], Spec] = {
    ("node", "tout"): [str],
    ("node", "paths"): [str],
    ("node", "out_paths"): [str],
    ("trace", "reason"): [str],
    ("static_shape", "shape"): [(int, NoneType)],
    ("returned", "declared"): [(str, NoneType)],
    ("returned", "dtypes"): [(str, NoneType)],
    ("returned", "casts"): [dict],
    ("notice", "facts"): dict,
    ("random_state", "facts"): {"python": list, "numpy": list},
    ("line", "graph"): list,
    ("line", "inside"): list,
}
_META: dict[str, Spec] = {
    "state": str, "pid": (int, NoneType), "host": str, "argv": [str], "cwd": str, "versions": {str: str},
    "clock": {"monotonic_ns": int}, "options": dict, "cores": (int, NoneType), "others": (int, float, NoneType),
    "budget": (int, str, NoneType), "dropped": ({str: (int, {str: {str: int}})}, NoneType), "troubles": {str: int},
    "stopped": (str, NoneType), "limits": (str, NoneType), "end_ns": (int, NoneType), "ended": (dict, NoneType),
    "cost": ({str: (int, float)}, NoneType), "process": dict, "ring": (str, NoneType), "journal": str,
    "imported": [str], "program": (str, NoneType), "folder_budget": (int, NoneType), "folder_full": bool,
    "gil": (dict, NoneType), "inputs": (list, NoneType),
    "role": str, "rank": (int, NoneType), "anchors": [list], "hash_seed": str,
    "death": {"sign_ns": int, "running": [int], "recovered": int, "missing": int},
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column of the schema."""

    name: str
    type: str
    required: bool
    refers: str | None


class DamagedError(Exception):
    """What is wrong, in words."""


@functools.cache
def tables() -> dict[str, tuple[Column, ...]]:
    """The schema: columns by table."""
    db = connect(":memory:")
    try:
        db.executescript(schema_text())
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {}
        for table in names:
            refers = {row[3]: row[2] for row in db.execute(f"PRAGMA foreign_key_list({table})")}
            found[table] = tuple(
                Column(name, kind, bool(required or key), refers.get(name))
                for _, name, kind, required, _, key in db.execute(f"PRAGMA table_info({table})")
            )
        return found
    finally:
        db.close()


@functools.lru_cache(maxsize=512)
def tables_in(sql: str) -> frozenset[str]:
    """The tables of a recording that a query reads from."""
    return frozenset(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", sql, re.IGNORECASE)) & tables().keys()


def check_structure(db: sqlite3.Connection, version: int) -> None:
    """Compares the tables with the schema.

    Raises:
      DamagedError: something else stands in place of a table or a column.
      sqlite3.Error: the file is damaged.
    """
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master"):
        if kind in ("view", "trigger") or str(sql).upper().startswith("CREATE VIRTUAL"):
            raise DamagedError(
                f"it holds the {'virtual table' if kind == 'table' else kind} {name}, which no recording has"
            )
    for table, columns in tables().items():
        there = {name: (kind, hidden) for _, name, kind, *_, hidden in db.execute(f"PRAGMA table_xinfo({table})")}
        if not there and ((version < 2 and table in NEWER) or table in LATE):
            continue
        for column in columns:
            found = there.get(column.name)
            if found is None and version < 2 and (table, column.name) in _NEWER_COLUMNS:
                continue
            if found != (column.type, 0):
                raise DamagedError(f"its table {table} has no column {column.name} as a recording has")


def check_rows(db: sqlite3.Connection, table: str, version: int) -> None:
    """Compares the rows of a table with the schema.

    Raises:
      DamagedError: a row holds what no recording does.
      sqlite3.Error: the file is damaged.
    """
    columns = [one for one in tables()[table] if version >= 2 or (table, one.name) not in _NEWER_COLUMNS]
    if version < 2 and table in NEWER:
        return
    usual = {name: _usual(db, table, name) for where, name in _NUMBERS if where == table}
    problems = [f"NOT ({test})" for test in _quick_tests(table, columns, usual)]
    if db.execute(f"SELECT 1 FROM {table} WHERE {' OR '.join(problems)} LIMIT 1").fetchone():
        for column in columns:  # which one it is
            for test in _tests(table, column):
                if db.execute(f"SELECT 1 FROM {table} WHERE NOT ({test}) LIMIT 1").fetchone():
                    raise DamagedError(f"{_column(table, column)} holds what no recording has")
    for column in columns:
        _check_json(db, table, column)


def _column(table: str, column: Column) -> str:
    return f"the column {column.name} of its table {table}"


def _usual(db: sqlite3.Connection, table: str, name: str) -> list[str]:
    """Lists of numbers that the first rows hold, and that need no further look: most others are the same."""
    rows = db.execute(f"SELECT DISTINCT {name} FROM (SELECT {name} FROM {table} LIMIT {_FIRST})").fetchmany(_FEW)
    return [text for (text,) in rows if isinstance(text, str) and _SHORT.fullmatch(text)]


def _quick_tests(table: str, columns: Sequence[Column], usual: dict[str, list[str]]) -> Iterator[str]:
    """The same as all `_tests` of these columns, with few calls of SQLite's functions: in half of the time.

    SQLite orders numbers before text and text before blobs, and a `+` keeps it from converting what it compares. A sum
    is an integer where its parts are.
    """
    integers = [f"coalesce(+{column.name}, 0)" for column in columns if column.type == "INTEGER"]
    for first in range(0, len(integers), _ADDED):
        yield f"typeof({' + '.join(integers[first : first + _ADDED])}) = 'integer'"
    for column in columns:
        name, absent = column.name, 0 if column.required else 1
        tests = list(_more_tests(table, column))
        if column.type == "INTEGER":
            yield f"coalesce(+{name} BETWEEN {-_LARGEST} AND {_LARGEST}, {absent})"
        elif column.type == "REAL":
            yield f"coalesce(+{name} < '', {absent})"
        elif column.type == "BLOB":
            yield f"coalesce(+{name} >= x'', {absent})" if (table, name) in _DIGESTS else _typed(column)
        elif column.type == "TEXT" and ((table, name) in _ENUMERATIONS or (table, name) == ("value", "kept")):
            allowed = _ENUMERATIONS.get((table, name), "").split() or ["", "sample", "full"]
            one_of = " OR ".join(f"+{name} = '{word}'" for word in allowed)  # mostly the first: no search for it
            tests = [f"coalesce({one_of}, {absent})"]  # one of the words: then it is a text
        elif column.type == "TEXT" and name in _LONGEST:  # what begins so is a text
            brackets = f"+{name} >= '[' AND +{name} < '\\' AND {name} GLOB '*]' AND json_valid({name})"
            brackets += f" AND length({name}) < {_LONGEST[name]}"
            tests = [f"coalesce({brackets}, {absent})"]
        elif column.type == "TEXT":
            tests.insert(0, f"coalesce(+{name} >= '' AND +{name} < x'', {absent})")
        if usual.get(name):
            known = ", ".join(f"'{text}'" for text in usual[name])
            tests = [f"({name} IN ({known}) OR {' AND '.join(tests)})"]
        yield from tests


def _tests(table: str, column: Column) -> Iterator[str]:
    """What holds for a column, as SQL that is never NULL."""
    yield _typed(column)
    if column.type == "INTEGER":
        yield f"coalesce({column.name} BETWEEN {-_LARGEST} AND {_LARGEST}, 1)"
    yield from _more_tests(table, column)


def _typed(column: Column) -> str:
    kinds = {"INTEGER": "'integer'", "REAL": "'real'", "TEXT": "'text'", "BLOB": "'blob'"}[column.type]
    return f"typeof({column.name}) = {kinds}" if column.required else f"typeof({column.name}) IN ({kinds}, 'null')"


def _more_tests(table: str, column: Column) -> Iterator[str]:
    name = column.name
    allowed = _ENUMERATIONS.get((table, name))
    if allowed is not None:
        yield f"coalesce({name} IN ({', '.join(repr(word) for word in allowed.split())}), 1)"
    if (table, name) == ("line", "kind"):
        yield f"{name} IN ('line', 'lambda', 'graph', 'graph lambda')"
    if (table, name) == ("value", "kept"):
        yield f"{name} IN ('', 'sample', 'full')"
    if (table, name) in _NUMBERS:
        # Numbers in brackets, none of them of more than 18 digits, and no list in it.
        digits = "[0-9]" * 19
        yield (
            f"({name} IS NULL OR json_valid({name}) AND {name} GLOB '[[]*]' AND {name} NOT GLOB '*[^][0-9, -]*' "
            f"AND {name} NOT GLOB '?*[[]*' AND (length({name}) < 19 OR {name} NOT GLOB '*{digits}*'))"
        )
    if name in _LONGEST:
        yield f"({name} IS NULL OR json_valid({name}) AND {name} GLOB '[[]*]' AND length({name}) < {_LONGEST[name]})"
    if column.refers is not None and (table, name) != ("trace", "function"):
        yield f"({name} IS NULL OR {name} IN (SELECT id FROM {column.refers}))"
    if name == "line" or name.startswith("line_"):
        yield f"coalesce({name} BETWEEN 0 AND 100000000, 1)"


def _check_json(db: sqlite3.Connection, table: str, column: Column) -> None:
    name = column.name
    if table == "meta":
        if name == "value":
            for key, text in db.execute("SELECT key, value FROM meta"):
                _must_fit(text, _META.get(key, object), f"its meta entry {key}")
        return
    spec = _FRAMES if name == "frames" else _REQUIRED.get((table, name))
    if spec is None:
        return
    for (text,) in db.execute(f"SELECT DISTINCT {name} FROM {table} WHERE {name} IS NOT NULL"):
        value = _must_fit(text, spec, _column(table, column))
        if spec is _FRAMES and not all(len(one) == 4 and _is_frame(one) for one in value):
            raise DamagedError(f"{_column(table, column)} holds what no recording has")
    if table == "notice":
        _check_stops(db)


def _is_frame(frame: list[Any]) -> bool:
    return [type(part) for part in frame] == [str, int, str, str] and 0 <= frame[1] < 100_000_000


_Time = (int, NoneType)
_STOP = {"start_ns": int}


def _check_stops(db: sqlite3.Connection) -> None:
    for (text,) in db.execute("SELECT facts FROM notice WHERE rule IN ('stop', 'held')"):
        facts = json.loads(text)
        spans = facts.get("spans") or []
        good = fits(facts, _STOP) and fits(spans, [[_Time]]) and all(len(span) == 3 for span in spans)
        times = fits([facts.get("end_ns"), facts.get("held_ns", 0)], [_Time]) and fits(facts.get("why", ""), str)
        if not good or not times or any(span[0] is None for span in spans):
            raise DamagedError("a stop in its table notice holds what no recording has")


def _must_fit(text: Any, spec: Spec, what: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise DamagedError(f"{what} holds what is not JSON") from error
    if not fits(value, spec):
        raise DamagedError(f"{what} holds what no recording has")
    return value


def fits(value: Any, spec: Spec) -> bool:
    """Whether JSON is what a `Spec` says. Numbers are those of `_LARGEST`."""
    if isinstance(spec, tuple):
        return any(fits(value, one) for one in spec)
    if isinstance(spec, list):
        return isinstance(value, list) and all(fits(item, spec[0]) for item in value)
    if isinstance(spec, dict):
        if not isinstance(value, dict):
            return False
        if str in spec:
            return all(fits(item, spec[str]) for item in value.values())
        return all(key in value and fits(value[key], one) for key, one in spec.items())
    if spec is int:
        return isinstance(value, int) and -_LARGEST < value < _LARGEST
    return isinstance(value, spec)


def words(table: str, column: str) -> frozenset[str]:
    """What an enumeration's column may hold."""
    return frozenset(_ENUMERATIONS[table, column].split())


def is_number(value: Any) -> bool:
    """Whether it is what a column of integers may hold."""
    return isinstance(value, int) and -_LARGEST <= value <= _LARGEST


def guarded(do: Callable[[], Any]) -> Any:
    """What `do` gives; what a damaged list or text makes of it is `DamagedError`.

    Raises:
      DamagedError: that happened.
    """
    try:
        return do()
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, MemoryError, RecursionError) as error:
        raise DamagedError(f"{type(error).__name__}: {error}"[:200]) from error
