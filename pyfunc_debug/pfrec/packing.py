"""One whole file of a recording and of what stands beside it: its log, and the ring of a program that died."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3

from pyfunc_debug.errors import BadOptionError, BadRecordingError, CannotWriteError, RecordingBusyError
from pyfunc_debug.pfrec.database import connect
from pyfunc_debug.pfrec.processes import writer_lives
from pyfunc_debug.pfrec.reader import Reader
from pyfunc_debug.pfrec.recovery import missing_parts
from pyfunc_debug.pfrec.schema import NEW
from pyfunc_debug.pfrec.writer import remove


def pack(path: str, output: str | None = None) -> tuple[str, int, list[str]]:
    """Makes one file that says all that is known.

    Args:
      path: The recording.
      output: A new file for it; by default the parts go into the recording itself.

    Returns:
      The path of the whole file, how many calls it holds, and the names of parts that were not there.

    Raises:
      BadRecordingError: it cannot be read.
      BadOptionError: there is a file at `output`.
      RecordingBusyError: it is still written to, and `output` was not given.
      CannotWriteError: there is no room, or no permission.
    """
    reader = Reader(path)  # it completes a recording whose program died
    try:
        calls, meta = reader.counts()["call"], reader.meta
        missing = [] if writer_lives(reader.path, meta) else missing_parts(reader.path, meta)
        if output is not None:
            _copy(reader, os.path.abspath(output), writer_lives(reader.path, meta))
            return output, calls, missing
        if meta.get("state") == "recording" and writer_lives(reader.path, meta):
            raise RecordingBusyError(
                f"process {meta.get('pid')} is recording into {path}: -o FILE packs what is there by now"
            )
        reader.release()
        _fold(reader.path)
        return path, calls, missing
    finally:
        reader.close()


def _fold(path: str) -> None:
    """Puts the log into the file. SQLite does that so that a kill leaves both valid."""
    try:
        with contextlib.closing(connect(os.fsencode(path), isolation_level=None, timeout=2)) as db:
            if db.execute("PRAGMA journal_mode = DELETE").fetchone()[0] != "delete":
                raise CannotWriteError(f"another process reads {path}: close it, or give -o FILE")
            if os.path.exists(path + "-journal"):  # a kill left it as the recording began: whoever writes removes it
                version = db.execute("PRAGMA user_version").fetchone()[0]
                db.execute(f"PRAGMA user_version = {version}")  # SQLite 3.50 writes no row that is as it was
    except sqlite3.Error as error:
        raise CannotWriteError(f"cannot pack {path} in place: {error}; -o FILE writes a copy") from error


def _copy(reader: Reader, output: str, growing: bool) -> None:
    if os.path.lexists(output):
        raise BadOptionError(f"the file {output} exists: choose another name")
    new = output + NEW
    try:
        remove(new)
        with contextlib.closing(connect(os.fsencode(new), isolation_level=None)) as copy:
            with reader.lent() as connection:
                connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            if growing and reader.state() == "recording":
                news = {"state": "stopped early", "stopped": "packed while the program still recorded"}
                copy.executemany(
                    "INSERT OR REPLACE INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in news.items()]
                )
        os.rename(new, output)
    except (OSError, sqlite3.Error) as error:
        with contextlib.suppress(OSError):
            remove(new)
        if isinstance(error, sqlite3.DatabaseError) and "malformed" in str(error):
            raise BadRecordingError(f"the recording {reader.path} is damaged: {error}") from error
        raise CannotWriteError(f"cannot write {output}: {error}") from error
