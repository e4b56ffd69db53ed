"""The sums that the recorder keeps are those of the calls that it stores."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.events import Body
from pyfunc_debug.pfrec import sums
from pyfunc_debug.pfrec.losses import Loss
from tests.recorder.test_recorder import call, finish, make, node  # noqa: F401 - `make` is a fixture


class Probe(SimpleNamespace):
    grade = "native"

    def answers(self, calls, body, *, final=False):
        return [(call, "native", 10 * call, 20, 30, 40, []) for call, *_ in calls]

    def report(self):
        return {"grade": "native"}


def test_a_job_says_the_same_from_sums_as_from_calls(make):  # noqa: F811
    recorder = make()
    recorder.measure_gil(Probe())
    for token in ("a", "b", "again"):  # two of them on one line, as after a retrace
        recorder.node_made(replace(node(token), body=Body(token[:1], "user.py", ord(token[0]), ("x",), False)))
    recorder.node_made(node("g", "grad_fn", gradient_of="a"))
    for number in range(40):
        call(recorder, ("a", "b", "again", "g")[number % 4], error=ValueError("x") if number % 8 == 0 else None)
    finish(recorder).close()
    quick = pfd.open([recorder.path]).ledger()
    with sqlite3.connect(recorder.path) as db:
        assert db.execute("SELECT count(*), sum(calls), sum(measured) FROM summary").fetchone() == (4, 40, 40)
        db.execute("DELETE FROM summary")
    db.close()
    same_as_calls(recorder.path, quick)
    same_as_calls(recorder.path, pfd.open([recorder.path]).ledger())


def same_as_calls(path, job):
    """Against the ledger of the one recording, which reads each call."""
    with contextlib.closing(pfd.open(path)) as recording:
        nodes = {(node.node.body, node.node.line): node for row in recording.ledger().rows for node in row.nodes}
    assert job.processes[0].calls == sum(node.calls + node.gradients for node in nodes.values())
    assert len(job.rows) == len(nodes)
    for row in job.rows:
        mine, theirs = row.by[0], nodes[row.body, row.line].forward
        assert replace(mine, times=None, parts=None) == replace(theirs, times=None, parts=None, wait="")
        assert replace(mine.times, p95_ns=None) == replace(theirs.times, p95_ns=None)
        assert (mine.parts is None) == (theirs.parts is None)
        if mine.parts is not None:
            assert vars_of(mine.parts) == pytest.approx(vars_of(theirs.parts))


def vars_of(parts):
    return [parts.wait_ns, parts.held_ns, parts.released_ns, parts.inside_ns, parts.body_ns]


def test_a_recording_that_lacks_calls_has_no_sums(make):  # noqa: F811
    recorder = make()
    recorder.node_made(node("t"))
    call(recorder, "t")
    lost = SimpleNamespace(token="t", failure=None, start_ns=0, end_ns=7)
    recorder._rows.allowance.losses.call(lost, Loss.QUEUE)
    recording = finish(recorder)
    assert recording.sql("SELECT calls FROM dropped") == [{"calls": 1}]
    assert recording.sql("SELECT 1 FROM summary") == []


def incomplete(make):  # noqa: F811
    """As a process leaves it that died in a call: without sums, a call lost, one failed, one measured."""
    recorder = make()
    recorder.node_made(node("t"))
    for number in range(4):
        call(recorder, "t", error=ValueError("x") if number == 3 else None)
    recorder._rows.allowance.losses.call(SimpleNamespace(token="t", failure=None, start_ns=0, end_ns=7), Loss.QUEUE)
    finish(recorder).close()
    with sqlite3.connect(recorder.path) as db:
        db.execute("DELETE FROM summary")
        db.execute("UPDATE call SET status = 'running', end_ns = NULL WHERE id = 2")
        db.execute("INSERT INTO gil VALUES (1, 'native', 5, 20, 30, 40, '[]')")
    db.close()
    return recorder.path


def test_a_recording_that_was_not_completed_is_summed_without_reading_each_call(make, monkeypatch):  # noqa: F811
    path = incomplete(make)
    monkeypatch.setattr(sums, "_TOGETHER", 3)
    ledger = pfd.open([path]).ledger()
    one = ledger.rows[0].by[0]
    assert (one.stored, one.dropped, one.failed, one.running, one.times.count) == (4, 1, 1, 1, 4)
    same_as_calls(path, ledger)


@pytest.mark.parametrize(
    "damage",
    [
        "call SET end_ns = x'00'", "call SET start_ns = 1.5", "call SET kind = 'other'", "call SET status = 'gone'",
        "call SET node = 99", "gil SET held_ns = 'long'", "gil SET wait_ns = 4611686018427387904",
    ],
)  # fmt: skip
def test_what_is_summed_must_be_what_a_recording_has(make, damage):  # noqa: F811
    path = incomplete(make)
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE {damage}")
    db.close()
    with pytest.raises(pfd.BadRecordingError, match="damaged"):
        pfd.open([path]).ledger()
