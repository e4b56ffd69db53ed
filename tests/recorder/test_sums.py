"""The sums that the recorder keeps are those of the calls that it stores."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.events import Body
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
    slow = pfd.open([recorder.path]).ledger()
    assert quick.processes == slow.processes
    assert [(row.body, row.calls, row.errors) for row in quick.rows] == [
        (row.body, row.calls, row.errors) for row in slow.rows
    ]
    for one, other in zip(quick.rows, slow.rows, strict=True):
        mine, theirs = one.by[0], other.by[0]
        assert replace(mine.times, p95_ns=None) == replace(theirs.times, p95_ns=None)
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
