"""Waits for the GIL, parallel calls that bring nothing, and calls too small to pay: from numbers, not by a clock."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import THREADS, call, node, written

MS = 1_000_000


def recording(tmp_path, calls, wait_ns, took_ns, *, kind="tf.function", grade="native", blame="", at_once=1, **columns):
    """One node with calls that each waited and took so long, `at_once` of them side by side."""
    function = {"id": 1, "name": "load", "kind": kind, "file": None, "line": None, "origin": "user"}
    rows, gil, period = [], [], (wait_ns + took_ns) // at_once
    for i in range(1, calls + 1):
        start = i * period + wait_ns
        rows.append(call(i, start_ns=start, end_ns=start + took_ns, cpu_ns=took_ns, thread=1 + i % at_once, **columns))
        gil.append(
            {"call": i, "grade": grade, "wait_ns": wait_ns, "held_ns": took_ns, "released_ns": 0, "reacquire_ns": 0,
             "blame": json.dumps([[blame, wait_ns]] if blame else [])}
        )  # fmt: skip
    threads = [{"id": 1 + i, "name": f"TF-{i}", "native_id": 1 + i} for i in range(at_once)]
    end = (calls + 2) * period + wait_ns
    return written(
        tmp_path / "a.pfrec", meta={"cores": 4, "gil": {"grade": grade, "why": "a test"}, "end_ns": end,
                                    "clock": {"monotonic_ns": 0, "wall_ns": 0}},
        thread=threads if at_once > 1 else THREADS, function=[function], node=[node(function=1)], call=rows, gil=gil,
    )  # fmt: skip


def rules(path):
    found = Recording(path).findings(select=["gil-wait", "parallel-calls", "tiny-calls"])
    assert all(one.fix and one.evidence for one in found)
    return [one.rule for one in found]


@pytest.mark.parametrize(
    ("expected", "numbers", "options"),
    [
        (["gil-wait"], (100, 9 * MS, MS), {"blame": "crunch"}),
        (["gil-wait"], (2000, MS, MS), {"blame": "MainThread"}),
        (["gil-wait"], (100, 5 * MS, 4 * MS), {"grade": "op-start"}),
        ([], (100, MS, 9 * MS), {}),  # a tenth of the time
        ([], (10, 9 * MS, MS), {}),  # 0.09 s in all
        ([], (100, 9 * MS, MS), {"grade": "bound"}),  # no measurement
    ],
)
def test_waiting_for_the_gil(tmp_path, expected, numbers, options):
    assert rules(recording(tmp_path, *numbers, **options)) == expected


@pytest.mark.parametrize(
    ("expected", "numbers", "at_once"),
    [
        (["parallel-calls"], (200, 6 * MS, 2 * MS), 4),
        (["parallel-calls"], (400, 2 * MS, 2 * MS), 2),
        (["parallel-calls"], (200, 14 * MS, 2 * MS), 8),
        ([], (200, MS, 9 * MS), 4),  # hardly any wait
        (["gil-wait"], (200, 6 * MS, 2 * MS), 1),  # nothing parallel about it
        ([], (20, 6 * MS, 2 * MS), 4),  # too short to matter
    ],
)
def test_parallel_calls_that_bring_nothing(tmp_path, expected, numbers, at_once):
    assert rules(recording(tmp_path, *numbers, kind="tf.data", at_once=at_once, blame="bad")) == expected


@pytest.mark.parametrize(
    ("expected", "numbers", "status"),
    [
        (["tiny-calls"], (2000, 0, 5_000), "ok"),
        (["tiny-calls"], (1000, 0, 20_000), "ok"),
        (["tiny-calls"], (5000, 10_000, 1_000), "ok"),
        ([], (900, 0, 5_000), "ok"),  # too few
        ([], (2000, 0, MS), "ok"),  # the body is what takes long
        ([], (2000, 0, 5_000), "error"),
    ],
)
def test_calls_that_do_not_pay(tmp_path, expected, numbers, status):
    assert rules(recording(tmp_path, *numbers, status=status)) == expected


def test_calls_that_are_a_small_part_of_the_program_are_left_alone(tmp_path):
    path = recording(tmp_path, 2000, 0, 5_000)
    import sqlite3

    with sqlite3.connect(path) as file:
        file.execute("UPDATE meta SET value = ? WHERE key = 'end_ns'", (str(60_000 * MS),))
    assert rules(path) == []


def test_a_million_calls_are_asked_by_aggregates(tmp_path):
    """No rule reads all calls one by one: the number of rows that SQLite hands out does not grow with them."""
    from pyfunc_debug import doctor
    from pyfunc_debug.pfrec import Reader

    counts = []
    for calls in (3000, 6000):
        reader = Reader(recording(tmp_path, calls, 1000, 5_000))
        handed, rows = [0], reader.rows

        def counted(*args, rows=rows, handed=handed):
            found = rows(*args)
            handed[0] += len(found)
            return found

        reader.rows = counted
        doctor.examine(reader)
        counts.append(handed[0])
        reader.close()
    assert counts[0] == counts[1]
