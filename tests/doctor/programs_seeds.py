"""Programs that seed one generator and draw from another, and that draw for their validation; and near-misses."""

from __future__ import annotations

import random

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- unseeded-draws ---------------------------------------------------------------------------------------------------


@triggers("unseeded-draws", says="jitter draws by NumPy, which has a seed of its own", pastes=True)
def numpy_in_a_body():
    tf.random.set_seed(42)

    def jitter(x):
        return x + np.random.normal(size=x.shape).astype(np.float32)

    list(tf.data.Dataset.from_tensor_slices(np.ones((6, 2), np.float32)).map(
        lambda x: tf.numpy_function(jitter, [x], tf.float32)
    ))  # fmt: skip


@triggers("unseeded-draws", says="pick draws by Python's random", pastes=True)
def python_in_a_body():
    tf.random.set_seed(7)

    def pick(x):
        return x * random.choice([1.0, 2.0])

    for _ in range(3):
        tf.py_function(pick, [tf.ones([2])], tf.float32)


@triggers("unseeded-draws", says="pairs draws by NumPy", pastes=True)
def numpy_in_a_generator():
    tf.compat.v1.set_random_seed(3)

    def pairs():
        for _ in range(4):
            yield np.random.rand(2)

    list(tf.data.Dataset.from_generator(pairs, output_signature=tf.TensorSpec((2,), tf.float64)))


@near("unseeded-draws")
def both_are_seeded():
    tf.random.set_seed(42)
    np.random.seed(42)
    tf.numpy_function(lambda x: x + np.random.rand(), [tf.ones([2], tf.float64)], tf.float64)


@near("unseeded-draws")
def all_are_seeded_at_once():
    keras.utils.set_random_seed(42)
    tf.numpy_function(lambda x: x + np.random.rand(), [tf.ones([2], tf.float64)], tf.float64)


@near("unseeded-draws")
def a_body_that_draws_nothing():
    tf.random.set_seed(42)
    tf.numpy_function(lambda x: x * 2, [tf.random.uniform([2])], tf.float32)


@near("unseeded-draws")
def nothing_is_seeded():
    tf.numpy_function(lambda x: x + np.random.rand(), [tf.ones([2], tf.float64)], tf.float64)


# -- augmented-validation ---------------------------------------------------------------------------------------------


def flip(x):
    return x[::-1].copy() if np.random.rand() < 0.5 else x


def plain(x):
    return x * 2


def rows():
    x = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1]))


def flipped(x, y):
    return tf.ensure_shape(tf.numpy_function(flip, [x], tf.float32), [4]), y


def model():
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


@triggers("augmented-validation", says="flip draws random numbers, and stands in the pipeline of validation_data=val")
def one_map_for_both():
    train = rows().take(24).map(flipped).batch(8)
    val = rows().skip(24).map(flipped).batch(8)
    model().fit(train, validation_data=val, epochs=2, verbose=0)


@triggers("augmented-validation", says="leave flip out of val")
def split_behind_the_map():
    data = rows().map(flipped)
    train, val = data.take(24).batch(8), None
    val = data.skip(24).batch(8)
    model().fit(train, validation_data=val, epochs=2, verbose=0)


@triggers("augmented-validation", says="np.random.rand()")
def a_function_that_makes_both():
    def made(data):
        return data.map(flipped).batch(8)

    train = made(rows().take(24))
    val = made(rows().skip(24))
    model().fit(train, validation_data=val, epochs=2, verbose=0)


@near("augmented-validation")
def the_training_alone():
    train = rows().take(24).map(flipped).batch(8)
    val = rows().skip(24).batch(8)
    model().fit(train, validation_data=val, epochs=2, verbose=0)


@near("augmented-validation")
def nothing_random():
    def doubled(x, y):
        return tf.ensure_shape(tf.numpy_function(plain, [x], tf.float32), [4]), y

    train = rows().take(24).map(doubled).batch(8)
    val = rows().skip(24).map(doubled).batch(8)
    model().fit(train, validation_data=val, epochs=2, verbose=0)


@near("augmented-validation")
def noise_that_is_the_task():
    def with_noise(x):
        return x + np.random.normal(size=x.shape).astype(np.float32)

    def noisy(x, y):
        return tf.ensure_shape(tf.numpy_function(with_noise, [x], tf.float32), [4]), y

    train = rows().take(24).map(noisy).batch(8)
    val = rows().skip(24).map(noisy).batch(8)
    model().fit(train, validation_data=val, epochs=2, verbose=0)
