"""A call whose result the kernel takes for an error is no good call, although the body returned."""

from __future__ import annotations

import numpy as np
import pytest

import pyfunc_debug as pfd


@pytest.mark.parametrize("values", ["shape", "summary", "full"])
def test_what_the_kernel_of_a_numpy_function_rejects_is_a_failed_call(tmp_path, values):
    import tensorflow as tf

    bodies = {
        "value 0 is float64, but Tout says float32": lambda x: np.float64(x),
        "the body returned 2 values, but Tout has 1": lambda x: [[1, 2], [3]],
        "value 0 holds Python objects, but Tout says float32": lambda x: object(),
        "": lambda x: [np.float32(x)],
    }
    signature = (tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.string))
    source = tf.data.Dataset.from_generator(lambda: iter([(1, b"a"), (2, b"b")]), output_signature=signature)
    text = tf.function(lambda: tf.numpy_function(lambda: np.array([b"a", "b"], object), [], tf.string))
    with pfd.record(tmp_path / "a.pfrec", values=values, gil=False) as recording:
        for why, body in bodies.items():
            run = tf.function(lambda x, body=body: tf.numpy_function(body, [x], tf.float32))
            if why:
                with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.InternalError)):
                    run(tf.constant(1.0))
            else:
                run(tf.constant(1.0))
        assert len(list(source)) == 2  # its bodies end by an exception, and give strings
        text()
    found = [call.failure.message for call in recording.calls(status="error")]
    recording.close()
    assert found == [why for why in bodies if why]
