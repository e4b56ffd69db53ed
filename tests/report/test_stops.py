"""A stop's time is a person's: it is in no number, drawn as a stop, and folded where nothing else ran."""

# ruff: noqa: E501 - rows of tables read best as rows
from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest

import pyfunc_debug as pfd
from pyfunc_debug.analysis.stages import make_stages
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.stopped import stops_of
from pyfunc_debug.report.answers import Answers
from pyfunc_debug.report.folds import folded
from tests.report.recordings import ORIGIN, Writer, empty

HELD = 20_000_000_000
MS = 1_000_000


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The same program without a stop, and with one of 20 s in its last augment and all that came after it later."""
    folder = tmp_path_factory.mktemp("stops")
    paths = []
    for name, held in (("plain", 0), ("held", HELD)):
        connection = empty(folder / f"{name}.pfrec")
        writer = Writer(connection, values="none")
        writer.steps(20)
        writer.flush()
        (call, start) = connection.execute(
            "SELECT id, start_ns FROM call WHERE node = 2 ORDER BY start_ns DESC LIMIT 1"
        ).fetchone()
        if held:
            begin = start + 100_000
            connection.execute("UPDATE call SET end_ns = end_ns + ? WHERE id = ?", (held, call))
            connection.execute("UPDATE call SET start_ns = start_ns + ?, end_ns = end_ns + ? WHERE start_ns > ?", (held, held, start))  # fmt: skip
            connection.execute("UPDATE run SET duration_ns = duration_ns + ? WHERE start_ns <= ? AND start_ns + duration_ns > ?", (held, start, start))  # fmt: skip
            connection.execute("UPDATE run SET start_ns = start_ns + ? WHERE start_ns > ?", (held, start))
            # The thread waited without the GIL; a prompt's own Python held it for a moment.
            connection.execute("UPDATE gil SET released_ns = released_ns + ? WHERE call = ?", (held, call))
            connection.execute(
                "INSERT INTO notice VALUES (1, 'held', 2, ?, ?)",
                (call, json.dumps({"why": "breakpoint 1 (before)", "start_ns": begin, "end_ns": None})),
            )
            facts = {"why": "breakpoint 1 (before)", "start_ns": begin, "end_ns": begin + held, "held_ns": held,
                     "spans": [[begin, begin + 2_000_000, begin + held]]}  # fmt: skip
            connection.execute("INSERT INTO notice VALUES (2, 'stop', 2, ?, ?)", (call, json.dumps(facts)))
            writer.now += held / MS
        writer.end()
        connection.close()
        paths.append((folder / f"{name}.pfrec", call))
    return paths


def test_every_number_is_that_of_the_program_without_the_stop(pair):
    (plain, call), (held, _) = pair
    ledgers = [pfd.open(path).ledger() for path in (plain, held)]
    for one, other in zip(ledgers[0].rows, ledgers[1].rows):
        assert one.times == other.times
        for node, same in zip(one.nodes, other.nodes):
            assert node.times == same.times
            assert node.forward.parts == same.forward.parts
    before, after = (pfd.open(path).call(call) for path in (plain, held))
    assert (before.duration_ns, before.gil) == (after.duration_ns, after.gil)
    assert after.stopped_ns == HELD
    assert str(pfd.open(plain).contention()) == str(pfd.open(held).contention())
    for one, other in zip(make_stages(Reader(plain)), make_stages(Reader(held)), strict=True):
        assert one.python_share == pytest.approx(other.python_share, rel=0.02)
        assert one.at_once == pytest.approx(other.at_once, rel=0.02)


def test_the_panel_gets_the_same_numbers_the_stop_and_a_folded_axis(pair):
    (plain, call), (held, _) = pair
    pages = []
    for path in (plain, held):
        answers = Answers(path)
        with answers.reading():
            overview, arrays = answers.ask("overview", {"width": 400})
            ledger, _ = answers.ask("ledger", {})
            gil, _ = answers.ask("gil", {})
            detail, _ = answers.ask("call", {"id": call})
            row = next(row for row in answers.ask("calls", {"sort": "duration", "descending": True})[0]["rows"])
            pages.append((overview, arrays, ledger, gil, detail, row))
    (_, before, plain_ledger, plain_gil, plain_detail, plain_row), (overview, after, ledger, gil, detail, row) = pages
    names = ("mean_ns", "p95_ns", "total_ns", "share", "parts")
    assert [[one[name] for name in names] for one in ledger["rows"]] == [
        [one[name] for name in names] for one in plain_ledger["rows"]
    ]
    assert row["duration_ns"] == plain_row["duration_ns"]
    assert detail["duration_ns"] == plain_detail["duration_ns"]
    assert detail["gil"] == plain_detail["gil"]
    assert detail["stopped_ns"] == HELD
    queued, stop = overview["stops"]
    assert (queued["queued"], stop["queued"], stop["call"]) == (True, False, call)
    assert stop["end_ns"] - queued["start_ns"] == HELD
    [[start, end]] = overview["folds"]
    assert queued["start_ns"] <= start < end <= stop["end_ns"]
    assert end - start == pytest.approx(HELD, rel=0.01)
    # On the folded axis the picture is that of the program without the stop.
    length = overview["end_ns"] - (end - start)
    assert float(folded(np.array([overview["end_ns"]]), overview["folds"])[0]) == length
    assert np.abs(before["waiting"].sum() - after["waiting"].sum()) < 0.1 * before["waiting"].sum()
    assert sum(gil["series"]["held"]) == pytest.approx(sum(plain_gil["series"]["held"]), rel=0.05)


def test_a_call_that_is_held_now_is_named_and_chosen(tmp_path):
    connection = empty(tmp_path / "now.pfrec", state="recording")
    writer = Writer(connection, values="none")
    writer.steps(2)
    connection.execute("UPDATE call SET end_ns = NULL, status = 'running' WHERE id = 30")
    facts = {"why": "breakpoint 1", "start_ns": ORIGIN + 300 * MS, "end_ns": None}
    connection.execute("INSERT INTO notice VALUES (1, 'held', 2, 30, ?)", (json.dumps(facts),))
    connection.close()
    answers = Answers(tmp_path / "now.pfrec")
    with answers.reading():
        overview, _ = answers.ask("overview", {"width": 100})
        assert overview["first"] == 30
        assert overview["stops"][0]["end_ns"] is None
        assert overview["folds"] == []
        assert answers.ask("call", {"id": 30})[0]["held_here"]
        assert overview["unfinished"] == "still running"
        assert overview["end_ns"] > overview["stops"][-1]["start_ns"], "there is room to see that it goes on"


def test_older_recordings_say_a_stop_once_and_without_spans():
    [stop] = stops_of([(3, '{"why": "w", "start_ns": 5, "end_ns": 9}')])
    assert (stop.held_ns, stop.spans, stop.open) == (4, ((5, 5, 9),), False)


def test_a_call_that_a_person_ended_is_no_error(tmp_path):
    path = tmp_path / "ended.pfrec"
    connection = empty(path)
    writer = Writer(connection, values="none")
    writer.steps(3)
    writer.end()
    connection.execute("INSERT INTO failure VALUES (77, 'Abort', 'interrupted at a pyfunc_debug stop', '', '[]')")
    connection.execute("UPDATE call SET status = 'error', failure = 77 WHERE id = 5")
    sql = "SELECT start_ns, end_ns FROM call WHERE id = 5"
    start, end = connection.execute(sql).fetchone()
    facts = {"why": "w", "start_ns": start, "end_ns": end, "interrupted": True}
    connection.execute("INSERT INTO notice VALUES (1, 'stop', 1, 5, ?)", (json.dumps(facts),))
    connection.close()
    recording = pfd.open(path)
    assert not [one for one in recording.findings() if one.rule == "body-raised"]
    assert sum(node.errors for row in recording.ledger().rows for node in row.nodes) == 0
    assert "1 ended by hand at a stop" in str(recording.ledger())
    answers = Answers(path)
    with answers.reading():
        assert answers.ask("overview", {})[0]["errors"] == 0
        assert answers.ask("call", {"id": 5})[0]["status"] == "interrupted"


def test_findings_of_time_do_not_have_it(pair):
    (plain, _), (held, _) = pair

    def took(path):
        with sqlite3.connect(path) as connection:
            from pyfunc_debug.pfrec.stopped import HELD_SQL

            sql = f"SELECT total(end_ns - start_ns - coalesce(h.ns, 0)) FROM call LEFT JOIN {HELD_SQL} AS h ON h.call = call.id"
            return connection.execute(sql).fetchone()[0]

    assert took(plain) == took(held)
