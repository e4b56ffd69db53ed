"""A class in the place of a function is told once a call, though each call of interleave is traced."""

from __future__ import annotations

import tensorflow as tf

import pyfunc_debug


class Made(tf.data.Dataset):
    @staticmethod
    def _generator(num_samples):
        for index in range(num_samples):
            yield (index,)

    def __new__(cls, num_samples=3):
        spec = tf.TensorSpec(shape=(1,), dtype=tf.int64)
        return tf.data.Dataset.from_generator(cls._generator, output_signature=spec, args=(num_samples,))


def test_two_calls_with_a_class_are_two_findings(tmp_path):
    with pyfunc_debug.record(tmp_path / "a.pfrec") as recording:
        list(tf.data.Dataset.range(2).interleave(Made))
        list(tf.data.Dataset.range(2).interleave(Made, num_parallel_calls=2))
    found = recording.findings(select=["structure"])
    assert len(found) == 2
    assert len({one.line for one in found}) == 2
