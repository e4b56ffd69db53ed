"""What could not be stored is counted by its true reason; recording goes on as soon as the file takes rows again."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.pfrec import Reader, writer
from pyfunc_debug.recorder import Budget, Recorder
from pyfunc_debug.values import Policies
from tests.limits import HANG_S
from tests.recorder.test_recorder import call, node

ROOT = Path(__file__).parents[2]
MOVED = "pyfunc_debug: the recording {0}/a.pfrec was moved to {0}/b.pfrec: it goes on there"


class Small(Budget):
    queue_calls = 100


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_BUSY_S", 0.01)
    one = Recorder(str(tmp_path / "a.pfrec"), Policies("summary"), Small(64_000_000), {"pid": 1})
    one.said = []
    one.heard = threading.Event()
    one._worker.say = lambda text: (one.said.append(text), one.heard.set())
    one.node_made(node("graph"))
    yield one
    if one._hot.accepting:
        one.close({})


def calls(recorder, count):
    for _ in range(count):
        call(recorder, "graph", np.arange(3.0), result=np.arange(3.0))


def written(recorder):
    """All that is queued is in the file, however often it has to be tried."""
    while not recorder.flush(HANG_S):
        pass


def test_a_lock_of_another_is_waited_out_and_what_finds_no_room_meanwhile_is_named(recorder):
    calls(recorder, 10)
    written(recorder)
    with contextlib.closing(sqlite3.connect(recorder.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        calls(recorder, 1)
        assert recorder.heard.wait(HANG_S)
        calls(recorder, 300)
        other.execute("ROLLBACK")
    written(recorder)
    calls(recorder, 10)
    assert recorder.close({}) == {"troubles": {}, "stopped": ""}
    recording = Recording(recorder.path)
    dropped, stored = recording.meta["dropped"], recording.reader.counts()["call"]
    assert dropped["counted"] == 321 == stored + dropped["calls"]
    assert dropped["reasons"] == {"calls": {"locked": 200}, "values": {}, "runs": {}}
    assert stored == 121
    assert "200 calls were counted but not stored: another process had locked the file" in str(recording.ledger())
    assert len(recorder.said) == 2
    assert "waits (locked)" in recorder.said[0]


def test_a_lock_that_stays_to_the_end_is_given_up_and_the_program_goes_on(recorder, monkeypatch):
    monkeypatch.setattr("pyfunc_debug.recorder.worker._LOCK_PATIENCE_S", 0.0)
    calls(recorder, 10)
    written(recorder)
    with contextlib.closing(sqlite3.connect(recorder.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        calls(recorder, 20)
        assert "another process had locked the file" in recorder.close({})["stopped"]
    assert recorder._rows.allowance.losses.report()["reasons"]["calls"] == {"locked": 20}


def test_a_deleted_file_is_said_at_once_and_nothing_of_anothers_is_touched(recorder, tmp_path):
    calls(recorder, 10)
    written(recorder)
    os.unlink(recorder.path)
    written(recorder)
    assert recorder.said == [
        f"pyfunc_debug: the recording {recorder.path} was deleted while it is written: "
        "from now on calls are only counted"
    ]
    calls(recorder, 50)
    other = Recorder(recorder.path, Policies("summary"), Budget(64_000_000), {"pid": 1})
    other.node_made(node("graph"))
    calls(other, 7)
    assert "was deleted while it was written" in recorder.close({})["stopped"]
    assert recorder._rows.allowance.losses.report()["reasons"]["calls"] == {"file deleted": 50}
    calls(other, 7)
    assert other.close({}) == {"troubles": {}, "stopped": ""}
    assert Recording(other.path).reader.counts()["call"] == 14
    assert os.listdir(tmp_path) == ["a.pfrec"]


def test_a_moved_file_is_gone_on_with_where_it_is(recorder, tmp_path):
    calls(recorder, 10)
    written(recorder)
    os.rename(recorder.path, tmp_path / "b.pfrec")
    calls(recorder, 10)
    written(recorder)
    calls(recorder, 10)
    written(recorder)
    assert {"b.pfrec", "b.pfrec-wal"} <= set(os.listdir(tmp_path))
    calls(recorder, 10)
    assert recorder.close({}) == {"troubles": {}, "stopped": ""}
    assert recorder.path == str(tmp_path / "b.pfrec")
    assert recorder.said == [MOVED.format(tmp_path)]
    assert os.listdir(tmp_path) == ["b.pfrec"]
    assert Recording(recorder.path).reader.counts()["call"] == 40


def test_a_file_that_is_moved_while_others_read_it_is_whole_there(recorder, tmp_path):
    calls(recorder, 10)
    written(recorder)
    with contextlib.closing(sqlite3.connect(recorder.path, isolation_level=None)) as other:
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM call").fetchone() == (10,)
        os.rename(recorder.path, tmp_path / "b.pfrec")
        calls(recorder, 10)
        written(recorder)
        assert {name[:1] for name in os.listdir(tmp_path)} == {"b"}  # with its log and its ring
        with contextlib.closing(Reader(tmp_path / "b.pfrec")) as late:
            assert late.counts()["call"] == 20
        calls(recorder, 10)
        assert recorder.close({}) == {"troubles": {}, "stopped": ""}
        assert other.execute("SELECT count(*) FROM call").fetchone() == (10,)
        other.execute("ROLLBACK")
        assert other.execute("SELECT count(*) FROM call").fetchone() == (30,)
    assert recorder.said == [MOVED.format(tmp_path)]
    recording = Recording(recorder.path)
    assert recording.reader.counts()["call"] == 30
    assert recording.reader.rows("PRAGMA integrity_check") == [("ok",)]
    assert recording.meta["state"] == "complete"


def test_a_recording_that_takes_the_name_of_a_moved_one_is_left_alone(recorder, tmp_path):
    calls(recorder, 10)
    written(recorder)
    other = sqlite3.connect(recorder.path, isolation_level=None)  # in the way, until the name is taken
    with contextlib.closing(other):
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM call").fetchone()
        os.rename(recorder.path, tmp_path / "b.pfrec")
        calls(recorder, 10)
        written(recorder)
        second = Recorder(str(tmp_path / "a.pfrec"), Policies("summary"), Small(64_000_000), {"pid": 1})
        second.node_made(node("graph"))
        calls(second, 7)
        written(second)
        parts = {name for name in os.listdir(tmp_path) if name.startswith("a")}
    calls(recorder, 10)
    assert recorder.close({}) == {"troubles": {}, "stopped": ""}
    assert {name for name in os.listdir(tmp_path) if name.startswith("a")} == parts
    calls(second, 7)
    assert second.close({}) == {"troubles": {}, "stopped": ""}
    assert sorted(os.listdir(tmp_path)) == ["a.pfrec", "b.pfrec"]
    assert Recording(tmp_path / "a.pfrec").reader.counts()["call"] == 14
    assert Recording(tmp_path / "b.pfrec").reader.counts()["call"] == 30


def test_one_odd_row_costs_itself_alone(recorder):
    recorder.node_made(node("gradient", gradient_of="graph"))
    with contextlib.closing(sqlite3.connect(recorder.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # so that all of them come into one batch
        calls(recorder, 1)
        assert recorder.heard.wait(HANG_S)
        ticket = recorder.enter("gradient", ())
        ticket.pair = (object(), None, (), ())  # which SQLite does not know
        recorder.leave(ticket, None)
        calls(recorder, 3)
        other.execute("ROLLBACK")
    assert list(recorder.close({})["troubles"].values()) == [1]
    recording = Recording(recorder.path)
    assert recording.meta["dropped"]["reasons"]["calls"] == {"batch failed": 1}
    assert [one.id for one in recording.calls()] == [1, 3, 4, 5]
    assert all(len(one.inputs) == 1 for one in recording.calls())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["limit", "tmpfs"])
def test_a_full_disk_is_waited_out_and_the_last_words_are_written(tmp_path, how):
    if how == "tmpfs" and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "x", tmp_path]).returncode:
        pytest.skip("this user may not mount a tmpfs: the limit on the size of files does the same")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.faults.disk", tmp_path, *(["--limit"] if how == "limit" else [])],
            cwd=ROOT, capture_output=True, text=True, timeout=HANG_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    finally:
        if how == "tmpfs":
            subprocess.run(["umount", "-l", tmp_path], check=True)
    found = json.loads(done.stdout)
    dropped = found["dropped"]
    assert found["begun"] == dropped["counted"] == found["stored"] + dropped["calls"]
    why, words = {
        "tmpfs": ("disk full", "the disk was full"),
        "limit": ("file size limit", "a limit on the size of files was reached (ulimit -f)"),
    }[how]
    assert dropped["reasons"]["calls"] == {why: dropped["calls"]}
    assert dropped["calls"] >= 300
    assert found["resumed"]
    assert found["files"] == ["disk.pfrec"]
    assert (found["state"], found["stopped"]) == ("stopped early", f"recording stopped: {words}")
    assert f"{dropped['calls']:,} calls were counted but not stored: {words}" in " ".join(found["footer"].split())
    assert found["troubles"] == {}
