"""Programs that make windows of a series which is shuffled before, and those that shuffle the windows."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

SERIES = np.sin(np.arange(60) / 7).astype(np.float32)


def values():
    yield from SERIES


def doubled(value):
    return tf.numpy_function(lambda v: v * np.float32(2), [value], tf.float32)


@triggers("shuffled-windows", says="takes the elements as they leave shuffle(60)", pastes=True)
def windows_of_a_shuffled_series():
    data = tf.data.Dataset.from_tensor_slices(SERIES).map(doubled).shuffle(60)
    data = data.window(11, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(11))
    list(data.map(lambda v: (v[:-1], v[-1])).batch(4))


@triggers("shuffled-windows", says="window(5, 2)", pastes=True)
def a_chain_with_one_call_a_line():
    data = (
        tf.data.Dataset.from_generator(values, output_signature=tf.TensorSpec(()))
        .shuffle(20)
        .map(doubled)
        .window(5, 2)
        .flat_map(lambda part: part.batch(5, drop_remainder=True))
        .batch(4)
    )
    list(data)


@triggers("shuffled-windows", says="The windows may be shuffled", pastes=True)
def a_series_that_is_kept():
    data = tf.data.Dataset.from_tensor_slices(SERIES)
    data = data.map(doubled).cache()
    data = data.shuffle(60).window(4, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(4))
    for _ in range(2):
        list(data.batch(4))


@near("shuffled-windows")
def windows_that_are_shuffled():
    data = tf.data.Dataset.from_tensor_slices(SERIES).map(doubled)
    list(data.window(11, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(11)).shuffle(60).batch(4))


@near("shuffled-windows")
def groups_of_what_is_shuffled():
    data = tf.data.Dataset.from_tensor_slices(SERIES).map(doubled).shuffle(60)
    list(data.window(10).flat_map(lambda w: w.batch(10)))


@near("shuffled-windows")
def windows_in_each_of_shuffled_series():
    data = tf.data.Dataset.from_tensor_slices(SERIES.reshape(6, 10)).shuffle(6)
    data = data.flat_map(tf.data.Dataset.from_tensor_slices).map(doubled)
    list(data.window(5, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(5)))


@near("shuffled-windows")
def windows_of_each_series_by_itself():
    def windows(one):
        part = tf.data.Dataset.from_tensor_slices(one).window(5, shift=1, drop_remainder=True)
        return part.flat_map(lambda w: w.batch(5))

    list(tf.data.Dataset.from_tensor_slices(SERIES.reshape(6, 10)).shuffle(6).flat_map(windows).map(doubled))
