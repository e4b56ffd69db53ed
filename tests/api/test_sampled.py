"""Calls that sampling leaves out, in TensorFlow: they run, fail and are seen as all others."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops.script_ops import FuncRegistry

import pyfunc_debug as pfd
from pyfunc_debug.recorder.hot import Shortcut
from pyfunc_debug.switchboard import board
from tests.limits import HANG_S


def failing(kind):
    """A tf.function that fails in its third run, and what the error says of Python's frames."""

    def body(x):
        if x > 2:
            raise ValueError("too large")
        return x

    @tf.function
    def run(x):
        return kind(body, [x], tf.float32)

    def frames():
        for number in (0.0, 1.0, 2.0):
            run(tf.constant(number))
        with pytest.raises(tf.errors.OpError) as caught:
            run(tf.constant(3.0))
        return [line.strip() for line in str(caught.value).splitlines() if 'File "' in line]

    return frames


@pytest.mark.parametrize("kind", [tf.py_function, tf.numpy_function])
def test_a_body_fails_with_the_frames_that_it_has_without_us(kind):
    frames = failing(kind)
    stock = frames()
    assert any("in body" in line for line in stock)
    with pfd.record(sample="1/1000") as recording:
        assert Shortcut is None or type(vars(FuncRegistry)["__call__"]) is Shortcut
        assert frames() == stock
    assert recording.reader.extra_calls()[4] == "failed"
    [call] = recording.calls(status="error")
    assert (call.id, call.failure.type, call.failure.message) == (4, "ValueError", "too large")
    rule = pfd.break_on("another")
    assert frames() == stock, "nobody asks for its calls"
    rule.remove()
    assert type(vars(FuncRegistry)["__call__"]) is not Shortcut


def test_calls_of_several_threads_are_all_counted():
    def body(x):
        if x % 50 == 7:
            return np.float32(np.nan)
        return np.float32(x)

    data = tf.data.Dataset.range(400).map(
        lambda i: tf.numpy_function(body, [i], tf.float32), num_parallel_calls=4, deterministic=False
    )
    with pfd.record(sample="1/100") as recording:
        assert sum(np.isnan(float(one)) for one in data) == 8
    [node] = recording.ledger().rows[0].nodes
    assert node.forward.calls == 400
    assert sum(one.outputs[0].nan or 0 for one in recording.calls()) == 8
    assert sum(recording.meta["dropped"]["reasons"]["calls"].values()) == 400 - len(list(recording.calls()))


def test_a_call_that_is_left_out_is_seen_while_it_runs():
    runs, go_on = threading.Event(), threading.Event()

    def body(x):
        if x == 2:
            runs.set()
            assert go_on.wait(HANG_S)
        return x

    @tf.function
    def run(x):
        return tf.numpy_function(body, [x], tf.float32)

    with pfd.record(sample="1/1000"):
        for number in (0.0, 1.0):
            run(tf.constant(number))
        thread = threading.Thread(target=run, args=(tf.constant(2.0),))
        thread.start()
        try:
            assert runs.wait(HANG_S)
            [seen] = board.look()
        finally:
            go_on.set()
            thread.join(HANG_S)
    assert (seen["node"].rpartition(".")[2], seen["call"], seen["frames"][0]["function"]) == ("body", 3, "body")
