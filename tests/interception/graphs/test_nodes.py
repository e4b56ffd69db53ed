"""What a user passes to a node reaches it as it was given."""

from __future__ import annotations

import pytest

import pyfunc_debug as pfd


def add(a, b):
    return a + b


@pytest.mark.parametrize("make", ["numpy_function", "py_function"])
def test_inputs_given_as_a_generator_still_reach_the_body(tf, tmp_path, make):
    function = getattr(tf, make)
    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        eager = function(add, (tf.constant(x) for x in (1.0, 2.0)), tf.float32)
        graph = tf.function(lambda: function(add, map(tf.constant, (1.0, 2.0)), tf.float32))()
    assert (float(eager), float(graph)) == (3, 3)
    assert [(one.status, len(one.inputs)) for one in recording.calls()] == [("ok", 2), ("ok", 2)]
    recording.close()
