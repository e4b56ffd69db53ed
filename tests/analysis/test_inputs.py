"""A recording says how a pipeline is set up, and whether the training loop waits for its input at all."""

from __future__ import annotations

import re
import sqlite3
import time

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.analysis import gil_text
from pyfunc_debug.analysis.inputs import settings
from pyfunc_debug.analysis.tables import ledger_text


def load(x):
    time.sleep(0.002)
    return x


def dataset(parallel=None, *, pool=None, batch_first=False):
    data = tf.data.Dataset.range(64)
    data = data.batch(8) if batch_first else data
    data = data.map(lambda i: tf.numpy_function(load, [i], tf.int64), num_parallel_calls=parallel)
    data = data if batch_first else data.batch(8)
    options = tf.data.Options()
    if pool:
        options.threading.private_threadpool_size = pool
    return data.with_options(options)


@pytest.mark.parametrize(
    ("parallel", "pool", "batch_first", "wanted"),
    [
        (None, None, False, (1, None, False, 8)),
        (3, 5, False, (3, 5, False, 8)),
        (tf.data.AUTOTUNE, None, True, (-1, None, True, None)),
    ],
)
def test_the_present_setting_is_known(parallel, pool, batch_first, wanted):
    with pfd.record() as recording:
        for _ in dataset(parallel, pool=pool, batch_first=batch_first):
            pass
    [node] = recording.nodes()
    found = settings(recording.meta, [node])[node.id]
    assert (found.parallel, found.pool, found.batched, found.batch) == wanted
    [stage] = recording.stages()
    assert stage.setting == found
    assert stage.present in str(stage)


def test_a_loop_that_waits_is_told_from_one_that_does_not():
    slow, busy = dataset(), tf.data.Dataset.range(8).prefetch(8)
    with pfd.record() as recording:
        for _ in slow:
            pass
        for _ in busy:
            time.sleep(0.02)
    waits, works = sorted(recording.loops(), key=lambda loop: -len(loop.bodies))
    assert (waits.bodies, waits.taken, waits.steps, waits.at_most) == (("load",), 8, 7, False)
    assert waits.step_ns >= waits.wait_ns >= 6 * 8 * 2_000_000, "eight bodies of 2 ms a step, one after the other"
    assert works.step_ns - works.wait_ns >= 7 * 20_000_000
    assert "test_inputs.py" in waits.sentence
    assert "waits for its input" in waits.sentence
    assert "passes" not in waits.sentence, "one pass has nothing to explain"
    text = gil_text.gil_text(recording.reader, recording.contention(), recording.stages(), 80)
    assert waits.sentence in " ".join(text.split())


def test_epochs_of_one_line_are_one_loop():
    data = dataset()
    with pfd.record() as recording:
        for _ in range(3):
            for _ in data:
                pass
    [loop] = recording.loops()
    assert (loop.taken, loop.steps, loop.passes) == (24, 21, 3)
    assert "21 steps; 24 elements in 3 passes, and the first of each pass is left out)" in loop.sentence


def test_an_input_that_the_graph_takes_is_bounded_and_called_so():
    @tf.function
    def step(iterator):
        return next(iterator)

    with pfd.record() as recording:
        iterator = iter(dataset())
        for _ in range(8):
            step(iterator)
    [loop] = recording.loops()
    assert loop.at_most
    assert loop.taken == 0
    assert 0 < loop.wait_ns <= loop.step_ns
    assert "waits for its input at most" in loop.sentence


def frames(error):
    found, traceback = [], error.tb
    while traceback is not None:
        found.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return found


def test_the_end_and_errors_of_an_iterator_are_as_without_us():
    def fail(x):
        raise ValueError("a bad record")

    data = tf.data.Dataset.range(2).map(lambda i: tf.numpy_function(fail, [i], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError) as stock:
        next(iter(data))
    with pfd.record():
        assert len(list(tf.data.Dataset.range(3))) == 3
        with pytest.raises(tf.errors.InvalidArgumentError) as ours:
            next(iter(data))
    assert frames(ours) == frames(stock)


def test_no_digit_is_cut_in_narrow_terminals(tmp_path):
    with pfd.record(tmp_path / "a.pfrec") as recording:
        for _ in dataset(2):
            pass
    recording.close()
    with sqlite3.connect(recording.path) as file:  # large numbers in every column
        file.execute("UPDATE gil SET wait_ns = 123456789012, reacquire_ns = 1234567890")
        file.execute("UPDATE call SET end_ns = start_ns + 987654321098, status = 'error'")
    file.close()
    changed = pfd.open(recording.path)
    for width in (70, 80):
        text = ledger_text(changed.ledger(), width)
        gil = gil_text.gil_text(changed.reader, changed.contention(), changed.stages(), width)
        assert "987,654" in text
        assert "…" not in gil
        assert not re.search(r"\d…", text), "names are shortened, numbers are not"
        if width == 80:
            assert max(map(len, text.splitlines())) <= width
        if changed.meta["gil"]["grade"] == "native":
            assert "124,691" in text, "before and inside"
            assert "123,457 ms" in gil
    changed.close()
