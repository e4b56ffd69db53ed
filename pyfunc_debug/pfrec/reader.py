"""Reading a .pfrec file: rows back to the nouns. Needs no TensorFlow, and works while another writes.

It never writes, with one exception: a recording whose program died is completed from its ring (recovery.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import shutil
import sqlite3
import tempfile
import threading
import urllib.parse
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyfunc_debug.errors import BadOptionError, BadRecordingError
from pyfunc_debug.pfrec import checks, database, stopped
from pyfunc_debug.pfrec.contents import decode
from pyfunc_debug.pfrec.processes import writer_lives
from pyfunc_debug.pfrec.recovery import recover, tidy
from pyfunc_debug.pfrec.ring import SUFFIX
from pyfunc_debug.pfrec.schema import APPLICATION_ID, NEW, SCHEMA_VERSION
from pyfunc_debug.pfrec.sums import CallSum, read_running, read_sums
from pyfunc_debug.places import learn_cells, one_line
from pyfunc_debug.program.printable import printable
from pyfunc_debug.records import (
    Call,
    Failure,
    Frame,
    Function,
    Gil,
    GraphTrace,
    Line,
    Node,
    Printed,
    Run,
    Thread,
    Value,
)

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_PAGE = 1000
_PARTS = ("-wal", SUFFIX, NEW)
"""What may stand where a recording was deleted, or where a program was killed as it began to record."""
_TICK = 20_000
"""Steps of SQLite's machine between two looks at whether Ctrl-C was pressed: some 0.2 ms."""


def _read_only(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    """SQLite's authorizer: selects only, and no function that touches files or loads code."""
    if action == sqlite3.SQLITE_FUNCTION and second in ("load_extension", "readfile", "writefile", "edit"):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":  # how json_each declares its columns; the file is
        return sqlite3.SQLITE_OK  # opened for reading only
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _tick() -> int:
    """SQLite asks now and then whether to go on: what Ctrl-C raises in here ends the query, as `interrupted`."""
    database.make_way()
    return 0


class Connection(database.Connection):
    """Looks at tables before they are first read."""

    look: Callable[[str], None] = staticmethod(lambda sql: None)

    def execute(self, sql: str, *parameters: Any) -> database.Cursor:
        self.look(sql)
        return super().execute(sql, *parameters)


class _Desk:
    """One thread's connection, with its one cursor: a connection keeps weak references to its cursors."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.cursor = connection.cursor()
        self.at_work = threading.RLock()
        self.closed = False

    def close(self) -> None:
        """Closes it when its thread's question has been answered."""
        with self.at_work:
            self.cursor.close()  # first: the file stays open for as long as a cursor has a statement
            self.connection.close()
            self.closed = True


class Reader:
    """An open recording.

    Args:
      path: A .pfrec file.
      trusted: Whether this process writes it: then its contents need not be checked.

    Raises:
      BadRecordingError: no such file, no recording, a truncated one, or one of a newer version.
    """

    def __init__(self, path: str | os.PathLike[str], trusted: bool = False) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self._unchecked = set() if trusted else set(checks.tables())
        self._checking = threading.RLock()
        self._file = self.path
        self._copies: tempfile.TemporaryDirectory[str] | None = None
        self._desks: dict[int, _Desk] = {}
        self._closed = False
        self.version = SCHEMA_VERSION
        try:
            self._check()
        except BadRecordingError as error:
            error.path = self.path
            raise
        learn_cells(self.meta.get("cells") or {})

    def _take_over(self, other: Reader) -> None:
        """Reads the same file as another reader, and does not check again what that one has."""
        vars(self).update(vars(other))
        self._desks, self._copies, self._closed = {}, None, False

    @property
    def name(self) -> str:
        """Its file's name, as text that any terminal, page and file can hold."""
        return printable(os.path.basename(self.path))

    @property
    def _own(self) -> _Desk:
        """This thread's desk.

        The panel's thread and the user's ask one recording. On one connection, the thread inside SQLite would wait in
        `_tick` for the GIL, which the other holds while it waits for SQLite's mutex: neither would go on.
        """
        if self._closed:
            raise BadRecordingError(f"the recording {os.path.basename(self.path)} has been closed")
        own = self._desks.get(threading.get_ident())
        if own is None:
            alive = {thread.ident for thread in threading.enumerate()}
            self._clear([ident for ident in list(self._desks) if ident not in alive])
            own = self._desks[threading.get_ident()] = _Desk(self._open())
        return own

    def _clear(self, threads: Sequence[int]) -> None:
        for thread in threads:
            desk = self._desks.pop(thread, None)
            if desk is not None:
                desk.close()

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[_Desk]:
        """This thread's desk, which nobody else clears meanwhile."""
        while True:
            desk = self._own
            with desk.at_work:
                if not desk.closed:
                    yield desk
                    return

    @property
    def _db(self) -> Connection:
        return self._own.connection

    def look(self, sql: str) -> None:
        """Checks the tables that a query reads and that were not checked yet."""
        if not self._unchecked:
            return
        with self._checking:
            for table in self._unchecked & checks.tables_in(sql):
                self._unchecked.discard(table)
                with self._reading():
                    checks.check_rows(self._db, table, self.version)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Errors of SQLite as ours."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeError, checks.DamagedError) as error:
            if "interrupted" in str(error):  # nothing but Ctrl-C does that: see `_tick`
                raise KeyboardInterrupt from None
            damaged = BadRecordingError(f"the recording {os.path.basename(self.path)} is damaged: {_one_line(error)}")
            damaged.path = self.path
            raise damaged from error

    @contextlib.contextmanager
    def lent(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection, for whoever reads much at once, and only reads."""
        with self._at_work() as desk:
            reader = weakref.ref(self)  # the file is closed as soon as nobody holds this object
            desk.connection.look = lambda sql: None if (this := reader()) is None else this.look(sql)
            try:
                yield desk.connection
            except sqlite3.OperationalError as error:
                if str(error) == "interrupted":
                    raise KeyboardInterrupt from None
                raise

    def _open(self) -> Connection:
        self._must_be_a_file()
        try:
            uri = f"file:{urllib.parse.quote(os.fsencode(self._file))}?mode=ro"
            connection = database.opened(Connection, uri, uri=True, isolation_level=None, timeout=10)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.set_progress_handler(_tick, _TICK)
            return connection
        except sqlite3.Error as error:
            raise BadRecordingError(f"cannot open the recording {self.path}: {error}") from error

    def _must_be_a_file(self) -> None:
        for suffix in ("-wal", "-shm", SUFFIX, NEW):
            if self.path.endswith(suffix):
                raise BadRecordingError(f"{self.path} is a part of a recording: give {self.path.removesuffix(suffix)}")
        if not os.path.exists(self._file):
            parts = [os.path.basename(self.path + end) for end in _PARTS if os.path.exists(self.path + end)]
            lonely = f": only {' and '.join(parts)} stands there, which nothing can be read from" if parts else ""
            raise BadRecordingError(f"no such recording: {self.path}{lonely}")
        if os.path.isdir(self._file):
            raise BadRecordingError(f"{self.path} is a folder, not a recording")
        if not os.path.isfile(self._file):  # to open a pipe would wait for whoever fills it
            raise BadRecordingError(f"{self.path} is not a file")

    def _check(self) -> None:
        name = os.path.basename(self.path)
        try:
            try:
                application = self._db.execute("PRAGMA application_id").fetchone()[0]
            except sqlite3.OperationalError as error:
                if "unable to open" not in str(error) and "readonly" not in str(error):
                    raise
                self.release()
                self._copy()
                application = self._db.execute("PRAGMA application_id").fetchone()[0]
            self.version = version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
            if application != APPLICATION_ID:
                raise BadRecordingError(f"{name} is not a recording of pyfunc_debug")
            if version > SCHEMA_VERSION:
                raise BadRecordingError(
                    f"{name} was made by a newer pyfunc_debug (schema {version}, this one reads up to "
                    f"{SCHEMA_VERSION}): upgrade pyfunc-debug"
                )
            if self._unchecked:
                checks.check_structure(self._db, version)
                self.look("FROM meta")
            self._complete()
        except checks.DamagedError as error:
            self.close()
            raise BadRecordingError(f"the recording {name} is damaged: {error}") from error
        except (sqlite3.DatabaseError, UnicodeError) as error:
            self.close()
            reason = (
                "is truncated or damaged" if "malformed" in str(error) or "disk" in str(error) else "cannot be read"
            )
            if "not a database" in str(error):
                raise BadRecordingError(f"{name} is not a recording of pyfunc_debug") from error
            raise BadRecordingError(f"the recording {name} {reason}: {_one_line(error)}") from error
        except BadRecordingError:
            self.close()
            raise

    def _copy(self) -> None:
        """Works on copies from now on: a recording that was never finished, in a folder that cannot be written to.

        SQLite needs an index of its log beside it, and without the log most of the recording would be missing.
        """
        self._copies = tempfile.TemporaryDirectory(prefix="pyfunc_debug-")
        copy = os.path.join(self._copies.name, os.path.basename(self.path))
        for suffix in ("", "-wal", "-journal", SUFFIX):
            if os.path.exists(self.path + suffix):
                shutil.copyfile(self.path + suffix, copy + suffix)
        self._file = copy

    def _complete(self) -> None:
        """Completes a recording whose program died."""
        meta = self.meta
        if meta.get("state") != "recording":
            tidy(self._file, meta)
            return
        self.release()  # the log can be folded back then
        if recover(self._file, meta) or os.access(os.path.dirname(self._file), os.W_OK):
            return
        if os.path.exists(self.path + SUFFIX) and not writer_lives(self.path, meta):
            self._copy()
            recover(self._file, meta)

    def follow(self, path: str) -> None:
        """The process that writes it, which is this one, found that it was moved."""
        if path != self.path:
            self.path = self._file = path
            self.release()

    def release(self) -> None:
        """Lets go of the file until the next question, so that a writer can complete it."""
        self._clear(list(self._desks))

    def close(self) -> None:
        """Closes the file; the reader cannot be used afterwards."""
        self._closed = True
        self.release()
        if self._copies is not None:
            self._copies.cleanup()

    def __del__(self) -> None:
        for desk in getattr(self, "_desks", {}).values():
            desk.close()  # Python 3.13 complains about a connection that nobody closed

    def abandon(self) -> None:
        """In a forked child: forgets the parent's connections without closing them, as SQLite demands."""
        self._checking = threading.RLock()
        for desk in self._desks.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(desk))
        self._desks.clear()

    # -- rows ---------------------------------------------------------------------------------------------------------

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Result of one of our own queries.

        Raises:
          BadRecordingError: the file turned out to be damaged.
        """
        with self._reading(), self._at_work() as desk:
            self.look(sql)
            return desk.cursor.execute(sql, parameters).fetchall()

    def query(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """A user's query: column names and rows. It can only read.

        Raises:
          BadOptionError: SQLite did not accept it, or it tried to write.
          BadRecordingError: the file turned out to be damaged.
        """
        columns, rows = self.stream(sql)
        return columns, list(rows)

    def stream(self, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """As `query`, and gives rows as SQLite finds them.

        Raises:
          BadOptionError, BadRecordingError: as `query`; also while rows are taken.
        """
        rows = self._stream(sql)
        return list(next(rows)), rows

    def _stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The names of the columns, then the rows."""
        with self._reading():
            yield from selected(self._open(), sql)

    def pages(self, sql: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """Rows of one of our own queries, some at a time.

        Raises:
          BadRecordingError: the file turned out to be damaged; also while rows are taken.
        """
        with self._reading(), self._at_work() as desk:
            self.look(sql)
            rows = desk.connection.execute(sql)
            while page := rows.fetchmany(size):
                yield page

    # -- about the recording ------------------------------------------------------------------------------------------

    @property
    def meta(self) -> dict[str, Any]:
        """The table `meta`, decoded. Read again each time: another process may be writing."""
        return {key: json.loads(value) for key, value in self.rows("SELECT key, value FROM meta")}

    def state(self) -> str:
        """`recording`, `complete`, `stopped early`."""
        return str(self.meta.get("state", "?"))

    @property
    def digest_column(self) -> str:
        """The column of values' digests in a query; NULL for a file of before version 2, which has none."""
        return "digest" if self.version >= 2 else "NULL"

    def extra_calls(self) -> dict[int, str]:
        """Calls that sampling would have left out, and why they are stored: `failed`, `NaN`, `slow` or `long`."""
        if not self.rows("SELECT 1 FROM sqlite_master WHERE name = 'extra'"):
            return {}  # a file of before there was sampling
        return {int(call): str(why) for call, why in self.rows("SELECT call, why FROM extra")}

    def random_state(self, call: int) -> tuple[dict[str, list[Any]], bytes, bytes | None] | None:
        """The small rest, Python's and NumPy's words of the random state that a call began with; None if not kept."""
        if not self.rows("SELECT 1 FROM sqlite_master WHERE name = 'random_state'"):
            return None  # a file of before they were recorded
        rows = self.rows(
            "SELECT s.facts, p.data, n.data FROM random_state s JOIN blob p ON p.digest = s.python "
            "LEFT JOIN blob n ON n.digest = s.numpy WHERE s.call = ?",
            (call,),
        )
        return (json.loads(rows[0][0]), rows[0][1], rows[0][2]) if rows else None

    def counts(self) -> dict[str, int]:
        """Stored rows of the main tables."""
        tables = ("node", "function", "trace", "run", "call", "failure", "value")
        return {table: int(self.rows(f"SELECT count(*) FROM {table}")[0][0]) for table in tables}

    def call_sums(self) -> dict[tuple[int, str], CallSum]:
        """Sums over the stored calls by node and kind; the tables are not checked for it, but what it reads of them.

        Raises:
          BadRecordingError: the file turned out to be damaged.
        """
        self.look("FROM node")
        with self._reading(), self._at_work() as desk:
            return read_sums(desk.cursor)

    def running_calls(self) -> dict[tuple[int, str], int]:
        """How many stored calls have not ended, by node and kind; the tables are not checked for it, as above.

        Raises:
          BadRecordingError: the file turned out to be damaged.
        """
        with self._reading(), self._at_work() as desk:
            return read_running(desk.cursor)

    # -- nouns --------------------------------------------------------------------------------------------------------

    def threads(self) -> list[Thread]:
        rows = self.rows("SELECT id, name, native_id FROM thread ORDER BY id")
        return [Thread(number, one_line(name), native) for number, name, native in rows]

    def functions(self) -> list[Function]:
        rows = self.rows("SELECT id, name, kind, file, line, origin FROM function ORDER BY id")
        return [Function(number, one_line(name), *rest) for number, name, *rest in rows]

    def nodes(self) -> list[Node]:
        stacks = {number: read_frames(text) for number, text in self.rows("SELECT id, frames FROM stack")}
        found = []
        for row in self.rows(
            "SELECT id, token, kind, body, file, line, name, graph, function, stack, tout, paths, out_paths, origin "
            "FROM node ORDER BY id"
        ):
            number, token, kind, body, file, line, name, graph, function, stack, tout, paths, out_paths, origin = row
            types, inputs, outputs = (tuple(json.loads(text)) for text in (tout, paths, out_paths))
            found.append(
                Node(
                    number, token, kind, one_line(body), file, line, name and one_line(name), graph, function,
                    stacks.get(stack, ()), types, inputs, outputs, origin,
                )
            )  # fmt: skip
        return found

    def traces(self) -> list[GraphTrace]:
        nodes: dict[int, list[int]] = {}
        for trace, node in self.rows("SELECT trace, node FROM trace_node ORDER BY trace, node"):
            nodes.setdefault(trace, []).append(node)
        return [
            GraphTrace(
                number, function, ordinal, name, signature, tuple(json.loads(reason)), thread, start, duration,
                tuple(nodes.get(number, ())), *rest,
            )
            for number, function, ordinal, name, signature, reason, thread, start, duration, *rest in self.rows(
                "SELECT id, function, ordinal, name, signature, reason, thread, start_ns, duration_ns, error, parent, "
                "closest, avoid, object FROM trace ORDER BY id"
            )
        ]  # fmt: skip

    def runs(self) -> list[Run]:
        stacks = {number: read_frames(text) for number, text in self.rows("SELECT id, frames FROM stack")}
        return [
            Run(run, trace, function, kind, thread, start, duration, error, None if site is None else stacks[site][-1])
            for run, trace, function, kind, thread, start, duration, error, site in self.rows(
                "SELECT id, trace, function, kind, thread, start_ns, duration_ns, error, site FROM run ORDER BY id"
            )
        ]

    def call(self, number: int) -> Call | None:
        """One call, or None."""
        return next(self._calls("WHERE id = ?", (number,)), None)

    def calls(self, node_ids: Sequence[int] | None = None, status: str | None = None, after: int = 0) -> Iterator[Call]:
        """Calls in the order in which they began, those after a number, read in pages: the file may hold millions."""
        clauses, parameters = [], []
        if node_ids is not None:
            clauses.append(f"node IN ({', '.join(map(str, map(int, node_ids)))})")
        if status is not None:
            clauses.append("status = ?")
            parameters.append(status)
        last = after
        while True:
            where = " AND ".join([*clauses, "id > ?"])
            page = list(self._calls(f"WHERE {where} ORDER BY id LIMIT {_PAGE}", (*parameters, last)))
            yield from page
            if len(page) < _PAGE:
                return
            last = page[-1].id

    def _calls(self, where: str, parameters: Sequence[Any]) -> Iterator[Call]:
        rows = self.rows(
            "SELECT id, node, kind, forward, run, runs, thread, start_ns, end_ns, cpu_ns, status, failure, tape "
            f"FROM call {where}",
            parameters,
        )
        if not rows:
            return
        ids = [row[0] for row in rows]
        with self._reading():
            values = self._values(ids)
        gradients: dict[int, list[int]] = {}
        for forward, number in self._among("SELECT forward, id FROM call WHERE forward IN ({}) ORDER BY id", ids):
            gradients.setdefault(forward, []).append(number)
        held = stopped.held_ns(stopped.stops_of(self._among(f"{stopped.QUERY} AND call IN ({{}}) ORDER BY id", ids)))
        with self._reading():
            gil = {row[0]: _gil(row[1:], held.get(row[0], 0)) for row in self._among(
                "SELECT call, grade, wait_ns, held_ns, released_ns, reacquire_ns, blame FROM gil WHERE call IN ({})",
                ids)}  # fmt: skip
        failures = {row[0]: _failure(row[1:]) for row in self._among(
            "SELECT id, type, message, traceback, frames FROM failure WHERE id IN ({})",
            [*{row[11] for row in rows if row[11] is not None}])}  # fmt: skip
        bodies = dict(self._among("SELECT id, body FROM node WHERE id IN ({})", list({row[1] for row in rows})))
        for number, node, kind, forward, run, runs, thread, start, end, cpu, status, failure, tape in rows:
            candidates = tuple(json.loads(runs)) if runs else (() if run is None else (run,))
            yield Call(
                number, node, kind, forward, tuple(gradients.get(number, ())), run, candidates, thread, start, end, cpu,
                status, tuple(values.get((number, "input"), ())), tuple(values.get((number, "output"), ())),
                failures.get(failure), gil.get(number), tape, held.get(number, 0), runs is not None and not candidates,
                one_line(bodies.get(node, "")),
            )  # fmt: skip

    def _among(self, sql: str, ids: Sequence[int]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for start in range(0, len(ids), 500):
            piece = ids[start : start + 500]
            found += self.rows(sql.format(", ".join("?" * len(piece))), piece)
        return found

    def _values(self, ids: Sequence[int]) -> dict[tuple[int, str], list[Value]]:
        found: dict[tuple[int, str], list[Value]] = {}
        for call, role, path, dtype, shape, nbytes, low, high, mean, std, nan, inf, zeros, sampled, histogram, text, \
                note, kept, blob, digest in self._among(
            "SELECT call, role, path, dtype, shape, nbytes, min, max, mean, std, nan, inf, zeros, sampled, histogram, "
            f"text, note, kept, blob, {self.digest_column} FROM value WHERE call IN ({{}}) "
            "ORDER BY call, role, position", ids,
        ):  # fmt: skip
            found.setdefault((call, role), []).append(
                Value(
                    path, dtype, None if shape is None else tuple(json.loads(shape)), nbytes, low, high, mean, std, nan,
                    inf, zeros, text, sampled, _histogram(histogram), note, kept,
                    digest.hex() if digest is not None else None,
                    functools.partial(self._blob, blob) if blob is not None else None,
                )
            )  # fmt: skip
        return found

    def _blob(self, digest: bytes) -> Any:
        rows = self.rows("SELECT encoding, dtype, shape, data FROM blob WHERE digest = ?", (digest,))
        if not rows:
            raise BadRecordingError("the contents of this value are missing from the recording")
        with self._reading():
            return checks.guarded(lambda: decode(*rows[0]))

    def lines(self, file: str) -> list[Line]:
        """Counts of a file's lines, if they were recorded (`lines=True`)."""
        return [
            Line(file, line, kind, traced, ran, bool(capped), tuple(json.loads(graph)), tuple(json.loads(inside)))
            for line, kind, traced, ran, capped, graph, inside in self.rows(
                "SELECT line, kind, traced, ran, capped, graph, inside FROM line WHERE file = ? ORDER BY line, kind",
                (file,),
            )
        ]

    def prints(self, file: str) -> list[Printed]:
        """What a file's lines printed, in order."""
        return [
            Printed(*row)
            for row in self.rows(
                "SELECT trace, call, file, line, function, text FROM print WHERE file = ? ORDER BY id", (file,)
            )
        ]

    def source(self, file: str) -> str | None:
        """Text of a user's file as it was when recorded."""
        rows = self.rows("SELECT text FROM source WHERE file = ?", (file,))
        return rows[0][0] if rows else None


def bad_query(why: str) -> BadOptionError:
    """The error for a query that was not accepted."""
    return BadOptionError(f"bad query: {why}. `pyfunc-debug query --schema` shows the tables")


def selected(connection: sqlite3.Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    """What a user's query gives, which can only read: the names of the columns, then the rows. Closes the connection.

    Raises:
      BadOptionError: SQLite did not accept it, or it tried to write; also while rows are taken.
      sqlite3.DatabaseError: the file is damaged; also while rows are taken.
    """
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.set_progress_handler(_tick, _TICK)
        connection.set_authorizer(_read_only)
        cursor = connection.execute(sql)
        yield tuple(column[0] for column in cursor.description or ())
        yield from cursor
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        if str(error) == "interrupted":
            raise KeyboardInterrupt from None
        if "malformed" in str(error) and type(error) is sqlite3.DatabaseError:
            raise  # that is the file's fault
        text = "a query can only read (SELECT)" if "not authorized" in str(error) else str(error).rstrip(".")
        raise bad_query(text) from error
    finally:
        connection.close()


def read_frames(text: str) -> tuple[Frame, ...]:
    """A stack from its JSON text, in the order stored."""
    return tuple(Frame(*entry) for entry in json.loads(text))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _histogram(text: str | None) -> tuple[int, ...]:
    counts = tuple(json.loads(text)) if text else ()
    if not checks.fits([*counts], [int]):
        raise checks.DamagedError("the histogram of a value is not a list of numbers")
    return counts


def _failure(row: Sequence[Any]) -> Failure:
    return Failure(row[0], row[1], row[2], read_frames(row[3]))


def _gil(row: Sequence[Any], held_at_stops: int) -> Gil:
    grade, wait, *parts, blame = row
    blamed = checks.guarded(lambda: tuple((who, ns) for who, ns in json.loads(blame)))
    return Gil(grade, wait, *stopped.without(held_at_stops, *parts), blamed)
