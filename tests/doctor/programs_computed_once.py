"""Programs that do not fail, with calls that are declared stateless: TensorFlow calls them once, or drops some."""

from __future__ import annotations

import itertools
import time

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("computed-once", says="called it once, for 3 runs of drawn, which all got the same", pastes=True)
def a_draw_that_is_declared_stateless():
    def draw():
        return np.float32(np.random.rand())

    @tf.function
    def drawn():
        return tf.numpy_function(draw, [], tf.float32, stateful=False)

    for _ in range(3):
        drawn()


@triggers("computed-once", says="called it once, for 2 runs of both, which all got the same", pastes=True)
def two_draws_that_are_declared_stateless():
    def draw():
        return np.float32(np.random.rand())

    @tf.function
    def both():
        first = tf.numpy_function(draw, [], tf.float32, stateful=False)
        return first + tf.numpy_function(draw, [], tf.float32, stateful=False)

    for _ in range(2):
        both()


@triggers("computed-once", says="reads a clock, and its call says stateful=False", pastes=True)
def a_clock_that_is_declared_stateless():
    def now():
        return np.float64(time.time())

    @tf.function
    def lasted(x):
        begun = tf.compat.v1.py_func(now, [], tf.float64, False)
        return begun + tf.cast(x, tf.float64)

    for number in range(3):
        lasted(tf.constant(number))


@triggers("computed-once", says="called it once, for 6 elements, which all got the same", pastes=True)
def a_draw_for_all_elements():
    def noise(size):
        return np.random.normal(size=size).astype(np.float32)

    def noisy(x):
        return tf.cast(x, tf.float32) + tf.numpy_function(noise, [3], tf.float32, stateful=False)

    for _ in tf.data.Dataset.range(6).map(noisy):
        pass


@triggers("computed-once", says="changes what it keeps", pastes=True)
def a_count_that_is_declared_stateless():
    seen = {"steps": 0}

    def step():
        seen["steps"] += 1
        return np.int64(seen["steps"])

    @tf.function
    def numbered(x):
        return x + tf.numpy_function(
            step, [], tf.int64,
            stateful=False,
        )  # fmt: skip

    for _ in range(2):
        numbered(tf.constant(1, tf.int64))


@near("computed-once")
def a_table_that_is_declared_stateless():
    def table():
        return np.random.default_rng(7).normal(size=3).astype(np.float32)

    @tf.function
    def shifted(x):
        return x + tf.numpy_function(table, [], tf.float32, stateful=False)

    for _ in range(3):
        shifted(tf.ones(3))


@near("computed-once")
def a_stateless_draw_that_takes_the_element():
    def noise(x):
        return np.float32(x + np.random.rand())

    for _ in tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(noise, [x], tf.float32, stateful=False)):
        pass


@near("computed-once")
def a_stateless_draw_of_a_branch():
    def draw():
        return np.float32(np.random.rand())

    @tf.function
    def sometimes(x):
        if x > 2:  # noqa: SIM108
            x = tf.numpy_function(draw, [], tf.float32, stateful=False)
        else:
            x = tf.constant(0.0)
        return x

    for number in range(4):
        sometimes(tf.constant(number))


@near("computed-once")
def a_draw_of_each_run():
    numbers = itertools.count()

    def draw():
        return np.float32(next(numbers) + np.random.rand())

    @tf.function
    def drawn():
        return tf.numpy_function(draw, [], tf.float32)

    for _ in range(3):
        drawn()
