"""A call whose result the node's kernel takes for an error is no good call, although the body returned."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import pyfunc_debug as pfd

ONE, TWO = "the body returned {}, but Tout has 1", "the body returned {}, but Tout has 2"
COMPARED = [  # what a body returns for one float32, or for two; why the kernel of numpy_function does not take it
    (lambda x: np.float64(x), 1, "value 0 is float64, but Tout says float32"),
    (lambda x: [[1, 2], [3]], 1, ONE.format("2 values")),
    (lambda x: object(), 1, "value 0 holds Python objects, but Tout says float32"),
    (lambda x: {"a": x}, 1, "value 0 holds Python objects, but Tout says float32"),
    (lambda x: None, 1, "value 0 holds Python objects, but Tout says float32"),
    (lambda x: [], 1, ONE.format("nothing")),
    (lambda x: "word", 1, "value 0 is string, but Tout says float32"),
    (lambda x: x, 2, TWO.format("1 value")),
    (lambda x: (x, b"word"), 2, "value 1 is string, but Tout says float32"),
    (lambda x: [np.float32(x)], 1, ""),
    (lambda x: (x, x), 2, ""),
]
COUNTED = [  # the same of py_function, whose values are converted in Python: only their number is compared
    (lambda x: None, 1, ONE.format("nothing")),
    (lambda x: [x], 2, TWO.format("1 value")),
    (lambda x: x, 2, TWO.format("1 value")),
    (lambda x: [x, x], 1, ""),
    (lambda x: (x, 2 * x), 2, ""),
]


@pytest.mark.parametrize("values", ["none", "shape", "summary", "sample", "full"])
def test_what_a_kernel_rejects_is_a_failed_call_whatever_is_kept_of_values(tmp_path, values):
    import tensorflow as tf

    def function(kind, body, count):
        tout = tf.float32 if count == 1 else [tf.float32] * count
        return tf.function(lambda x: kind(body, [x], tout), autograph=False)

    kinds = [(tf.numpy_function, one) for one in COMPARED] + [(tf.py_function, one) for one in COUNTED]
    older = function(tf.numpy_function, lambda x: np.float64(x), 1), function(tf.py_function, lambda x: None, 1)
    for one in older:
        one.get_concrete_function(tf.TensorSpec((), tf.float32))
    ragged = tf.RaggedTensorSpec((2, None), tf.int32)

    def nothing():
        tf.py_function(lambda: None, [], [])

    good = [
        lambda: tf.py_function(lambda: tf.ragged.constant([[1], [2, 3]]), [], ragged),
        nothing,
        lambda: tf.numpy_function(lambda: np.array([b"a", "b"], object), [], tf.string),
    ]
    signature = (tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.string))
    source = tf.data.Dataset.from_generator(lambda: iter([(1, b"a"), (2, b"b")]), output_signature=signature)
    wanted = []
    with pfd.record(tmp_path / "a.pfrec", values=values, gil=False) as recording:
        for kind, (body, count, why) in kinds:
            run = function(kind, body, count)
            if why:
                with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.InternalError)):
                    run(tf.constant(1.0))
                wanted.append(why)
            else:
                run(tf.constant(1.0))
        for run in older:
            with pytest.raises(tf.errors.InvalidArgumentError):
                run(tf.constant(1.0))
        with tf.GradientTape() as tape:
            x = tf.Variable(3.0)
            square = function(tf.py_function, lambda x: x * x, 1)(x)
        assert tape.gradient(square, x) == 6
        assert len(list(source)) == 2  # its bodies end by an exception, and give strings
        for run in good:
            tf.function(run, autograph=False)()
    found = [call.failure.message for call in recording.calls(status="error")]
    recording.close()
    assert found == [*wanted, "value 0 is float64, but Tout says float32", ONE.format("nothing")]


def test_a_rejected_call_is_stored_although_the_budget_is_used_up(tmp_path):
    import tensorflow as tf

    bad = []
    function = tf.function(
        lambda x: tf.numpy_function(lambda x: np.float64(x) if bad else x, [x], tf.float32), autograph=False
    )
    with pfd.record(tmp_path / "a.pfrec", budget="1MB", gil=False) as recording:
        while recording.meta.get("dropped", {}).get("calls", 0) == 0:
            for _ in range(500):
                function(tf.constant(1.0))
            list(recording.sql("SELECT 1"))
        bad.append(True)
        with pytest.raises(tf.errors.InvalidArgumentError):
            function(tf.constant(1.0))
    found = [call.failure.message for call in recording.calls(status="error")]
    recording.close()
    assert found == ["value 0 is float64, but Tout says float32"]


def test_an_eager_call_whose_result_cannot_be_made_a_tensor_has_failed(tmp_path):
    import tensorflow as tf

    class Mine:
        """TensorFlow knows no such thing."""

    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        for body in (lambda x: Mine(), lambda x: [[1, 2], [Mine()]], lambda x: x, lambda x: {"a": Mine()}):
            with contextlib.suppress(ValueError, TypeError):
                tf.numpy_function(body, [tf.constant(1.0)], tf.float32)
        with pytest.raises(ZeroDivisionError):
            tf.numpy_function(lambda x: 1 / 0, [tf.constant(1.0)], tf.float32)
    found = [(call.status, call.failure.type if call.failure else "") for call in recording.calls()]
    errors = sum(node.errors for row in recording.ledger().rows for node in row.nodes)
    recording.close()
    good, bad = ("ok", ""), ("error", "ValueError")
    assert found == [bad, bad, good, bad, ("error", "ZeroDivisionError")]
    assert errors == 4
