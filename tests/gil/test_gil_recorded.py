"""What a recording says of the GIL: a row a call, the grade beside it, sentences, stages, and the what-if."""

from __future__ import annotations

import itertools
import json
import sqlite3
import threading
import time

import pytest
import tensorflow as tf
from gil_workloads import NATIVE_HERE, Turns, counting, hold, keep_until_waiting, parallel, release

import pyfunc_debug as pfd
from pyfunc_debug.analysis.contention import make_contention, over_time, wait_text
from pyfunc_debug.analysis.describe import call_text
from pyfunc_debug.analysis.stages import make_stages
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.gil import RESOLUTION_NS, blame, native, opstart

GRADE = "native" if NATIVE_HERE else "bound"


HOLD_NS = 15_000_000
turns = Turns(3, HOLD_NS // 1000)


def augment(x):
    turns()
    return x


def decode(x):
    while not turns.began:  # at the latest when this thread is not in C any more, it waits for the GIL
        release(1000)
    release(15_000)
    return x


@pytest.fixture
def contended(tmp_path, no_switching):
    """Six runs: in each, one augment holds the GIL for 15 ms while two others and decode wait, then the next."""
    with parallel([augment, augment, augment, decode], 6) as run:
        turns.again()
        run()
        with pfd.record(tmp_path / "a.pfrec") as recording:
            for _ in range(6):
                turns.again()
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
        assert inside == call.duration_ns
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
    assert by_body["augment"].released_ns == 0
    assert by_body["decode"].released_ns >= 6 * 15_000_000
    assert by_body["augment"].held_share == 1 > by_body["decode"].held_share
    assert by_body["decode"].sentence.startswith("`decode` waits ")
    assert " % of its time for the GIL, " in by_body["decode"].sentence
    assert max(one.ns for one in by_body["decode"].culprits if one.label == "augment") >= 6 * HOLD_NS
    worst = next(one for one in by_body["decode"].culprits if one.label != blame.NOBODY)
    assert worst.label in by_body["decode"].sentence
    assert by_body["decode"].sentence.endswith("of its own time holds the GIL")
    # In each run the second augment waits for the first, the third for both; decode holds it for microseconds.
    matrix = contended.contention().matrix
    assert matrix["augment", "augment"] >= 6 * 3 * HOLD_NS
    assert matrix["decode", "augment"] >= 6 * HOLD_NS
    assert matrix.get(("augment", "decode"), 0) < matrix["decode", "augment"]


@pytest.mark.usefixtures("native")
def test_the_worst_calls_and_contention_over_time(contended):
    worst = contended.contention().worst
    assert len(worst) == 10
    waits = [one.wait_ns + one.reacquire_ns for one in worst]
    assert waits == sorted(waits, reverse=True)
    assert waits[5] >= 2 * HOLD_NS, "the last of the three augments of each run waits for two"
    buckets = over_time(contended.reader, 20)
    assert len(buckets) == 20
    assert all(0 <= waiting <= 4 for _, waiting in buckets), "there are four calls"
    width = buckets[1][0] - buckets[0][0]
    waited = sum(call.gil.wait_ns for call in contended.calls())
    assert sum(waiting for _, waiting in buckets) * width == pytest.approx(waited, rel=1e-6)


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


def test_op_start_is_recorded_with_its_reason(without_native, no_switching, monkeypatch, tmp_path):
    monkeypatch.setattr(opstart, "FIRST_S", 600.0)
    start = tf.profiler.experimental.start
    turns = Turns(2, HOLD_NS // 1000)

    def augment(x):
        turns()
        return x

    with parallel([augment, augment, augment], 6) as run, counting():
        run()
        with pfd.record(tmp_path / "a.pfrec") as recording:
            for _ in range(3):
                turns.again()
                run()
    assert tf.profiler.experimental.start is start
    told = recording.meta["gil"]
    assert told["grade"] == "op-start"
    assert "no native: there is no compiler, in this test" in told["why"]
    calls = list(recording.calls())
    assert {(call.gil.grade, call.gil.held_ns) for call in calls} == {("op-start", None)}
    # In each run the second body waits for the first, the third for both; and for our writer as well.
    assert len(calls) == 9
    assert sum(call.gil.wait_ns for call in calls) >= 3 * 3 * HOLD_NS - 9 * 2 * RESOLUTION_NS["op-start"]
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
            return tf.numpy_function(sleep, [i], tf.int64)

        found = tf.data.Dataset.range(24).map(load, num_parallel_calls=calls)
        options = tf.data.Options()
        options.threading.private_threadpool_size = 4
        options.autotune.enabled = False
        return found.with_options(options)

    def sleep(x):
        release(5000)
        return x

    with pfd.record() as recording:
        for _ in dataset(2):
            pass
    [stage] = recording.stages()
    assert stage.contention.node.body.endswith("sleep")
    spans = [(call.start_ns - call.gil.wait_ns, call.end_ns) for call in recording.calls()]
    edges = sorted({edge for span in spans for edge in span})
    at_once = [sum(start < right and left < end for start, end in spans) for left, right in itertools.pairwise(edges)]
    assert max(at_once) <= 2
    working = sum(right - left for n, (left, right) in zip(at_once, itertools.pairwise(edges), strict=True) if n)
    assert stage.at_once == pytest.approx(sum(end - start for start, end in spans) / working, rel=1e-3)
    shares = (stage.python_share, stage.wait_share, stage.pool_share)
    assert sum(shares) == pytest.approx(1, abs=0.01)
    one, cores = stage.stage, recording.meta["cores"]
    most = min(1 / (one.held_ns / one.wall_ns), cores / (one.cpu_ns / one.wall_ns))
    assert (stage.setting.parallel, stage.setting.pool) == (2, 4)
    now = min(2.0, most)
    assert [c.speedup for c in stage.ceilings] == pytest.approx([min(float(n), most) / now for n in (1, 2, 4, 4)])
    assert "num_parallel_calls=2: as now" in str(stage)
    assert most > 1, "what releases the GIL and sleeps gains"
    # What it is in truth, on a machine that has nothing else to do, is benchmarks/gil.py's: whatif.
    verified = recording.verify_what_if(dataset, 4)
    assert verified.measured == pytest.approx(verified.one_ns / verified.many_ns)
    assert str(verified).startswith("num_parallel_calls=4: predicted at most x")


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


@pytest.mark.usefixtures("native", "no_switching")
def test_what_a_thread_costs_a_stage_is_said():
    """In each call the thread takes the GIL, and keeps it for longer than the call took before it wanted it back."""
    asked, ends, kept = threading.Event(), threading.Event(), []

    def metrics() -> None:
        while asked.wait() and not ends.is_set():
            asked.clear()
            kept.append(began[0])
            waits_ns = keep_until_waiting(1)
            hold(50_000 + (waits_ns - began[0]) // 1000)

    def nap(x):
        began[:] = [time.monotonic_ns()]
        asked.set()
        while not kept or kept[-1] != began[0]:  # at the latest when this thread is not in C any more, it waits
            release(1000)
        return x

    began: list[int] = []
    thread = threading.Thread(target=metrics, name="metrics-thread", daemon=True)
    thread.start()
    with pfd.record() as recording:
        for _ in tf.data.Dataset.range(8).map(lambda i: tf.numpy_function(nap, [i], tf.int64)):
            pass
    ends.set()
    asked.set()
    thread.join()
    [stage] = recording.stages()
    [culprit] = [one for one in stage.contention.culprits if "metrics-thread" in one.label]
    assert culprit.ns >= 8 * 50_000_000
    assert dict(stage.without)["metrics-thread"] > 1.1
    assert "without metrics-thread: up to x" in str(stage)


@pytest.mark.usefixtures("native")
def test_a_call_says_its_parts(contended):
    text = call_text(contended.call(3), contended.reader)
    assert "GIL (measured): wait " in text
    assert "released " in text
    assert "waited inside " in text
