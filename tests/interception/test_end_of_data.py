"""The normal end of data is no error: nothing on stderr, nothing in ledger, report and doctor."""

from __future__ import annotations

import numpy as np
import pytest

import pyfunc_debug as pfd
from pyfunc_debug.analysis.ledger import as_dict


class FromGenerator:
    """An iterator of the user's that hands a generator's StopIteration on."""

    def __init__(self):
        self.generator = iter(range(3))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.generator)

    __call__ = __iter__


class RaisesItself:
    """One that says itself that it is at its end."""

    def __init__(self):
        self.left = 3

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


class Items:
    """The old protocol: an IndexError ends it."""

    def __getitem__(self, index):
        return [0, 1, 2][index]


def plain():
    yield from range(3)


GENERATORS = {
    "a generator": plain, "next in __next__": FromGenerator, "raise in __next__": RaisesItself, "__getitem__": Items,
    "a list": lambda: [0, 1, 2], "map": lambda: map(int, "012"),
    "iter with a sentinel": lambda: iter(plain().__next__, 9),
    "a generator expression": lambda: (one for one in range(3)),
}  # fmt: skip


@pytest.mark.parametrize("form", ["types", "signature"])
@pytest.mark.parametrize("gradients", ["stock", "exact"])
def test_the_end_of_a_generator_is_no_error(tf, tmp_path, capfd, form, gradients):
    options = {"output_types": tf.int64} if form == "types" else {"output_signature": tf.TensorSpec([], tf.int64)}
    with pfd.record(tmp_path / "a.pfrec", gil=False, gradients=gradients) as recording:
        for name, make in GENERATORS.items():
            data = tf.data.Dataset.from_generator(make, **options)
            assert len(list(data)) == 3, name
            assert len(list(data.map(lambda x: tf.numpy_function(lambda v: v + 1, [x], tf.int64)))) == 3, name
        from pyfunc_debug.switchboard import board

        assert board.interception.failures.newest_first() == []
    _nothing_said(recording, capfd)


def test_the_end_of_an_epoch_is_no_error(tf, tmp_path, capfd):
    def body(x):
        return np.float32(x)

    @tf.function
    def step(iterator):
        return tf.reduce_sum(next(iterator))

    @tf.function
    def epoch(data):
        total = tf.constant(0.0)
        for x in data:
            total += x
        return total

    def data():
        made = tf.data.Dataset.from_generator(FromGenerator, output_types=tf.float32)
        return made.map(lambda x: tf.ensure_shape(tf.numpy_function(body, [x], tf.float32), []))

    import keras

    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        iterator = iter(data())
        for _ in range(3):
            step(iterator)
        with pytest.raises(tf.errors.OutOfRangeError):
            step(iterator)
        epoch(data())
        model.fit(data().map(lambda x: (tf.reshape(x, [1, 1]), tf.reshape(x, [1, 1]))), epochs=2, verbose=0)
    _nothing_said(recording, capfd)


def test_a_stop_iteration_of_a_body_of_the_users_still_is(tf, tmp_path, capfd):
    def body(x):
        return next(iter([]))

    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording, pytest.raises(tf.errors.OpError):
        tf.function(lambda x: tf.numpy_function(body, [x], tf.float32))(1.0)
    assert "StopIteration left" in capfd.readouterr().err
    assert [one.rule for one in recording.findings()] == ["stop-iteration"]
    recording.close()


def _nothing_said(recording, capfd):
    assert "StopIteration" not in capfd.readouterr().err
    assert not [one for one in recording.findings() if one.severity == "error" or one.rule == "body-raised"]
    assert not list(recording.calls(status="error"))
    assert recording.sql("SELECT * FROM failure") == []
    assert recording.sql("SELECT * FROM run WHERE error IS NOT NULL") == []
    assert not [row for row in as_dict(recording.ledger())["functions"] if row["errors"]]
    recording.close()
