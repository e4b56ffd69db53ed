"""Connections to SQLite that a fork of the process waits for: never is one of our threads inside SQLite meanwhile.

SQLite has locks that the whole process shares. If a thread held one of them at a fork, it would stay taken in the
child: whatever uses SQLite there, a recording of the child's or the user's own code, would never end. A statement takes
well under a millisecond, and long ones make way as they go (`make_way`).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from _thread import get_ident
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

from pyfunc_debug.program.threads import daemon_thread

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
Made = TypeVar("Made", bound="Connection")
_LONGEST_S = 5.0
"""A fork waits no longer than that: a disk may hang."""
_LOOK_S = 0.0002
_ROWS = 64
"""Rows that are taken from SQLite at once."""
_PAGES = 256
_inside: list[int] = []
"""Threads in SQLite now."""
_forking: list[int] = []
"""Threads that are about to fork."""


def connect(path: bytes | str, **options: Any) -> Connection:
    """`sqlite3.connect`, with connections whose statements no fork meets."""
    return opened(Connection, path, **options)


def opened(kind: type[Made], path: bytes | str, **options: Any) -> Made:
    """The same, of another kind of connection."""
    options = {"check_same_thread": False, **options}  # any thread may find, and close, one that is garbage
    connection: Made = _waited_for(sqlite3.connect)(path, factory=kind, **options)
    return connection


def make_way() -> None:
    """Lets a fork that is about to happen go first: inside a long statement, where SQLite calls Python."""
    if _forking:
        ident = get_ident()
        _leave(ident)
        _enter(ident)


def is_usable(longest_s: float = _LONGEST_S) -> bool:
    """Whether SQLite answers in this process, which was forked: a thread of the user's may have been in it then."""
    answered = threading.Event()

    def ask() -> None:
        connect(":memory:").close()
        answered.set()

    daemon_thread(ask, "pyfunc_debug SQLite").start()
    return answered.wait(longest_s)


def _enter(ident: int) -> None:
    if ident in _inside:  # an object of ours goes while this thread is in SQLite
        _inside.append(ident)
        return
    while True:
        while any(one != ident for one in list(_forking)):
            time.sleep(_LOOK_S)
        _inside.append(ident)
        if all(one == ident for one in list(_forking)):  # now that who forks can see this thread
            return
        _inside.remove(ident)


def _leave(ident: int) -> None:
    if ident in _inside:  # Ctrl-C may come while it waits for a fork
        _inside.remove(ident)


def _waited_for(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """The same function, which forks wait for."""

    def call(*arguments: _Given.args, **named: _Given.kwargs) -> _Result:
        ident = get_ident()
        try:
            _enter(ident)
            return function(*arguments, **named)
        finally:
            _leave(ident)

    return call


class Cursor(sqlite3.Cursor):
    """Is waited for whenever it is inside SQLite."""

    execute = _waited_for(sqlite3.Cursor.execute)
    executemany = _waited_for(sqlite3.Cursor.executemany)
    executescript = _waited_for(sqlite3.Cursor.executescript)
    fetchone = _waited_for(sqlite3.Cursor.fetchone)
    fetchmany = _waited_for(sqlite3.Cursor.fetchmany)
    fetchall = _waited_for(sqlite3.Cursor.fetchall)
    close = _waited_for(sqlite3.Cursor.close)

    def __next__(self) -> Any:
        return _waited_for(super().__next__)()

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        while rows := self.fetchmany(_ROWS):
            yield from rows

    def __del__(self, unopened: type[Exception] = sqlite3.ProgrammingError) -> None:
        try:
            self.close()  # else it is closed as the object goes, where no fork waits
        except unopened:
            pass  # it was never opened


class Connection(sqlite3.Connection):
    """Is waited for whenever it is inside SQLite."""

    close = _waited_for(sqlite3.Connection.close)
    __del__ = Cursor.__del__

    def cursor(self) -> Cursor:  # type: ignore[override]
        return super().cursor(Cursor)

    # SQLite's own three ask for a cursor of its own kind.

    def execute(self, sql: str, *parameters: Any) -> Cursor:
        cursor = self.cursor()
        cursor.execute(sql, *parameters)
        return cursor

    def executemany(self, sql: str, rows: Sequence[Any]) -> Cursor:  # type: ignore[override]
        cursor = self.cursor()
        cursor.executemany(sql, rows)
        return cursor

    def executescript(self, sql: str) -> Cursor:
        cursor = self.cursor()
        cursor.executescript(sql)
        return cursor

    def backup(self, target: sqlite3.Connection) -> None:  # type: ignore[override]
        copy = _waited_for(super().backup)
        copy(target, pages=_PAGES, progress=lambda *_: make_way(), sleep=0.0)


def _before_fork() -> None:
    ident = get_ident()
    _forking.append(ident)
    end = time.monotonic() + _LONGEST_S
    while any(one != ident for one in list(_inside)) and time.monotonic() < end:
        time.sleep(_LOOK_S)


def _in_parent() -> None:
    _forking.remove(get_ident())


def _in_child() -> None:
    _forking.clear()
    _inside.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
