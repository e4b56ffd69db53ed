"""Writing a .pfrec file: one connection, one thread, rows in batches, a commit a batch.

The file is made under another name and has its own when all tables are in it. It is in WAL mode while it is written:
others can read it, and it is whole after a SIGKILL. `close` folds the log back, so that there is one file to mail.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import sqlite3
import stat
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.errors import BadOptionError, BadRecordingError, CannotWriteError, RecordingBusyError
from pyfunc_debug.pfrec.database import connect
from pyfunc_debug.pfrec.losses import Loss
from pyfunc_debug.pfrec.processes import writer_lives
from pyfunc_debug.pfrec.ring import SUFFIX
from pyfunc_debug.pfrec.room import Place, no_room
from pyfunc_debug.pfrec.schema import APPLICATION_ID, NEW, SCHEMA_VERSION, schema_text

Row = Sequence[Any]
_TOGETHER = 32
"""Rows that go into one statement. Python gives up the GIL for each statement, and taking it back is what costs."""
_OF_CALLS = {"call", "value", "returned", "run", "gil"}
"""Tables of which many rows come at once, again and again."""
_DIGESTS = 100_000
_LOG_BYTES = 4 << 20
"""The log is folded into the file when it has this size, or less if that is asked for."""
_BUSY_S = 1.0
"""How long SQLite waits for another process's lock by itself; it waits with the GIL free, but nothing else is done."""


class Writer:
    """An open recording file. Use it from one thread only.

    Args:
      path: Where to write.
      overwrite: Whether an older recording of that name may be replaced.

    Raises:
      CannotWriteError: the folder cannot be made or written to, or the path is a folder.
      BadOptionError: a file is there already.
      RecordingBusyError: another process is writing this recording.

    Attributes:
      path: Where the file is, as far as `follow` knows.
    """

    def __init__(self, path: str, overwrite: bool = False) -> None:
        self.path = self._opened = os.path.abspath(path)
        prepare(self.path, overwrite)
        self._digests: set[bytes] = set()
        self._new_digests: list[bytes] = []
        self._measured = 0, 0
        self._left = False

    def start(self, meta: dict[str, Any], log_bytes: int = _LOG_BYTES) -> None:
        """Makes the tables and the first entries of `meta`: all in one transaction, so that a file has all or nothing.

        Args:
          meta: The entries.
          log_bytes: Where the log is folded into the file, if no reader is in the way.

        Raises:
          CannotWriteError: nothing can be written there.
        """
        new = self.path + NEW
        try:
            remove(new)
            self._connect(new)
            self._cursor.executescript(
                "PRAGMA journal_mode = MEMORY;"  # a kill leaves no journal: nobody needs this file then
                f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};\n"
                f"{schema_text()}"
            )
            self.set_meta(meta)
            self._cursor.execute("COMMIT")
            self._disconnect()
            _take_name(new, self.path)
            # After that, so that what marks the file as a recording is in the file itself and not in its log.
            self._log_bytes = min(log_bytes, _LOG_BYTES)
            self._open()
            self.set_meta({"journal": self.journal})
        except (sqlite3.Error, OSError) as error:
            self._disconnect()
            with contextlib.suppress(OSError):
                remove(new)
            raise CannotWriteError(f"cannot write the recording {self.path}: {error}") from error

    def _open(self) -> None:
        self._connect(self.path)
        self.journal = str(self._cursor.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        self._cursor.execute("PRAGMA synchronous = NORMAL")
        self._cursor.execute(f"PRAGMA wal_autocheckpoint = {max(self._log_bytes // self._page, 8)}")
        self._cursor.execute(f"PRAGMA journal_size_limit = {self._log_bytes}")
        self._prepare_statements()
        self._place = Place.of(self.path)
        self._opened = self.path

    def _connect(self, path: str) -> None:
        self._db = connect(os.fsencode(path), timeout=_BUSY_S, isolation_level=None)
        # One cursor for all: a connection keeps weak references to its last 200 cursors, dead ones too.
        self._cursor = self._db.cursor()
        self._page = int(self._cursor.execute("PRAGMA page_size").fetchone()[0])

    def _disconnect(self) -> None:
        if hasattr(self, "_cursor"):
            self._cursor.close()  # first: the file stays open for as long as a cursor has a statement
            self._db.close()

    def _prepare_statements(self) -> None:
        """Prepares all that the connection keeps: later the process has no object more when a table is first used."""
        tables = self._cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            columns = len(self._cursor.execute(f"PRAGMA table_info({table})").fetchall())
            for rows in (1, _TOGETHER) if table in _OF_CALLS else (1,):
                self._cursor.executemany(_insert(table, columns, rows), ())

    def begin(self) -> None:
        """Starts a batch."""
        self._cursor.execute("BEGIN")

    def commit(self) -> None:
        """Ends a batch: what it wrote can be read by others and survives the process.

        Raises:
          sqlite3.Error: the disk is full, for example.
        """
        self._cursor.execute("COMMIT")
        self._new_digests.clear()

    def rollback(self) -> None:
        """Forgets the batch."""
        self._digests.difference_update(self._new_digests)
        self._new_digests.clear()
        if self._db.in_transaction:
            self._cursor.execute("ROLLBACK")

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Inserts whole rows, or replaces those with the same key."""
        if not rows:
            return
        columns = len(rows[0])
        whole = len(rows) - len(rows) % _TOGETHER
        for start in range(0, whole, _TOGETHER):
            several = rows[start : start + _TOGETHER]
            self._cursor.execute(_insert(table, columns, _TOGETHER), [value for row in several for value in row])
        self._cursor.executemany(_insert(table, columns, 1), rows[whole:])

    def clear(self, table: str) -> None:
        """Deletes all rows of a table."""
        self._cursor.execute(f"DELETE FROM {table}")

    def stored(self, digest: bytes) -> bool:
        """Whether contents are known to be in the file."""
        return digest in self._digests

    def add_blob(self, digest: bytes, encoding: str, dtype: str, shape: str, data: bytes) -> int:
        """Stores contents once.

        Returns:
          How many bytes were added: 0 if the same contents were stored before.
        """
        if digest in self._digests:
            return 0
        if len(self._digests) > _DIGESTS:
            self._digests.clear()  # no more than a hint: the table's key decides
        self._digests.add(digest)
        self._new_digests.append(digest)
        self._cursor.execute(
            "INSERT OR IGNORE INTO blob VALUES (?, ?, ?, ?, ?)", (digest, encoding, dtype, shape, data)
        )
        return len(data)

    def set_meta(self, values: dict[str, Any]) -> None:
        """Sets entries of `meta`; values become JSON."""
        self.add("meta", [(key, json.dumps(value)) for key, value in values.items()])

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(self._cursor.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def measure(self) -> tuple[int, int]:
        """Bytes of the database when its log is folded into it, and of the log beside it."""
        size = int(self._cursor.execute("PRAGMA page_count").fetchone()[0]) * self._page
        try:
            log = os.stat(self.path + "-wal").st_size
        except OSError:
            log = 0
        self._measured = size, log
        return self._measured

    def no_room(self, more: int) -> Loss | None:
        """Why there is no room for a batch of this many bytes, or None; to make some, the log is folded."""
        folder = os.path.dirname(self.path)
        if no_room(folder, *self._measured, more) is None:
            return None
        self.fold()
        return no_room(folder, *self.measure(), more)

    def fold(self) -> bool:
        """Puts the log into the file and empties it; whether that worked: a reader or a full disk may be in the way."""
        try:
            self._cursor.execute("PRAGMA busy_timeout = 0")
            return not self._cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error:
            return False
        finally:
            self._cursor.execute(f"PRAGMA busy_timeout = {int(_BUSY_S * 1000)}")

    def follow(self) -> str | None:
        """Goes on in the file where it is now.

        Returns:
          Where that is; None if the file was deleted.
        """
        now = self._place.now(self.path)
        if now is None:
            return None
        if now != self.path:
            self._bring(now)
            self.path = now
        if self._opened != now and self.fold() and self._leave():  # else a reader is in the way: later
            self._open()
        return now

    def _bring(self, path: str) -> None:
        """Gives the log and its index the file's new name: without them it is half a recording to whoever reads it."""
        if not os.path.lexists(self.path):  # else they are another's, or went with it
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.replace(self.path + suffix, path + suffix)

    def _leave(self) -> bool:
        """Ends the connection that knows the file by an older name; whether that worked."""
        if os.path.lexists(self._opened):
            self.let_go()
            self._left = True
            return True
        if not self._without_log():
            return False
        self._disconnect()
        return True

    def _without_log(self) -> bool:
        try:
            return str(self._cursor.execute("PRAGMA journal_mode = DELETE").fetchone()[0]) == "delete"
        except sqlite3.Error as error:
            # SQLITE_READONLY_DBMOVED: there is no log any more, but that cannot be written into a file of another name.
            return "readonly" in str(error)

    def close(self) -> None:
        """Folds the log into the file and closes it. The file of a path that is another's by now is only let go of."""
        try:
            self.rollback()
            if self.follow() is None:
                self.let_go()
                if not os.path.lexists(self.path):
                    remove(self.path)  # its log, which nobody can use
                return
            self.fold()  # a reader or a full disk may be in the way: the log stays next to the file, and both are valid
            if self._opened == self.path:
                self._without_log()
            elif os.path.lexists(self._opened):
                self.let_go()
                return
        except sqlite3.Error:
            pass
        self._disconnect()
        if self._left:  # SQLite keeps the log and its index for the connection that was let go of
            with contextlib.suppress(OSError):
                if not os.path.getsize(self.path + "-wal"):
                    os.remove(self.path + "-wal")
                    os.remove(self.path + "-shm")

    def let_go(self) -> None:
        """Forgets the file without closing it: that would delete the log under its name, which may be another's."""
        # Never deallocated, nor the connection that it holds.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._cursor))


@functools.cache
def _insert(table: str, columns: int, rows: int) -> str:
    placeholders = f"({', '.join('?' * columns)})"
    return f"INSERT OR REPLACE INTO {table} VALUES {', '.join([placeholders] * rows)}"


def prepare(path: str, overwrite: bool) -> None:
    """Makes the folder of `path`, checks that a recording can be made there, and removes an older one if asked to."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        why = f"{(error.strerror or str(error)).lower()}: {error.filename}"
        raise CannotWriteError(f"the folder {folder} cannot be made ({why}): choose another path") from error
    if os.path.isdir(path):
        raise CannotWriteError(f"{path} is a folder: give the recording a file name")
    if not os.access(folder, os.W_OK):
        raise CannotWriteError(f"the folder {folder} cannot be written to: choose another path for the recording")
    if not os.path.lexists(path):
        remove(path)  # SQLite would read what an older recording left beside it
        return
    if _is_recording(path):
        owner = _owner(path)
        if owner is not None:
            raise RecordingBusyError(f"process {owner} is recording into {path}: choose another path")
        what = "recording"
    elif os.path.isfile(path) and not os.path.getsize(path):
        what = "empty file"
    else:
        raise BadOptionError(f"the file {path} exists and is not a recording: choose another path")
    if not overwrite:
        raise BadOptionError(f"the {what} {path} exists: choose another path, or overwrite it (overwrite=True)")
    remove(path)


def _take_name(new: str, path: str) -> None:
    """Renames, unless another process took the name meanwhile."""
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.rename(new, path)
    else:
        os.remove(new)


def remove(path: str) -> None:
    """Deletes a recording with all its parts."""
    for suffix in (SUFFIX, "-wal", "-shm", "-journal", ""):  # itself last: then its parts are never taken for another's
        with contextlib.suppress(FileNotFoundError):
            os.remove(path + suffix)


def _is_recording(path: str) -> bool:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # to open a pipe would wait for whoever fills it
            return False
        with open(path, "rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head[:16] == b"SQLite format 3\x00" and int.from_bytes(head[68:72], "big") == APPLICATION_ID


def _owner(path: str) -> int | None:
    """Process that is writing the recording now, if it lives."""
    from pyfunc_debug.pfrec.reader import Reader

    try:
        reader = Reader(path)
    except BadRecordingError:
        return None
    try:
        meta = reader.meta
    finally:
        reader.close()
    return meta.get("pid") if meta.get("state") == "recording" and writer_lives(path, meta) else None
