"""Programs that take the parts of a dataset by datasets of their own, and programs that only look so."""

from __future__ import annotations

import random

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


def numbers():
    n = random.randint(0, 1000)
    return n, 1000 - n


def noisy(x):
    return (x + np.random.normal()).astype(np.float32), np.float32(x > 3)


def drawn():
    return tf.data.Dataset.range(5).map(lambda _: tf.py_function(numbers, [], [tf.int32, tf.int32]))


def pairs():
    ds = tf.data.Dataset.from_tensor_slices((np.arange(8, dtype=np.float32), np.arange(8)))
    return ds.map(lambda x, y: (tf.numpy_function(np.sqrt, [x], tf.float32), y))


@triggers("shuffled-apart", says="x and y are parts of one dataset, and are read side by side", pastes=True)
def parts_of_what_a_body_draws():
    ds = drawn()
    x = ds.map(lambda x, y: x)
    y = ds.map(lambda x, y: y)
    for a, b in zip(x, y):
        print(int(a), int(b))


@triggers("shuffled-apart", says="each goes through its shuffle", pastes=True)
def parts_of_what_is_shuffled():
    ds = pairs().shuffle(8)
    inputs, labels = 0, 0
    inputs = ds.map(lambda x, y: x)
    labels = ds.map(lambda x, y: y)
    for a, b in zip(inputs, labels):
        print(float(a), int(b))


@triggers("shuffled-apart", says="each goes through the draws of map")
def parts_of_what_a_body_draws_zipped_by_a_dataset():
    ds = drawn().batch(2)
    x = ds.map(lambda x, y: x * 2)
    y = ds.map(lambda x, y: y)
    list(tf.data.Dataset.zip((x, y)))


@near("shuffled-apart")
def parts_of_what_is_kept_behind_its_draws():
    ds = drawn().cache()
    x = ds.map(lambda x, y: x)
    y = ds.map(lambda x, y: y)
    list(ds)
    for a, b in zip(x, y):
        print(int(a), int(b))


@near("shuffled-apart")
def parts_of_which_one_is_drawn():
    ds = tf.data.Dataset.range(5).map(lambda x: tf.numpy_function(noisy, [x], [tf.float32, tf.float32]))
    x = ds.map(lambda x, y: x)
    y = ds.map(lambda x, y: y)
    for a, b in zip(x, y):
        print(float(a), float(b))


@near("shuffled-apart")
def parts_of_what_is_shuffled_in_one_order():
    ds = pairs().shuffle(8, seed=1, reshuffle_each_iteration=False)
    x = ds.map(lambda x, y: x)
    y = ds.map(lambda x, y: y)
    for a, b in zip(x, y):
        print(float(a), int(b))
