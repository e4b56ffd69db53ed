"""What piles up is counted while recording, at most so many times, and a last time as it ends."""

from __future__ import annotations

import itertools
import json

import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.recorder import growth
from pyfunc_debug.recorder.growth import Growth


def test_points_are_apart_and_thinned(monkeypatch):
    clock = itertools.count(0, 150_000_000)
    monkeypatch.setattr(growth.time, "monotonic_ns", lambda: next(clock))
    counted = Growth(lambda: {"entries": 7})
    taken = [counted.look(calls, 0) for calls in range(400)]
    points = counted.known()["points"]
    assert taken[:4] == [True, False, True, False]
    assert 40 < len(points) <= 121
    assert points[0][1] == 0
    gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(points)]
    assert min(gaps) >= 200_000_000
    assert counted.look(401, 0, last=True)


def test_a_recording_ends_with_what_there_is_then():
    step = tf.function(lambda x: tf.py_function(lambda y: y + 1, [x], tf.float32))
    with pfd.record() as recording:
        for _ in range(3):
            step(tf.constant(1.0))
        graphs = [tf.function(lambda x, i=i: x + i) for i in range(4)]
        for one in graphs:
            one(tf.constant(1.0))
    known = json.loads(recording.sql("SELECT value FROM meta WHERE key = 'growth'")[0]["value"])
    recording.close()
    last = dict(zip(known["columns"], known["points"][-1]))
    assert (last["calls"], last["graphs"] >= 5) == (3, True)
    assert last["resident_bytes"] > 1_000_000
