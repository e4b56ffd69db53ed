"""What a recording knows of a stop: when the call was held, by itself; and that a person ended it."""

from __future__ import annotations

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.pfrec.stopped import QUERY, stops_of


def double(x):
    y = x * 2.0
    return y


@pytest.fixture(scope="module")
def run(tf):
    return tf.function(lambda x: tf.py_function(double, [x], tf.float32))


def test_the_time_at_prompts_is_told_apart_and_a_step_is_not_part_of_it(tf, script, run, tmp_path):
    said = script("p 1", "n", "c")
    breakpoint_ = pfd.break_on("*double")
    with pfd.record(tmp_path / "a.pfrec") as recording:
        assert float(run(tf.constant(3.0))) == 6.0
    breakpoint_.remove()
    [stop] = stops_of(recording.reader.rows(f"{QUERY} ORDER BY id"))
    told = recording.reader.rows("SELECT rule FROM notice ORDER BY id")
    assert told == [("held",), ("stop",)], "told when it begins, for who looks on, and at its end"
    assert not stop.open
    assert not said.left
    assert all(asked == got for asked, got, _ in stop.spans), "nothing was before it: it did not queue"
    assert len(stop.spans) == 2  # two prompts: before the step and after it
    assert stop.held_ns == sum(end - asked for asked, _, end in stop.spans)
    call = recording.call(stop.call)
    assert call.stopped_ns == stop.held_ns
    assert 0 <= call.duration_ns == call.end_ns - call.start_ns - stop.held_ns
    assert all(asked >= call.start_ns and end <= call.end_ns for asked, _, end in stop.spans)
    if call.gil is not None and call.gil.held_ns is not None:
        query = "SELECT held_ns, released_ns, ifnull(reacquire_ns, 0) FROM gil WHERE call = ?"
        [measured] = recording.reader.rows(query, (call.id,))
        parts = call.gil.held_ns + call.gil.released_ns + (call.gil.reacquire_ns or 0)
        assert sum(measured) - parts == stop.held_ns, "the stop is in what was measured, and taken off once"


def test_a_call_ended_at_the_prompt_is_no_finding(tf, script, run, tmp_path):
    script("q")
    breakpoint_ = pfd.break_on("*double")
    with pfd.record(tmp_path / "b.pfrec") as recording, pytest.raises(Exception, match="quit at a pyfunc_debug stop"):
        run(tf.constant(3.0))
    breakpoint_.remove()
    assert [call.status for call in recording.calls()] == ["error"]
    assert not [one for one in recording.findings() if one.rule == "body-raised"]
    assert "ended there by hand" in pfd_text(recording)


def test_a_call_of_a_node_that_is_not_recorded_says_nothing_of_another_call(tf, script, run, tmp_path):
    script("c")
    breakpoint_ = pfd.break_on("*double")
    with pfd.record(tmp_path / "c.pfrec", nodes="something_else") as recording:
        run(tf.constant(3.0))
    breakpoint_.remove()
    assert breakpoint_.outcomes == {"stopped": 1}
    assert stops_of(recording.reader.rows(QUERY)) == []


def test_runs_are_numbered_within_their_recording_also_while_a_breakpoint_stays_armed(tf, run):
    breakpoint_ = pfd.break_on("nothing")
    found = []
    for count in (3, 2):
        with pfd.record(gil=False) as recording:
            for _ in range(count):
                run(tf.constant(3.0))
        runs = recording.reader.rows("SELECT id FROM run ORDER BY id")
        found.append(([number for (number,) in runs], [call.run for call in recording.calls()]))
    breakpoint_.remove()
    assert found == [([1, 2, 3], [1, 2, 3]), ([1, 2], [1, 2])]


def pfd_text(recording):
    from pyfunc_debug.analysis.describe import call_text

    return call_text(recording.call(1), recording.reader)
