"""Programs whose labels stand in their inputs, and those whose labels only look like parts of them."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

SERIES = np.sin(np.arange(80) / 7).astype(np.float32)
ROWS = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)


def fitted(data):
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(data.batch(8), epochs=1, verbose=0)


def windows(body, shape=(10,), label=()):
    def load(i):
        x, y = tf.numpy_function(body, [i], [tf.float32, tf.float32])
        return tf.ensure_shape(x, shape), tf.ensure_shape(y, label)

    fitted(tf.data.Dataset.range(60).map(load))


@triggers("known-target", says="SERIES[i + size] in the place of part[-1]: the value that follows")
def the_last_of_a_window():
    size = 10

    def window(i):
        part = SERIES[i : i + size]
        return part, part[-1]

    windows(window)


@triggers("known-target", says="SERIES[i + 10] in the place of SERIES[i + 9]")
def the_last_of_a_slice():
    def window(i):
        x = SERIES[i : i + 10]
        return x.astype(np.float32), np.float32(SERIES[i + 9])

    windows(window)


@triggers("known-target", says="pairs gives row as the input and row[-1] as the label")
def a_column_of_a_row():
    def pairs():
        for row in ROWS:
            yield row, row[-1]

    fitted(tf.data.Dataset.from_generator(pairs, output_signature=(tf.TensorSpec((5,)), tf.TensorSpec(()))))


@triggers("known-target", says="SERIES[i + 10] in the place of SERIES[i + 10 - 1]")
def the_last_of_a_slice_with_an_axis():
    def pairs():
        for i in range(60):
            yield SERIES[i : i + 10, None], SERIES[i + 10 - 1]

    fitted(tf.data.Dataset.from_generator(pairs, output_signature=(tf.TensorSpec((10, 1)), tf.TensorSpec(()))))


@near("known-target")
def the_value_that_follows():
    def window(i):
        part = SERIES[i : i + 10]
        return part, SERIES[i + 10]

    windows(window)


@near("known-target")
def a_row_without_its_label():
    def pairs():
        for row in ROWS:
            yield row[1:], row[0]

    fitted(tf.data.Dataset.from_generator(pairs, output_signature=(tf.TensorSpec((4,)), tf.TensorSpec(()))))


@near("known-target")
def a_label_that_is_taken_out_of_its_row():
    def pairs():
        for kept in ROWS:
            row = kept.copy()
            label = row[-1]
            row[-1] = 0
            yield row, label

    fitted(tf.data.Dataset.from_generator(pairs, output_signature=(tf.TensorSpec((5,)), tf.TensorSpec(()))))


@near("known-target")
def a_model_that_is_given_less():
    def pairs():
        for row in ROWS:
            yield row, row[-1]

    data = tf.data.Dataset.from_generator(pairs, output_signature=(tf.TensorSpec((5,)), tf.TensorSpec(())))
    fitted(data.map(lambda x, y: (x[:-1], y)))


@near("known-target")
def a_target_of_another_series():
    target = np.cos(np.arange(80) / 7).astype(np.float32)

    def window(i):
        return SERIES[i : i + 10], target[i + 9]

    windows(window)
