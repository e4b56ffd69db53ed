"""Answers agree with the recording, with each other, and with the ledger of the terminal."""

from __future__ import annotations

import json
import os
import sqlite3

import numpy as np
import pytest

from pyfunc_debug.analysis.ledger import make_ledger
from pyfunc_debug.analysis.tables import ledger_text
from pyfunc_debug.errors import BadOptionError, BadRecordingError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Finding
from pyfunc_debug.report.answers import Answers
from tests.report import recordings

FINDINGS = [
    Finding("body-raised", "error", 1, (301, 602), "`decode` raised 3 times", "ds.ignore_errors()", recordings.FILE, 8),
    Finding("retrace", "warning", None, (), "traced twice", "", recordings.FILE, recordings.line("@tf.function")),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return recordings.small(tmp_path_factory.mktemp("recordings") / "train.pfrec")


@pytest.fixture
def ask(path):
    answers = Answers(path, findings=lambda: FINDINGS)
    with answers.reading():

        def question(method, **params):
            result, arrays = answers.ask(method, params)
            json.dumps(result, allow_nan=False)  # everything travels as JSON
            return result, arrays

        yield question


def test_every_number_of_the_ledger_is_the_terminals(ask, path):
    rows = {row["key"]: row for row in ask("ledger")[0]["rows"]}
    reader = Reader(path)
    expected = make_ledger(reader)
    reader.close()
    for function in expected.rows:
        row = rows[f"f{function.function.id}"]
        assert (row["traced"], row["runs"]) == (function.traces, function.runs)
        assert row["p95_ns"] == function.times.p95_ns
    # The panel shows the nodes that a retrace made anew as one: its sums are the terminal's.
    for key in ("n1", "n2", "n3"):
        nodes = [node for function in expected.rows for node in function.nodes if node.node.id in rows[key]["nodes"]]
        assert rows[key]["calls"] == sum(node.calls for node in nodes)
        assert rows[key]["errors"] == sum(node.errors for node in nodes)
        total = sum(node.times.total_ns for node in nodes)
        assert rows[key]["mean_ns"] == pytest.approx(total / rows[key]["calls"])
    assert rows["n3g"]["calls"] == sum(node.gradients for function in expected.rows for node in function.nodes)


def test_names_kinds_and_notes_are_the_terminals(ask, path):
    rows = {row["key"]: row for row in ask("ledger")[0]["rows"]}
    reader = Reader(path)
    expected = make_ledger(reader)
    reader.close()
    lines = ledger_text(expected, 200).splitlines()
    notes = 0
    for function in expected.rows:
        assert any(line.startswith(rows[f"f{function.function.id}"]["name"]) for line in lines)
        for node in function.nodes:
            row = next(rows[key] for key in rows if key.startswith("n") and node.node.id in rows[key]["nodes"])
            assert any(f"{row['name']}  {row['kind']} {row['place']}" in line for line in lines)
            for note in node.notes:
                notes += 1
                assert note in row["why"]
                assert any(note in line for line in lines)
    assert notes  # one node of the recording has no calls


def test_a_row_with_a_mark_says_why(ask):
    rows = {row["key"]: row for row in ask("ledger")[0]["rows"]}
    assert rows["n1"]["severity"] == "error"
    assert rows["n1"]["why"][0] == f"{FINDINGS[0].rule}: {FINDINGS[0].message}", "a mark is a finding of the doctor"
    assert rows["f1"]["severity"] == "warning"
    assert any("lr, a Python number" in why for why in rows["f1"]["why"])
    assert all(row["why"] for row in rows.values() if row["severity"])


def test_threads_that_python_made_and_nobody_named_have_the_pool_of_what_they_run(tmp_path):
    path = tmp_path / "epochs.pfrec"
    connection = recordings.empty(path)
    names = ["Thread-3 (evaluate)", "Thread-9 (evaluate)", "reader", "ThreadPoolExecutor-0_0"]
    connection.executemany("INSERT INTO thread VALUES (?, ?, ?)", [(i, n, i) for i, n in enumerate(names, 10)])
    at = recordings.ORIGIN
    runs = [(1, 10, at + 5, 20), (2, 10, at + 50, 9), (3, 11, at + 70, None)]
    into = "INSERT INTO run (id, thread, start_ns, duration_ns, kind, name) VALUES (?, ?, ?, ?, 'forward', 'step')"
    connection.executemany(into, runs)
    connection.close()
    answers = Answers(path)
    with answers.reading():
        found = {one["id"]: one for one in answers.ask("overview", {})[0]["threads"]}
    assert [found[i]["pool"] for i in (1, 2, 10, 11, 12, 13)] == [None, "inter-op", "evaluate", "evaluate", None, None]
    assert [found[i]["python"] for i in (1, 2, 10)] == [True, False, True]
    assert [(found[i]["first_ns"], found[i]["last_ns"]) for i in (10, 11)] == [(5, 59), (70, None)]


def test_a_badge_is_a_finding_once_the_doctor_has_looked(path):
    answers = Answers(path, findings=lambda: FINDINGS[1:])
    with answers.reading():
        answers.ask("overview", {})
        rows = {row["key"]: row for row in answers.ask("ledger", {})[0]["rows"]}
    assert {key for key, row in rows.items() if row["severity"]} == {"f1"}
    assert any("3 of 880 calls failed" in why for why in rows["n1"]["why"]), "said, without a badge"


def test_runs_that_nobody_counts_are_none(ask):
    rows = {row["key"]: row for row in ask("ledger")[0]["rows"]}
    assert rows["f2"]["runs"] is None
    assert rows["n1"]["runs"] is None


def test_shares_add_up_to_the_whole(ask):
    shares = [row["share"] for row in ask("ledger")[0]["rows"] if row["share"] is not None]
    assert sum(shares) == pytest.approx(1)


def test_a_stretch_with_few_calls_comes_as_calls(ask, path):
    result, arrays = ask("timeline", start_ns=5e8, end_ns=6e8, width=500)
    assert result["mode"] == "calls"
    with sqlite3.connect(path) as connection:
        begins = connection.execute(
            "SELECT call.id FROM call JOIN gil ON gil.call = call.id"
            " WHERE start_ns - wait_ns - ?1 <= 6e8 AND end_ns - ?1 >= 5e8",
            (recordings.ORIGIN,),
        ).fetchall()
    assert sorted(arrays["id"].tolist()) == sorted(i for (i,) in begins)


def test_many_calls_come_as_sums_that_lose_no_time(tmp_path):
    path = recordings.large(tmp_path / "many.pfrec", 8000)
    answers = Answers(path)
    with answers.reading():
        start, end = answers.extent()
        result, arrays = answers.ask("timeline", {"start_ns": start, "end_ns": end, "width": 700})
        assert result["mode"] == "bins"
        bins = arrays["bins"]
        assert bins.shape == (len(result["threads"]), 4, 700)
        columns = answers.columns
        step = (end - start) / 700
        thread = result["threads"].index(3)
        mask = columns.thread == 3
        # Released time and reacquiring come off the end of a body; what is left is held.
        held = columns.duration[mask].sum() - np.nansum(columns.released[mask])
        assert bins[thread, 0].sum() * step == pytest.approx(held, rel=0.02)
        assert len(arrays["mark_id"]) == int((columns.status == 1).sum())


@pytest.mark.parametrize("sort", ["id", "start", "wait", "held", "released", "duration", "thread", "status"])
@pytest.mark.parametrize("descending", [False, True])
def test_pages_are_slices_of_one_order(ask, sort, descending):
    common = {"nodes": [1], "kind": "forward", "sort": sort, "descending": descending}
    whole = ask("calls", **common, limit=1000)[0]["rows"]
    pages = [
        row for offset in range(0, 880, 100) for row in ask("calls", **common, offset=offset, limit=100)[0]["rows"]
    ]
    assert [row["id"] for row in pages] == [row["id"] for row in whole]
    assert len(whole) == 880
    if sort in ("wait", "held", "released", "duration"):
        numbers = [row[f"{sort}_ns"] for row in whole]
        assert numbers == sorted(numbers, reverse=descending)
    found = ask("calls", **common, offset=0, limit=1, find=whole[123]["id"])[0]
    assert found["index"] == 123


def test_failed_calls_name_their_exception(ask):
    rows = ask("calls", nodes=[1], status="error")[0]["rows"]
    assert [row["failure"] for row in rows] == ["ValueError"] * 3


def test_a_call_is_told_in_full(ask, path):
    rows = ask("calls", nodes=[3], kind="forward", limit=3)[0]["rows"]
    call = ask("call", id=rows[1]["id"])[0]
    assert call["previous"] == rows[0]["id"]
    assert call["next"] == rows[2]["id"]
    assert call["run"]["trace"] == 1
    assert [value["role"] for value in call["values"]] == ["in"] * 3 + ["out", "grad in"] + ["grad out"] * 3
    values = {(value["role"], value["path"]): value for value in call["values"]}
    y = values["in", "y"]
    assert y["picture"]["kind"] == "rgb"
    assert len(recordings.decoded(y["picture"]["data"])) == 48 * 48 * 3
    assert values["in", "delta"]["delta"] == {"kind": "equal"}
    assert y["delta"]["kind"] == "max"
    assert y["delta"]["value"] > 0
    assert values["grad out", "of y"]["picture"]["kind"] == "diverging"
    assert call["gil"]["grade"] == "native"
    assert call["gil"]["resolution_ns"] == 10_000, "of its own grade: the overview may not know any yet"
    assert call["trace_stack"][0]["function"] == "train_step", "the innermost frame first"


def test_the_first_call_has_nothing_to_be_compared_with(ask):
    first = ask("calls", nodes=[2], limit=1)[0]["rows"][0]["id"]
    call = ask("call", id=first)[0]
    assert call["previous"] is None
    assert all(value["delta"] is None for value in call["values"])


def test_a_failure_keeps_its_message_and_frames(ask):
    call = ask("call", id=301)[0]
    assert call["failure"]["type"] == "ValueError"
    assert "<b>broken</b>" in call["failure"]["message"]
    assert call["failure"]["frames"][-1]["function"] == "decode"


def test_the_source_has_its_marks(ask):
    page = ask("source", file=recordings.FILE)[0]
    bodies = {mark["name"]: mark for mark in page["marks"] if mark["kind"] == "body"}
    assert bodies["decode"]["count"] == 880
    lines = ["".join(text for _, text in pieces) for pieces in page["lines"]]
    assert page["lines"][bodies["decode"]["line"] - 1] == [("k", "def"), ("", " decode(path):")]
    assert lines[bodies["decode"]["end"] - 1].strip() == "return tf.io.decode_jpeg(raw)"
    sites = {mark["name"]: mark for mark in page["marks"] if mark["kind"] == "site"}
    assert "tf.py_function(log_huber" in lines[sites["log_huber"]["line"] - 1]
    assert sites["log_huber"]["gradients"] == 110
    assert {mark["severity"] for mark in page["marks"] if mark["kind"] == "finding"} == {"error", "warning"}


def test_what_was_not_measured_is_none_not_zero(tmp_path):
    path = recordings.small(tmp_path / "plain.pfrec", steps=5, gil=False, values="none")
    answers = Answers(path)
    with answers.reading():
        assert answers.ask("overview", {})[0]["gil"] is None
        assert answers.ask("overview", {})[0]["findings"] is None
        assert answers.ask("gil", {})[0]["grade"] is None
        assert answers.ask("findings", {})[0]["findings"] is None
        assert answers.ask("call", {"id": 3})[0]["gil"] is None
        assert answers.ask("calls", {"limit": 1})[0]["rows"][0]["wait_ns"] is None
        assert all(row["parts"] is None for row in answers.ask("ledger", {})[0]["rows"])


def test_a_growing_file_is_followed_and_left_open_to_its_writer(tmp_path):
    connection = recordings.empty(tmp_path / "live.pfrec", state="recording")
    connection.execute("UPDATE meta SET value = ? WHERE key = 'pid'", (str(os.getpid()),))
    writer = recordings.Writer(connection, values="none")
    answers = Answers(tmp_path / "live.pfrec")
    with answers.reading():
        assert answers.ask("overview", {})[0]["calls"] == 0
        assert answers.ask("overview", {})[0]["state"] == "recording"
        assert answers.ask("timeline", {"start_ns": 0, "end_ns": 1e9})[0]["mode"] == "calls"
    assert not answers.changed()
    writer.steps(3)
    assert answers.changed()
    with answers.reading():
        assert answers.ask("overview", {})[0]["calls"] == 54
    writer.end()
    # A reader that stayed would keep SQLite from folding the log back.
    assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    connection.close()
    with answers.reading():
        assert answers.ask("overview", {})[0]["state"] == "complete"


def test_a_program_that_died_is_said_to_be_interrupted(tmp_path):
    import socket

    connection = recordings.empty(tmp_path / "dead.pfrec", state="recording")
    connection.execute("UPDATE meta SET value = '999999999' WHERE key = 'pid'")
    connection.execute("UPDATE meta SET value = ? WHERE key = 'host'", (json.dumps(socket.gethostname()),))
    connection.close()
    answers = Answers(tmp_path / "dead.pfrec")
    with answers.reading():
        overview = answers.ask("overview", {})[0]
        assert (overview["state"], overview["unfinished"]) == ("interrupted", "had not ended")


def test_bad_questions_are_errors_for_people(ask):
    with pytest.raises(BadOptionError, match="reload the page"):
        ask("everything")
    with pytest.raises(BadOptionError, match="timeline"):
        ask("timeline", nonsense=1)
    assert ask("call", id=10**9)[0] is None
    assert ask("source", file="/etc/passwd")[0] is None, "only what the recording holds"


def test_a_file_that_is_no_recording_is_refused(tmp_path):
    (tmp_path / "x.pfrec").write_text("no")
    with pytest.raises(BadRecordingError):
        Answers(tmp_path / "x.pfrec")
    with pytest.raises(BadRecordingError):
        Answers(tmp_path / "missing.pfrec")


def test_a_gradient_of_another_calls_tape_is_told(tmp_path):
    path = recordings.small(tmp_path / "tapes.pfrec", steps=3)
    with sqlite3.connect(path) as connection:
        wrong, forward = connection.execute("SELECT max(id), max(forward) FROM call WHERE kind = 'gradient'").fetchone()
        connection.execute("UPDATE call SET tape = forward WHERE kind = 'gradient'")
        connection.execute("UPDATE call SET tape = 17 WHERE id = ?", (wrong,))
    answers = Answers(path)
    with answers.reading():
        assert answers.ask("call", {"id": wrong})[0]["tape"] == 17
        assert answers.ask("call", {"id": wrong})[0]["forward"] == forward
        assert answers.ask("call", {"id": forward})[0]["gradients"] == [wrong]
        assert answers.ask("call", {"id": 18})[0]["tape"] is None


def test_lines_have_their_counts_and_their_prints(tmp_path):
    path = recordings.small(tmp_path / "train.pfrec", steps=5, values="none")
    answers = Answers(path)
    with answers.reading():
        page = answers.ask("source", {"file": recordings.FILE})[0]
        assert (page["counted"], page["counts"]) == (False, [])
    recordings.count_lines(path)
    with answers.reading():
        page = answers.ask("source", {"file": recordings.FILE})[0]
    assert page["counted"]
    counts = {one["line"]: one for one in page["counts"]}
    body, traced = recordings.line("x = x.astype"), recordings.line('print("train_step"')
    assert (counts[body]["traced"], counts[body]["ran"]) == ("", "880x")
    assert counts[body + 2]["ran"] == "1,000+x", "at least"
    assert (counts[traced]["traced"], counts[traced]["ran"]) == ("2x", "-"), "not counted is never 0"
    assert counts[traced + 3]["words"] == ["graph if; in loop@3"]
    assert counts[recordings.line("ds = ds.map(lambda x")]["words"] == ["the lambda: 1x at trace"]
    assert counts[traced]["prints"] == [[None, "train_step (8, 64, 64, 3) 0.001"], [None, "train_step again"]]
    assert [call for call, _ in counts[body + 2]["prints"]] == [2, 4, 6]
    assert counts[body + 2]["more_prints"] == 2
    assert body - 1 not in counts
