"""A copy of a recording without what must not leave the house: values, sources, paths, arguments.

The copy is a new file into which rows are written one by one, so no page of it ever held what was taken out. What a
column may hold is said below; a column of text that is not named there is left out of every redacted copy.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable
from typing import Any

from pyfunc_debug.errors import BadOptionError, CannotWriteError
from pyfunc_debug.pfrec.checks import tables
from pyfunc_debug.pfrec.database import connect
from pyfunc_debug.pfrec.reader import Reader
from pyfunc_debug.pfrec.schema import APPLICATION_ID, NEW, schema_text
from pyfunc_debug.pfrec.writer import remove

KINDS = ("values", "sources", "paths", "args")
GONE = "(redacted)"

_NUMBERS_OF_VALUES = {"min", "max", "mean", "std", "nan", "inf", "zeros", "sampled", "histogram", "blob", "digest"}
_PATHS = {("function", "file"), ("node", "file"), ("line", "file"), ("print", "file"), ("source", "file")}
_FRAMES = {("stack", "frames"), ("failure", "frames")}
_FREE = {
    ("trace", "signature"): GONE, ("trace", "reason"): "[]", ("trace", "closest"): None, ("trace", "avoid"): None,
    ("trace", "error"): GONE, ("run", "error"): GONE, ("failure", "message"): GONE, ("failure", "traceback"): GONE,
    ("print", "text"): GONE, ("returned", "shown"): GONE, ("returned", "casts"): "[]",
}  # fmt: skip
"""Text that a program computes: it may show anything, so every redaction takes it out. What stands in its place."""
NAMES = {
    ("thread", "name"), ("function", "name"), ("function", "kind"), ("function", "origin"), ("node", "token"),
    ("node", "kind"), ("node", "body"), ("node", "name"), ("node", "graph"), ("node", "tout"), ("node", "paths"),
    ("node", "out_paths"), ("node", "origin"), ("trace", "name"), ("run", "kind"), ("run", "name"), ("call", "kind"),
    ("call", "runs"), ("call", "status"), ("value", "role"), ("value", "path"), ("value", "dtype"), ("value", "shape"),
    ("value", "kept"), ("static_shape", "role"), ("static_shape", "dtype"), ("static_shape", "shape"),
    ("returned", "declared"), ("returned", "dtypes"), ("blob", "encoding"), ("blob", "dtype"), ("blob", "shape"),
    ("failure", "type"), ("gil", "grade"), ("gil", "blame"), ("dropped", "kind"), ("line", "kind"), ("line", "graph"),
    ("line", "inside"), ("print", "function"), ("extra", "why"), ("summary", "kind"),
}  # fmt: skip
"""What stays: names of functions, nodes, parameters, threads and exceptions, dtypes, shapes, times."""
_META = {
    "schema", "pid", "versions", "clock", "anchors", "budget", "state", "dropped", "cost", "end_ns", "cores", "gil",
    "others", "journal", "limits", "options", "rank", "role", "troubles", "death", "folder_budget", "folder_full",
    "hash_seed",
}  # fmt: skip
"""Entries of `meta` that name nothing. `options` holds globs over names."""
_PLACES: dict[str, Any] = {
    "host": "", "cwd": "", "process": {}, "ring": None, "cells": {}, "inputs": [], "imported": [], "program": None,
}  # fmt: skip
_ANY_PATH = re.compile(
    r"""(?:\b[A-Za-z][\w+.-]*://|\b[A-Za-z]:[/\\]|(?<![\w.~-])[\w.~-]*[/\\])[^\s'"<>|,;:()\[\]{}]*"""
)
_TIMES = ("stop", "held")
"""Notices that say when a call was held: no time is right without them. All others hold text of the program's."""


def holds(meta: dict[str, Any]) -> str:
    """What a recording tells of its program, for whoever passes it on."""
    words = {
        "values": "values and texts that the program computed", "sources": "its source lines",
        "paths": "folders and the machine's name", "args": "its command line",
    }  # fmt: skip
    gone = meta.get("redacted") or ()
    there = [text for kind, text in words.items() if kind not in gone]
    if not there:
        return "holds names, types, shapes and times only"
    *first, last = there
    return f"holds {', '.join(first)} and {last}" if first else f"holds {last}"


def redact(reader: Reader, output: str, kinds: Collection[str]) -> str:
    """Writes a copy of a recording.

    Args:
      reader: The recording.
      output: The new file; an older one is replaced.
      kinds: What to leave out, of KINDS.

    Returns:
      The absolute path of the copy.

    Raises:
      BadOptionError: no such kind, or the copy would replace the recording.
      CannotWriteError: it cannot be written there.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise BadOptionError(f"redact={kind!r} is not one of {', '.join(KINDS)}")
    out = os.path.abspath(output)
    if os.path.realpath(out) == os.path.realpath(reader.path):
        raise BadOptionError(f"{output} is the recording itself: give another name with -o")
    new = out + NEW
    try:
        remove(new)
        with contextlib.closing(connect(os.fsencode(new), isolation_level=None)) as copy:
            copy.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {reader.version};\n"
                f"{schema_text()}"
            )
            _fill(copy, reader, _Redaction(reader, frozenset(kinds)))
            copy.execute("COMMIT")
        os.replace(new, out)
    except (OSError, sqlite3.Error) as error:
        with contextlib.suppress(OSError):
            remove(new)
        raise CannotWriteError(f"cannot write {out}: {error}") from error
    return out


def _fill(copy: sqlite3.Connection, reader: Reader, redaction: _Redaction) -> None:
    for table, columns in tables().items():
        names, rows = reader.stream(f"SELECT * FROM {table}") if redaction.has(table) else ([], iter(()))
        if not names:
            continue
        known = [column.name for column in columns if column.name in names]
        change = redaction.of(table, names)
        marks = ", ".join("?" * len(known))
        copy.executemany(
            f"INSERT INTO {table} ({', '.join(known)}) VALUES ({marks})",
            ([row[names.index(name)] for name in known] for row in change(rows)),
        )


class _Redaction:
    """What becomes of rows."""

    def __init__(self, reader: Reader, kinds: frozenset[str]) -> None:
        self._kinds = kinds
        self._folders: dict[str, str] = {}
        self._there = {name for (name,) in reader.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def has(self, table: str) -> bool:
        """Whether the copy has rows in this table."""
        if table not in self._there or (table == "blob" and "values" in self._kinds):
            return False
        if table == "random_state" and self._kinds:
            return False
        return not (table == "source" and "sources" in self._kinds)

    def of(self, table: str, names: list[str]) -> Callable[[Iterable[tuple[Any, ...]]], Iterable[list[Any]]]:
        """Gives a table's rows as the copy has them."""
        whole = {"meta": self._meta, "value": self._values, "notice": self._notices, "blob": self._blobs}
        if table in whole:
            return lambda rows: whole[table](names, rows)
        kinds = {column.name: column.type for column in tables()[table]}
        changes = [self._change(table, name, kinds.get(name, "TEXT")) for name in names]
        return lambda rows: (
            [cell if change is None else change(cell) for change, cell in zip(changes, row)] for row in rows
        )

    def _change(self, table: str, name: str, kind: str) -> Callable[[Any], Any] | None:
        place = (table, name)
        if place in _FREE and self._kinds:
            return lambda cell: None if cell is None else _FREE[place]
        if place in _PATHS and "paths" in self._kinds:
            return self._path
        if place in _FRAMES and self._kinds & {"paths", "sources"}:
            return self._frames
        if place == ("source", "text"):
            return (lambda cell: _ANY_PATH.sub(GONE, cell)) if "paths" in self._kinds else None
        if self._kinds and place not in {*NAMES, *_PATHS, *_FRAMES} and kind in ("TEXT", "BLOB"):
            return lambda cell: None if cell is None else GONE
        return None

    def _values(self, names: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterable[list[Any]]:
        for row in rows:
            value = dict(zip(names, row))
            if "values" in self._kinds or (self._kinds and value["dtype"] == "string"):  # a string may be a path
                shape = "" if value["shape"] is None else value["shape"]
                value.update(dict.fromkeys(_NUMBERS_OF_VALUES & value.keys()), kept="", note=GONE)
                value["text"] = f"{value['dtype']}{shape} {GONE}"
            yield [value[name] for name in names]

    def _blobs(self, names: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterable[list[Any]]:
        encoding = names.index("encoding")
        return ([*row] for row in rows if not self._kinds or row[encoding] != "strings")

    def _notices(self, names: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterable[list[Any]]:
        for row in rows:
            notice = dict(zip(names, row))
            if self._kinds:
                if notice["rule"] not in _TIMES:
                    continue
                facts = json.loads(notice["facts"])
                notice["facts"] = json.dumps({key: GONE if isinstance(one, str) else one for key, one in facts.items()})
            yield [notice[name] for name in names]

    def _path(self, path: Any) -> Any:
        """Only the last part; files of one folder stay together."""
        if not isinstance(path, str) or path.startswith("<"):
            return path
        folder, name = os.path.split(path.replace("\\", "/"))
        return f"{self._folders.setdefault(folder, f'/{len(self._folders) + 1}')}/{name}" if folder else path

    def _frames(self, text: str) -> str:
        frames = json.loads(text)
        for frame in frames:
            if "paths" in self._kinds:
                frame[0] = self._path(frame[0])
                frame[3] = _ANY_PATH.sub(GONE, frame[3])
            if "sources" in self._kinds:
                frame[3] = ""
        return json.dumps(frames)

    def _meta(self, names: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterable[list[Any]]:
        for key, value in rows:
            if not self._kinds or key in _META:
                yield [key, value]
            elif key == "argv":
                yield [key, json.dumps(self._argv(json.loads(value)))]
            elif key in _PLACES:
                yield [key, json.dumps(_PLACES[key]) if "paths" in self._kinds else value]
        if self._kinds:
            yield ["redacted", json.dumps(sorted(self._kinds))]

    def _argv(self, words: list[str]) -> list[str]:
        if "args" in self._kinds:
            words = words[:1]
        if "paths" in self._kinds:
            words = [self._path(words[0]), *(_ANY_PATH.sub(GONE, word) for word in words[1:])] if words else []
        return words
