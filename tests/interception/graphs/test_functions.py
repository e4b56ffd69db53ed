"""Which function a node belongs to, also when its graph was traced before anybody was there to see it."""

from __future__ import annotations

import pyfunc_debug as pfd


def body(v):
    return v


def test_functions_traced_before_recording_are_what_they_are(tf):
    data = tf.data.Dataset.range(3).map(lambda v: tf.numpy_function(body, [v], tf.int64))

    @tf.function
    def branched(x):
        return tf.cond(x > 0.0, lambda: tf.numpy_function(body, [x], tf.float32), lambda: x)

    with tf.Graph().as_default() as graph:
        out = tf.compat.v1.py_func(body, [tf.constant(1.0)], tf.float32)
    branched(tf.constant(1.0))
    with pfd.record(gil=False) as recording:
        assert [int(v) for v in data] == [0, 1, 2]
        branched(tf.constant(1.0))
        with tf.compat.v1.Session(graph=graph) as session:
            session.run(out)
    functions = {one.name: one for one in recording.functions()}
    assert {name: one.kind for name, one in functions.items()} == {
        "<lambda>": "tf.data",
        "branched": "tf.function",
        "test_functions_traced_before_recording_are_what_they_are": "graph",
    }
    branched_ = functions["branched"]
    assert len(recording.functions().runs(branched_)) == 1
    (stage,) = recording.stages()
    assert stage.contention.calls == 3
    assert "by tf.data" in str(recording.ledger())
