"""coverage.py counts the lines of bodies on TensorFlow's threads, with one tracer for a thread."""

from __future__ import annotations

import contextlib
import sys
import threading

import coverage
import pytest

import pyfunc_debug as pfd
from tests.program.covered_body import SEEN, body

LINES = body.__code__.co_firstlineno + 1, body.__code__.co_firstlineno + 2


@contextlib.contextmanager
def helped():
    pfd.ide()
    try:
        yield
    finally:
        pfd.ide(False)


def recorded():
    return pfd.record(gil=False)


@pytest.mark.parametrize("how", [contextlib.nullcontext, helped, recorded])
def test_lines_of_bodies_are_counted(tf, how):
    SEEN.clear()
    measured = coverage.Coverage(data_file=None, include=[body.__code__.co_filename])
    measured.start()
    try:
        with how():
            dataset = tf.data.Dataset.range(64).map(
                lambda x: tf.numpy_function(body, [x], tf.int64), num_parallel_calls=2
            )
            assert sorted(int(x) for x in dataset) == [x + 1 for x in range(64)]
            assert sys.gettrace() is not None
    finally:
        measured.stop()
    counted = measured.get_data().lines(body.__code__.co_filename) or []
    if how is contextlib.nullcontext:
        assert not set(LINES) & set(counted), "coverage sees these threads by itself: what we do is no longer needed"
    else:
        assert set(LINES) <= set(counted)
        assert threading.get_native_id() not in SEEN
        assert len(measured._collector.tracers) < 64, "a tracer for each call is memory for each call"


def test_a_thread_function_of_somebody_else_is_left_alone(tf):
    heard = []
    threading.settrace(lambda *event: heard.append(event))
    try:
        with helped():
            next(iter(tf.data.Dataset.range(1).map(lambda x: tf.numpy_function(body, [x], tf.int64))))
    finally:
        threading.settrace(None)
    assert not [event for event in heard if event[0].f_code is body.__code__]
