"""One ledger over several recordings: what is summed, and who is called a straggler."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sqlite3
from pathlib import Path

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.cli import main
from tests.doctor.recordings import call, node, written

MS = 1_000_000


def recorded(path: Path, role: str, ms: float, calls: int = 10, held: float = 1.0, host: str = "workshop") -> str:
    """A process in which `decode` takes so many milliseconds a call, of which it holds the GIL this share."""
    rows = [
        call(one, start_ns=one * 100 * MS, end_ns=one * 100 * MS + int(ms * MS), cpu_ns=int(ms * MS))
        for one in range(1, calls + 1)
    ]
    gil = [
        {"call": one["id"], "grade": "native", "wait_ns": 0, "held_ns": int(ms * MS * held),
         "released_ns": int(ms * MS) - int(ms * MS * held), "reacquire_ns": 0, "blame": "[]"}
        for one in rows
    ]  # fmt: skip
    meta = {"role": role, "host": host, "gil": {"grade": "native", "why": "self-test passed"}, "pid": 7}
    meta["clock"] = {"monotonic_ns": 0, "wall_ns": 0}
    return written(path, meta=meta, node=[node(body="decode")], call=rows, gil=gil)


def test_bodies_are_summed_and_the_slow_process_is_named_with_what_its_time_is_spent_on(tmp_path):
    for number, ms in enumerate((1.0, 1.1, 6.0)):
        recorded(tmp_path / f"{number}.pfrec", f"worker-{number}", ms, held=0.1 if number == 2 else 1.0)
    ledger = pfd.open([str(tmp_path)]).ledger()
    (row,) = ledger.rows
    assert (row.calls, row.errors, row.slowest) == (30, 0, 2)
    assert row.mean_ns == pytest.approx((10 + 11 + 60) / 30 * MS)
    assert [(one.name, one.calls, one.state) for one in ledger.processes] == [
        ("worker-0", 10, "complete"), ("worker-1", 10, "complete"), ("worker-2", 10, "complete"),
    ]  # fmt: skip
    assert ledger.remarks == (
        "worker-2 is the straggler in decode: 6.00 ms a call, 5.71 times the median of the 2 other processes "
        "(1.05 ms); 5.40 ms of the difference: its body waits or computes with the GIL released: C code, files, "
        "network, sleep",
    )
    text = str(ledger)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "worker-2" in text


@pytest.mark.parametrize(
    ("slow", "calls"),
    [(1.3, 10), (6.0, 4), (1.0, 10)],
    ids=["close to the others", "too few calls to say", "equal"],
)
def test_nobody_is_called_a_straggler_without_reason(tmp_path, slow, calls):
    recorded(tmp_path / "a.pfrec", "worker-0", 1.0)
    recorded(tmp_path / "b.pfrec", "worker-1", slow, calls)
    assert pfd.open([str(tmp_path)]).ledger().remarks == ()


def test_one_long_call_makes_no_straggler(tmp_path):
    recorded(tmp_path / "a.pfrec", "worker-0", 1.0)
    path = recorded(tmp_path / "b.pfrec", "worker-1", 1.0)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE call SET end_ns = start_ns + {90 * MS} WHERE id = 1")  # it loads what the others use
    assert pfd.open([str(tmp_path)]).ledger().remarks == ()


def test_two_processes_of_one_role_are_told_apart(tmp_path):
    paths = [recorded(tmp_path / f"{host}.pfrec", "train", 1.0, host=host) for host in ("ada", "bob")]
    assert [one.name for one in pfd.open(paths).ledger().processes] == ["train (ada, 7)", "train (bob, 7)"]


def test_a_role_that_comes_after_recording_began_is_in_the_file_before_its_end(tmp_path, monkeypatch):
    import tensorflow as tf
    from tensorflow.python.eager import context

    with pfd.record(tmp_path / "a.pfrec") as recording:
        # A launcher that sets this for each of its children in turn is none of them.
        monkeypatch.setenv("TF_CONFIG", '{"cluster": {}, "task": {"type": "worker", "index": 4}}')
        # As a strategy leaves it that found out which worker this is.
        monkeypatch.setattr(context.context(), "_server_def", tf.train.ServerDef(job_name="worker", task_index=3))
        told = {row["key"]: row["value"] for row in recording.sql("SELECT * FROM meta")}
    assert (told["state"], told["role"], told["rank"]) == ('"recording"', '"worker-3"', "3")


@pytest.mark.parametrize("command", ["show .", "doctor .", "diff .", "query . 'SELECT id FROM call'", "report ."])
def test_a_file_that_is_no_recording_hides_none_of_its_folder(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "a.pfrec", "worker-0", 1.0)
    recorded(tmp_path / "b.pfrec", "worker-1", 1.0)
    (tmp_path / "empty.pfrec").touch()
    (tmp_path / "foreign.pfrec").write_bytes(b"PK\x03\x04" + bytes(200))
    os.mkfifo(tmp_path / "pipe.pfrec")
    assert main(shlex.split(command)) == 0
    said = "".join(capsys.readouterr())
    assert "left out: ./empty.pfrec is empty" in said
    assert "left out: ./foreign.pfrec is not a recording of pyfunc_debug" in said
    assert "left out: ./pipe.pfrec is not a file" in said


@pytest.mark.parametrize("command", [
    "show .", "show --json .", "doctor .", "diff .", "query . 'SELECT id FROM call'", "report .",
    "export --format parquet -o lake .",
])  # fmt: skip
@pytest.mark.parametrize("how", ["cut", "table"])
def test_a_damaged_recording_hides_none_of_its_folder(tmp_path, monkeypatch, capsys, command, how):
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        recorded(tmp_path / f"{name}.pfrec", f"worker-{name}", 1.0)
    bad = tmp_path / "b.pfrec"
    if how == "cut":
        bad.write_bytes(bad.read_bytes()[: bad.stat().st_size // 2])
    else:  # seen only by who reads this table
        with contextlib.closing(sqlite3.connect(bad)) as db:
            db.execute("UPDATE call SET node = 'x'")
            db.execute("DELETE FROM summary")
            db.commit()
    if how == "table" and command == "diff .":  # which does not read it, as no value stands in a step
        assert main(shlex.split(command)) == 0
        return
    assert main(shlex.split(command)) == 1
    out, said = capsys.readouterr()
    if "--json" in command:
        told = json.loads(out)
        assert [one["name"] for one in told["processes"]] == ["worker-a", "worker-c"]
        assert [one for one in told["left_out"] if "the recording b.pfrec" in one]
    assert "left out: the recording b.pfrec is" in out + said
    assert main([*shlex.split(command), str(bad)]) == 1  # that was named
    assert "left out" not in "".join(capsys.readouterr())


def test_of_many_files_that_are_left_out_five_are_named(tmp_path, capsys):
    recorded(tmp_path / "a.pfrec", "worker-0", 1.0)
    for number in range(9):
        (tmp_path / f"empty-{number}.pfrec").touch()
    assert main(["show", str(tmp_path)]) == 0
    said = "".join(capsys.readouterr())
    assert said.count("is empty") == 5
    assert "left out: 4 more files" in said


def test_a_folder_with_nothing_but_foreign_files_says_so(tmp_path):
    (tmp_path / "empty.pfrec").touch()
    with pytest.raises(pfd.BadRecordingError, match=r"holds no recording: .*empty\.pfrec is empty"):
        pfd.open([str(tmp_path)])
