"""Forks wait for threads of ours that are inside SQLite."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import threading
from pathlib import Path

import pytest

from pyfunc_debug.pfrec import database

ROOT = Path(database.__file__).parents[1]
COUNT = (
    "WITH RECURSIVE n(i) AS (SELECT began() UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) "
    "SELECT max(i) + ended() FROM n"
)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def in_child(work) -> int:
    """Forks, and has the child do that; its exit code, negative if a signal ended it: that of its alarm, after 30 s."""
    pid = os.fork()
    if not pid:
        signal.alarm(30)
        try:
            os._exit(work())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork_waits_for_a_statement_that_runs():
    began, ended = threading.Event(), []
    connection = database.connect(":memory:", check_same_thread=False)
    connection.create_function("began", 0, lambda: began.set() or 1)

    connection.create_function("ended", 0, lambda: ended.append(True) or 1)
    thread = threading.Thread(target=lambda: connection.execute(COUNT).fetchall())
    thread.start()
    began.wait()
    assert in_child(lambda: len(ended)) == 1
    thread.join()


def test_a_long_statement_makes_way_where_it_calls_python_and_goes_on():
    began, found = threading.Event(), []
    connection = database.connect(":memory:", check_same_thread=False)
    connection.create_function("began", 0, lambda: began.set() or 1)
    forked = threading.Event()

    def tick() -> int:
        database.make_way()
        return 0

    def ask() -> None:
        connection.set_progress_handler(tick, 1000)
        connection.create_function("over", 1, lambda number: int(not forked.is_set() and number < 10**8))
        sql = "WITH RECURSIVE n(i) AS (SELECT began() UNION ALL SELECT i + 1 FROM n WHERE over(i)) SELECT max(i) FROM n"
        found.extend(connection.execute(sql).fetchone())

    thread = threading.Thread(target=ask)
    thread.start()
    began.wait()
    assert in_child(lambda: 0) == 0  # the statement does not end before
    forked.set()
    thread.join()
    assert found[0] > 1


def test_children_can_use_sqlite_while_other_threads_are_at_work_in_it():
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            with database.connect(":memory:") as connection:
                connection.execute("SELECT randomblob(10)").fetchall()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for one in threads:
        one.start()
    try:
        for _ in range(60):
            assert in_child(lambda: database.connect(":memory:").execute("SELECT 7").fetchone()[0]) == 7
    finally:
        over.set()
        for one in threads:
            one.join()


def test_rows_and_errors_are_those_of_sqlite():
    ours, stock = database.connect(":memory:"), sqlite3.connect(":memory:")
    for one in (ours, stock):
        one.executescript("CREATE TABLE t (a, b)")
        one.executemany("INSERT INTO t VALUES (?, ?)", [(i, str(i)) for i in range(200)])
    sql = "SELECT * FROM t WHERE a > ?"
    assert list(ours.execute(sql, (3,))) == list(stock.execute(sql, (3,)))
    assert next(ours.execute(sql, (3,))) == (4, "4")
    assert ours.execute(sql, (3,)).fetchmany(2) == stock.execute(sql, (3,)).fetchmany(2)
    assert [one[0] for one in ours.execute(sql, (3,)).description] == ["a", "b"]
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        ours.execute("SELECT * FROM u")
    with pytest.raises(StopIteration):
        next(ours.execute(sql, (1000,)))
    assert not database._inside
    to = database.connect(":memory:")
    ours.commit()
    ours.backup(to)
    assert to.execute("SELECT count(*) FROM t").fetchone() == (200,)


def test_every_connection_of_ours_is_such_a_one():
    made = [
        path.name for folder in (ROOT, ROOT.parent / "jupyter_ext") for path in folder.rglob("*.py")
        if re.search(r"^[^\"]*\bsqlite3\.connect\(", path.read_text(), re.MULTILINE)
    ]  # fmt: skip
    assert made == []
