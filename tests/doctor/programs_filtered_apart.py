"""Programs that zip inputs with labels, where one side leaves elements out, or both, or neither."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

ROWS = np.random.default_rng(1).random((40, 4)).astype("float32")
LABELS = np.arange(40) % 3


def read(data):
    return [label.numpy() for _, label in data]


@triggers("filtered-apart", severity="error", says="leaves out elements of xs only", pastes=True)
def inputs_that_are_filtered():
    def good(a):
        return bool(a.sum() > 2)

    xs = tf.data.Dataset.from_tensor_slices(ROWS)
    xs = xs.filter(lambda a: tf.ensure_shape(tf.numpy_function(good, [a], tf.bool), []))
    ys = tf.data.Dataset.from_tensor_slices(LABELS)
    for _ in tf.data.Dataset.zip((xs, ys)).batch(8):
        pass


@triggers("filtered-apart", says="leaves out elements of ys only", pastes=True)
def labels_that_are_filtered():
    def known(label):
        return label != 1

    def keep(label):
        return tf.ensure_shape(tf.numpy_function(known, [label], tf.bool), [])

    xs = tf.data.Dataset.from_tensor_slices(ROWS)
    ys = tf.data.Dataset.from_tensor_slices(LABELS).filter(keep)
    data = tf.data.Dataset.zip((xs, ys))
    for _ in data:
        pass


@triggers("filtered-apart", says="ignore_errors in line")
def inputs_whose_errors_are_ignored():
    def load(a):
        if a[0] < 0.3:
            raise ValueError("broken")
        return a

    xs = tf.data.Dataset.from_tensor_slices(ROWS).map(lambda a: tf.numpy_function(load, [a], tf.float32))
    xs = xs.ignore_errors()
    ys = tf.data.Dataset.from_tensor_slices(LABELS)
    for _ in tf.data.Dataset.zip((xs, ys)):
        pass


@triggers("filtered-apart", says="rows leaves out elements")
def a_generator_that_goes_on():
    def rows():
        for row in ROWS:
            if row.sum() < 1.5:
                continue
            yield row

    xs = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((4,), tf.float32))
    for _ in tf.data.Dataset.zip((xs, tf.data.Dataset.from_tensor_slices(LABELS))):
        pass


@near("filtered-apart")
def pairs_that_are_filtered():
    def good(a):
        return bool(a.sum() > 2)

    xs, ys = tf.data.Dataset.from_tensor_slices(ROWS), tf.data.Dataset.from_tensor_slices(LABELS)
    pairs = tf.data.Dataset.zip((xs, ys))
    for _ in pairs.filter(lambda a, label: tf.ensure_shape(tf.numpy_function(good, [a], tf.bool), [])):
        pass


@near("filtered-apart")
def a_generator_of_all_rows():
    def rows():
        for row in ROWS:
            if row.sum() < 1.5:
                row = row * 2
            yield row

    xs = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((4,), tf.float32))
    for _ in tf.data.Dataset.zip((xs, tf.data.Dataset.from_tensor_slices(LABELS))):
        pass


@near("filtered-apart")
def noise_beside_rows():
    def noise():
        while True:
            value = np.random.normal(size=4).astype("float32")
            if abs(value).max() > 2:
                continue
            yield value

    draws = tf.data.Dataset.from_generator(noise, output_signature=tf.TensorSpec((4,), tf.float32))
    for _ in tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(ROWS), draws)):
        pass


@near("filtered-apart")
def two_sets_of_pictures():
    def bright(a):
        return bool(a.mean() > 0.3)

    ones = tf.data.Dataset.from_tensor_slices(ROWS)
    others = tf.data.Dataset.from_tensor_slices(ROWS + 1)
    ones = ones.filter(lambda a: tf.ensure_shape(tf.numpy_function(bright, [a], tf.bool), []))
    for _ in tf.data.Dataset.zip((ones, others)):
        pass
