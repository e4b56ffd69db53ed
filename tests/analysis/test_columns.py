"""Columns follow a file that grows, whatever the order in which its rows come."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from pyfunc_debug.analysis.columns import Columns
from pyfunc_debug.report import calls
from tests.report import recordings


@pytest.fixture
def connection(tmp_path):
    connection = recordings.empty(tmp_path / "a.pfrec", state="recording")
    yield connection
    connection.close()


def add(connection: sqlite3.Connection, *ids: int, end: int | None = 10, status: str = "ok") -> None:
    origin = recordings.ORIGIN
    rows = [
        (
            i,
            1,
            "forward",
            None,
            None,
            None,
            3,
            origin + i * 100,
            None if end is None else origin + i * 100 + end,
            1,
            status,
            None,
        )
        for i in ids
    ]
    connection.executemany(f"INSERT OR REPLACE INTO call ({recordings.CALL}) VALUES ({','.join('?' * 12)})", rows)


def test_calls_that_end_late_are_found_and_stay_in_the_order_of_their_beginnings(connection):
    columns = Columns(recordings.ORIGIN)
    add(connection, *range(2, 5000))
    assert columns.refresh(connection)
    assert columns.find(1) is None
    add(connection, 1)
    add(connection, *range(5000, 5010))
    assert columns.refresh(connection)
    add(connection, 1)
    columns.refresh(connection)
    assert len(columns) == 5009
    assert np.all(np.diff(columns.id) > 0)
    assert columns.find(5009) is not None


def test_a_running_call_gets_its_end(connection):
    columns = Columns(recordings.ORIGIN)
    add(connection, 1, end=None, status="running")
    add(connection, *range(2, 4000))
    columns.refresh(connection)
    assert columns.duration[columns.find(1)] == -1
    add(connection, 1, end=77)
    columns.refresh(connection)
    assert columns.duration[columns.find(1)] == 77


def test_nothing_new_changes_nothing(connection):
    columns = Columns(recordings.ORIGIN)
    add(connection, *range(1, 50))
    assert columns.refresh(connection)
    revision = columns.revision
    assert not columns.refresh(connection)
    assert columns.revision == revision


def test_the_last_look_finds_what_was_missed_for_long(connection):
    columns = Columns(recordings.ORIGIN)
    add(connection, *range(20_000, 30_000))
    columns.refresh(connection)
    add(connection, *range(1, 20_000))
    columns.refresh(connection, final=True)
    assert len(columns) == 29_999


def test_gil_numbers_follow_their_calls_also_when_they_come_later(connection):
    columns = Columns(recordings.ORIGIN)
    add(connection, *range(1, 100))
    columns.refresh(connection)
    assert not columns.measured
    connection.executemany("INSERT INTO gil VALUES (?, 'native', ?, 5, NULL, 0, '[]')", [(i, i) for i in range(1, 100)])
    assert columns.refresh(connection)
    assert columns.measured
    assert columns.wait[columns.find(42)] == 42
    assert np.isnan(columns.released).all(), "what was not measured is not a number, never 0"
    add(connection, *range(100, 120))
    columns.refresh(connection)
    assert columns.wait[columns.find(99)] == 99
    assert np.isnan(columns.wait[columns.find(110)])


def test_between_sees_a_long_call_from_far_before_and_a_wait_from_after(connection):
    columns = Columns(recordings.ORIGIN)
    add(connection, 1, end=1_000_000)
    add(connection, *range(2, 50))
    connection.execute("INSERT INTO gil VALUES (40, 'native', 3000, 5, 5, 0, '[]')")
    columns.refresh(connection)
    seen = columns.id[columns.between(2400, 2405)].tolist()
    assert seen == [1, 24, 40]


def test_an_order_is_kept_until_something_changes(tmp_path):
    path = recordings.small(tmp_path / "train.pfrec", steps=5, values="none")
    connection = sqlite3.connect(path)
    columns = Columns(recordings.ORIGIN)
    columns.refresh(connection)
    first = calls.ordered(columns, [1], "forward", None, "wait", True)
    assert calls.ordered(columns, [1], "forward", None, "wait", True) is first
    assert calls.ordered(columns, [1], "forward", None, "wait", False) is not first
    rest = recordings.CALL.removeprefix("id,")
    connection.execute(f"INSERT INTO call ({recordings.CALL}) SELECT 9999, {rest} FROM call WHERE id = 1")
    columns.refresh(connection)
    again = calls.ordered(columns, [1], "forward", None, "wait", True)
    assert len(again) == len(first) + 1
    for i in range(100):
        calls.ordered(columns, [1], "forward", None, "id", bool(i % 2))
        columns.cached(("one of many", i), lambda: first)
    assert len(columns._kept) <= 16, "bounded"
    connection.close()
