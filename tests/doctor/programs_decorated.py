"""Programs that do not fail: bodies that are decorated to be a node's, `@tf.numpy_function(Tout=...)`."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("cut-gradient", says="@tf.py_function(Tout=tf.float32)", pastes=True)
def a_square_by_a_decorated_body():
    @tf.numpy_function(Tout=tf.float32)
    def squared(x):
        return np.square(x)

    x = tf.Variable(2.0)

    @tf.function
    def slope():
        with tf.GradientTape() as tape:
            y = squared(x)
        return tape.gradient(y, x)

    slope()


@triggers("cut-gradient", says="x + tf.stop_gradient(in_steps(x) - x)", pastes=True)
def weights_that_are_quantized_by_a_decorated_body():
    @tf.numpy_function(Tout=tf.float32)
    def in_steps(x):
        return (np.ceil(32 * x) / 32).astype(np.float32)

    weights = tf.Variable(tf.ones([3]))

    @tf.function
    def slope():
        with tf.GradientTape() as tape:
            x = weights * 0.3
            q = in_steps(x)
            loss = tf.reduce_sum(q**2)
        return tape.gradient(loss, weights)

    slope()


@triggers("cached-random", says="range(4).cache().map(lambda x: noisy(x))", pastes=True)
def noise_of_a_decorated_body_before_the_cache():
    @tf.py_function(Tout=tf.float32)
    def noisy(x):
        return tf.cast(x, tf.float32) + tf.random.normal([3])

    data = tf.data.Dataset.range(4).map(lambda x: noisy(x)).cache().batch(2)
    for _ in range(3):
        for _ in data:
            pass


@triggers("second-order", says="def cube(x):", pastes=True)
def a_second_derivative_of_a_decorated_body():
    @tf.py_function(Tout=tf.float32)
    def cube(x):
        return x**3

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube(x)
        dy = inner.gradient(y, x)
    outer.gradient(dy, x)


@near("cut-gradient")
def a_decorated_body_with_a_gradient():
    @tf.py_function(Tout=tf.float32)
    def squared(x):
        return x * x

    x = tf.Variable(2.0)

    @tf.function
    def slope():
        with tf.GradientTape() as tape:
            y = squared(x)
        return tape.gradient(y, x)

    slope()


@near("trace-only")
def a_decorated_body_that_keeps_what_it_gets():
    seen = []

    @tf.py_function(Tout=tf.float32)
    def kept(x):
        seen.append(float(x))
        return x

    @tf.function
    def step(x):
        return kept(x) + 1.0

    for _ in range(4):
        step(tf.constant(1.0))
    len(seen)


@near("trace-only")
def a_decorated_body_that_counts_in_an_object():
    class Counter:
        count = 0

        @staticmethod
        @tf.numpy_function(Tout=tf.int64)
        def counted():
            Counter.count += 1
            return Counter.count

    class Scaled(keras.layers.Layer):
        def call(self, x):
            return x * tf.cast(tf.ensure_shape(Counter.counted(), []), x.dtype)

    layer = tf.function(Scaled())
    for _ in range(3):
        layer(tf.ones([2, 2]))


@near("printed-symbol")
def a_decorated_body_that_prints_what_it_gets():
    @tf.numpy_function(Tout=tf.float32)
    def shown(x):
        print("x", x)
        return x

    @tf.function
    def step(x):
        return shown(x) * 2.0

    for _ in range(2):
        step(tf.constant(1.0))


@near("trace-only")
def another_function_of_the_name_of_a_decorated_body():
    @tf.numpy_function(Tout=tf.float32)
    def cos(x):
        return np.cos(x)

    @tf.function
    def step(x):
        return cos(x) + np.cos(0.5)

    for _ in range(2):
        step(tf.constant(1.0))


@near("trace-only")
def a_decorated_body_that_draws_and_is_mapped_by_its_name():
    @tf.numpy_function(Tout=tf.float32)
    def augmented(x):
        return np.float32(x) + np.float32(np.random.uniform())

    for _ in tf.data.Dataset.range(5).map(augmented):
        pass
