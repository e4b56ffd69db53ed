"""Sampling: what is stored is the part that was asked for and what must not be missed; all is counted."""

from __future__ import annotations

import numpy as np
import pytest

from pyfunc_debug.analysis.ledger import make_ledger
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.events import RunFacts
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.recorder.sampling import parse_sampling
from tests.recorder.test_recorder import call, finish, make, node  # noqa: F401 - `make` is a fixture

LONG_NS = 10**15


def sampled(recorder, sample, when=None):
    """Has a recorder sample as if it had been made so."""
    asked = parse_sampling(sample, when)
    recorder._hot.first, recorder._hot.every = asked.first, asked.every
    recorder._worker._running = lambda batch: None  # else it may look while a test makes a call slow
    return recorder


def slow_call(recorder, ns):
    ticket = recorder.enter("t", ())
    ticket.start_ns -= ns
    recorder.leave(ticket, None)


def test_every_hundredth_call_is_stored_and_what_must_not_be_missed(make):  # noqa: F811
    recorder = sampled(make(values="summary"), "4+1/100")
    recorder.node_made(node("t"))
    for _ in range(4):
        slow_call(recorder, LONG_NS)  # now no pause of this machine makes a call slow
    for number in range(5, 501):
        if number == 50:
            call(recorder, "t", error=ValueError("x"))
        elif number == 60:
            call(recorder, "t", np.ones(3, np.float32), result=np.array([1, np.nan], np.float32))
        elif number == 70:
            slow_call(recorder, 2 * LONG_NS)
        elif number == 80:
            slow_call(recorder, LONG_NS // 2)
        else:
            call(recorder, "t", result=np.ones(3, np.float32))
    recording = finish(recorder)
    stored = {one.id: one for one in recording.calls()}
    assert set(stored) == {1, 2, 3, 4, 50, 60, 70, *range(104, 501, 100)}
    assert recording.reader.extra_calls() == {50: "failed", 60: "NaN", 70: "slow"}
    assert (stored[50].status, stored[60].outputs[0].nan, stored[60].inputs) == ("error", 1, ())
    sums = make_ledger(recording.reader).rows[0].nodes[0].forward
    assert (sums.calls, sums.errors, sums.times.count) == (500, 1, 500)
    assert sums.times.total_ns >= 4 * LONG_NS + 2 * LONG_NS + LONG_NS // 2, (
        "time of calls that were left out is missing"
    )
    assert recording.meta["dropped"]["reasons"]["calls"] == {"sampled": 500 - 11}
    said = next(one for one in recording.findings() if one.rule == "nan-born")
    assert "returned NaN in 1 of 11 calls" in said.message  # not: from finite inputs, which are not in the file
    assert "inputs were not stored" in said.evidence[0]
    assert said.evidence[-1] == "numbers of calls are of the 11 that were stored; 489 more were only counted"


def test_a_call_that_is_shown_while_it_runs_is_stored(make):  # noqa: F811
    recorder = sampled(make(), "4+1/1000")
    recorder.node_made(node("t"))
    for _ in range(4):
        slow_call(recorder, LONG_NS)
    del recorder._worker._running
    ticket = recorder.enter("t", ())
    ticket.start_ns -= 10**9
    recorder.flush()
    recorder.leave(ticket, None)
    recording = finish(recorder)
    assert [one.status for one in recording.calls()] == ["ok"] * 5
    assert recording.reader.extra_calls() == {5: "long"}


def test_calls_are_stored_only_in_the_steps_that_are_asked_for(make):  # noqa: F811
    from pyfunc_debug.recorder.sampling import Steps

    recorder = sampled(make(), None, "step % 10 == 3")
    recorder._steps = Steps(parse_sampling(None, "step % 10 == 3"))
    recorder.node_made(node("t"))
    for number in range(1, 31):
        recorder.run_began(RunFacts(number, "forward", "train", None, None, None, 1, 0))
        slow_call(recorder, LONG_NS if number < 5 else 1)
    stored = {one.id for one in finish(recorder).calls()}
    assert stored - {1, 2, 4} == {3, 13, 23}


def test_a_recording_of_before_there_was_sampling_is_read(tmp_path, make):  # noqa: F811
    recorder = make()
    recorder.node_made(node("t"))
    call(recorder, "t")
    recording = finish(recorder)
    recording.close()
    import sqlite3

    with sqlite3.connect(recorder.path) as db:
        db.execute("DROP TABLE extra")
    db.close()
    reader = Reader(recorder.path)
    assert (reader.extra_calls(), make_ledger(reader).calls) == ({}, 1)
    reader.close()


@pytest.mark.parametrize(
    ("sample", "when"),
    [("1/0", None), ("2/3", None), ("often", None), (None, "steps > 1"), (None, "1 +"), (None, "1/0")],
)
def test_what_makes_no_sense_is_refused(sample, when):
    with pytest.raises(BadOptionError):
        parse_sampling(sample, when)


def test_of_a_large_output_each_call_looks_at_another_part(make):  # noqa: F811
    recorder = sampled(make(values="summary"), "4+1/1000")
    recorder.node_made(node("t"))
    for _ in range(4):
        slow_call(recorder, LONG_NS)
    whole = np.full((1 << 14) // 4, 1, np.float32)
    whole[-1] = np.nan  # of this size all is looked at
    large = np.full((1 << 20) // 4, 1, np.float32)
    large[12345] = np.nan
    call(recorder, "t", result=whole)
    call(recorder, "t", result=np.full_like(large, np.nan))
    for _ in range(512):  # as many parts, of a body that takes no time
        call(recorder, "t", result=large)
    assert [*finish(recorder).reader.extra_calls().values()] == ["NaN"] * 3
