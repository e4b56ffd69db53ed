"""What a recording says of the GIL: a row a call, the grade beside it, sentences, stages, and the what-if."""

from __future__ import annotations

import json
import sqlite3

import pytest
import tensorflow as tf
from gil_workloads import NATIVE_HERE, hold, parallel, release

import pyfunc_debug as pfd
from pyfunc_debug.analysis.contention import make_contention, over_time, wait_text
from pyfunc_debug.analysis.stages import make_stages
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.gil import blame, native, opstart

GRADE = "native" if NATIVE_HERE else "bound"


def augment(x):
    hold(15_000)
    return x


def decode(x):
    release(15_000)
    return x


@pytest.fixture
def contended(tmp_path):
    with parallel([augment, augment, augment, decode], 6) as run:
        run()
        with pfd.record(tmp_path / "a.pfrec") as recording:
            run()
            assert recording.call(1)  # the recorder has met the nodes, which takes the GIL for a while
            for _ in range(5):
                run()
    return recording


@pytest.mark.usefixtures("native")
def test_every_call_has_its_row(contended):
    calls = list(contended.calls())
    assert len(calls) == 24
    assert {call.gil.grade for call in calls} == {"native"}
    told = contended.meta["gil"]
    assert (told["grade"], told["matched"], told["unmatched"], told["lost_rows"]) == ("native", 24, 0, 0)
    for call in calls:
        inside = call.gil.held_ns + call.gil.released_ns + call.gil.reacquire_ns
        assert inside == pytest.approx(call.duration_ns, rel=0.01)
        for label, _ in call.gil.blame:
            body, number = blame.call_of(label)
            if number is not None:
                assert contended.call(number).node in contended.node_ids(body)
    assert native.load().slots() == []


@pytest.mark.usefixtures("native")
def test_each_node_gets_its_sentence(contended):
    told = str(contended.contention())
    assert told.startswith("GIL: measured (native; self-test: ")
    by_body = {one.node.body: one for one in contended.contention().nodes}
    assert by_body["augment"].held_share > 0.95
    assert by_body["decode"].held_share < 0.2
    assert by_body["decode"].sentence.startswith("`decode` waits ")
    assert " % of its time for the GIL, " in by_body["decode"].sentence
    worst = next(one for one in by_body["decode"].culprits if one.label != blame.NOBODY)
    assert worst.label in ("augment", "pyfunc_debug writer"), "on a busy machine our writer may be the worst"
    assert worst.label in by_body["decode"].sentence
    assert by_body["decode"].sentence.endswith("of its own time holds the GIL")
    matrix = contended.contention().matrix
    assert matrix["augment", "augment"] > 5 * 2 * 15_000_000
    assert matrix["decode", "augment"] > 10_000_000
    assert matrix.get(("augment", "decode"), 0) < 0.1 * matrix["augment", "augment"]


@pytest.mark.usefixtures("native")
def test_the_worst_calls_and_contention_over_time(contended):
    worst = contended.contention().worst
    assert len(worst) == 10
    waits = [one.wait_ns + one.reacquire_ns for one in worst]
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > 25_000_000
    buckets = over_time(contended.reader, 20)
    assert len(buckets) == 20
    mean = sum(waiting for _, waiting in buckets) / 20
    assert 0.1 < mean < 3.5, "of four calls, three wait at the beginning and none at the end"


def test_the_ledger_has_a_column_and_says_the_grade(contended):
    text = str(contended.ledger())
    assert text.splitlines()[0].endswith("GIL")
    if NATIVE_HERE:
        assert "measured (native), of 24 of 24 calls" in " ".join(text.split())
    assert "GIL ms" in contended.ledger()._repr_html_()


def test_without_measurement_nothing_is_shown(tmp_path):
    with parallel([augment], 2) as run, pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        run()
    [call] = recording.calls()
    assert call.gil is None
    assert "GIL" not in str(recording.ledger())
    assert "`augment`: not measured" in str(recording.contention())
    assert recording.contention().why == "recorded with gil=False"


def test_an_eager_numpy_function_is_not_measured():
    with pfd.record() as recording:
        tf.numpy_function(lambda x: x, [tf.constant(1.0)], tf.float32)
    [call] = recording.calls()
    assert call.gil is None
    assert "not measured" in str(recording.contention())


@pytest.fixture
def without_native(monkeypatch):
    def absent():
        raise native.AbsentError("there is no compiler, in this test")

    monkeypatch.setattr(native, "load", absent)


def test_op_start_is_recorded_with_its_reason(without_native, monkeypatch, tmp_path):
    monkeypatch.setattr(opstart, "_FIRST_S", 30.0)
    start = tf.profiler.experimental.start
    with parallel([augment, augment, augment], 6) as run:
        run()
        with pfd.record(tmp_path / "a.pfrec") as recording:
            run()
            run()
            run()
    assert tf.profiler.experimental.start is start
    told = recording.meta["gil"]
    assert told["grade"] == "op-start"
    assert "no native: there is no compiler, in this test" in told["why"]
    calls = list(recording.calls())
    assert {(call.gil.grade, call.gil.held_ns) for call in calls} == {("op-start", None)}
    # The bodies wait for one another, and for our writer as well: how exactly is test_gil_opstart's matter.
    assert len(calls) == 9
    assert sum(call.gil.wait_ns for call in calls) > 0.85 * 3 * 3 * 15e6
    assert "measured from op start (op-start)" in " ".join(str(recording.ledger()).split())
    sentence = recording.contention().nodes[0].sentence
    assert "holds the GIL" not in sentence or "an estimated" in sentence


def test_a_bound_is_called_at_most(without_native, monkeypatch, tmp_path):
    def absent(self):
        raise native.AbsentError("the profiler is in use, in this test")

    monkeypatch.setattr(opstart.OpStartProbe, "start", absent)
    with parallel([augment, augment], 4) as run, pfd.record(tmp_path / "a.pfrec") as recording:
        run()
        run()
        run()
    assert recording.meta["gil"]["grade"] == "bound"
    text = str(recording.ledger())
    assert "<=" in text
    assert "at most: executor queue + GIL (bound)" in " ".join(text.split())
    assert any("waits at most" in one.sentence for one in recording.contention().nodes)


def test_numbers_below_the_resolution_are_said_so():
    assert wait_text(None, "native") == "not measured"
    assert wait_text(0, "native") == "< 10 us"
    assert wait_text(49_999, "op-start") == "< 50 us"
    assert wait_text(310_000, "op-start") == "0.31 ms"
    assert wait_text(3_200_000, "bound") == "<= 3.20 ms"


@pytest.mark.usefixtures("native")
def test_a_stage_and_what_would_help_it():
    def dataset(calls: int) -> tf.data.Dataset:
        def load(i):
            return tf.numpy_function(decode, [i], tf.int64)

        found = tf.data.Dataset.range(24).map(load, num_parallel_calls=calls)
        options = tf.data.Options()
        options.threading.private_threadpool_size = 4
        options.autotune.enabled = False
        return found.with_options(options)

    with pfd.record() as recording:
        for _ in dataset(2):
            pass
    [stage] = recording.stages(pool=4)
    assert stage.contention.node.body == "decode"
    assert 1.5 < stage.at_once < 2.2
    shares = (stage.python_share, stage.wait_share, stage.pool_share)
    assert sum(shares) == pytest.approx(1, abs=0.01)
    assert stage.ceilings[2].speedup == pytest.approx(4, abs=0.01)
    assert str(stage.ceilings[3]) == "at most x4.0: 4 threads in the pool"
    verified = recording.verify_what_if(dataset, 4, pool=4)
    assert 1.5 < verified.measured <= 1.1 * verified.predicted.speedup
    assert str(verified).startswith("num_parallel_calls=4: predicted at most x4.0: ")


def test_a_stage_whose_dataset_was_built_again_has_all_its_calls():
    with pfd.record() as recording:
        built = [tf.data.Dataset.range(4).map(lambda i: tf.numpy_function(abs, [i], tf.int64)) for _ in range(3)]
        for data in built[1:]:
            list(data)
    [stage] = recording.stages()
    mean_ns = sum(call.duration_ns - (call.gil.reacquire_ns or 0) for call in recording.calls()) / 8
    assert stage.contention.calls == 8
    assert stage.stage.wall_ns == pytest.approx(mean_ns)


@pytest.mark.usefixtures("native")
def test_calls_that_were_not_measured_do_not_count_as_waits_of_nothing(tmp_path):
    with pfd.record(tmp_path / "a.pfrec") as recording:
        list(tf.data.Dataset.range(4).map(lambda i: tf.numpy_function(abs, [i], tf.int64)))
    recording.close()
    found = []
    for change in ("UPDATE gil SET wait_ns = 1000, reacquire_ns = 0", "DELETE FROM gil WHERE call > 2"):
        with sqlite3.connect(recording.path) as db:
            db.execute(change)
        db.close()
        changed = pfd.open(recording.path)
        found += changed.stages(pool=1)
        changed.close()
    whole, stage = found
    assert stage.wait_share == pytest.approx(whole.wait_share, rel=0.01)
    assert "(from 2 of 4 calls)" in str(stage)


def test_what_if_needs_one_stage():
    with pfd.record() as recording:
        tf.py_function(lambda x: x, [tf.constant(1.0)], tf.float32)
    with pytest.raises(BadOptionError, match=r"no tf\.data stage"):
        recording.verify_what_if(lambda n: [], 2)
    assert make_stages(recording.reader) == []


def test_a_recording_from_elsewhere_is_only_data(contended):
    """Labels are text from a file: nothing in them is looked up but numbers of calls."""
    path = contended.path
    contended.close()
    with sqlite3.connect(path) as db:
        odd = json.dumps([["<script> (#999999)", 5_000_000], ["x (#-1)", 1], ["(#3)", 1]])
        db.execute("UPDATE gil SET blame = ?", [odd])
    db.close()
    recording = pfd.open(path)
    assert "<script>" in str(make_contention(recording.reader))
    recording.close()
