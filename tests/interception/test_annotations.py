"""Bodies have their names in the trace that the program's own profiler writes."""

from __future__ import annotations

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.profiler import xspace


class Scaler:
    def scale(self, x):
        return x * 2


def crop(x):
    return x[:1]


def shift(x):
    return x + 1


def events(folder):
    (file,) = folder.rglob("*.xplane.pb")
    found = xspace.events(file.read_bytes(), lambda name: True, lambda name: b"crop" in name)
    return {event.name.decode(): event.stats for event in found}


def test_bodies_have_their_names_in_the_programs_own_trace(tf, tmp_path):
    variable = tf.Variable(3.0)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            y = tf.py_function(Scaler().scale, [variable], tf.float32)
        return tape.gradient(y, variable)

    dataset = tf.data.Dataset.from_tensors([1.0, 2.0]).map(lambda x: tf.numpy_function(crop, [x], tf.float32))
    with pfd.record(gil=False):
        tf.profiler.experimental.start(str(tmp_path))
        assert float(step()) == 2.0
        assert [v.tolist() for v in dataset.as_numpy_iterator()] == [[1.0]]
        tf.numpy_function(shift, [1.0], tf.float32)
        with pytest.raises(ZeroDivisionError):
            tf.numpy_function(lambda x: 1 / 0, [1.0], tf.float32)
        tf.profiler.experimental.stop()
        step()
    found = events(tmp_path)
    line = crop.__code__.co_firstlineno
    assert found["crop"][b"line"] == f"test_annotations.py:{line}".encode()
    assert {"Scaler.scale", "gradient of Scaler.scale", "crop", "shift"} <= set(found), sorted(found)
