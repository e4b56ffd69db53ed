"""Bodies of NumPy's with a step in them: which get the slope of their input, and which their own."""

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("cut-gradient", says="tf.sign(h) * tf.math.log1p(tf.abs(h))", pastes=True)
def a_sign_beside_a_logarithm():
    w, b = tf.Variable([[0.5], [0.3]]), tf.Variable([0.1])

    def squeezed(h):
        return np.sign(h) * np.log1p(np.abs(h))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            p = tf.numpy_function(squeezed, [x @ w], tf.float32)
            loss = tf.reduce_mean((p + b) ** 2)
        for variable, slope in zip([w, b], tape.gradient(loss, [w, b])):
            if slope is not None:
                variable.assign_sub(0.1 * slope)

    step(tf.ones([3, 2]))


@triggers("cut-gradient", says="tf.sign(o) * tf.exp(-tf.abs(o))", pastes=True)
def a_bump_with_a_sign():
    w, b = tf.Variable([[0.5], [0.3]]), tf.Variable([0.1])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            p = tf.compat.v1.py_func(lambda o: np.sign(o) * np.exp(-np.abs(o)), [x @ w], tf.float32)
            loss = tf.reduce_mean((p + b) ** 2)
        return tape.gradient(loss, [w, b])

    step(tf.ones([3, 2]))


@triggers("cut-gradient", says="use turned for a metric")
def a_rounding_that_falls():
    w, b = tf.Variable([[0.5], [0.3]]), tf.Variable([0.1])

    def turned(o):
        return -np.round(o * 100)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.numpy_function(turned, [x @ w], tf.float32) + b) ** 2)
        return tape.gradient(loss, [w, b])

    step(tf.ones([3, 2]))


@triggers("cut-gradient", says="takes 1 for the slope, as a stand-in", pastes=True)
def a_rounding_by_levels_of_an_object():
    w, b, levels = tf.Variable([[0.5], [0.3]]), tf.Variable([0.1]), 8

    def quantized(o):
        scaled = o * levels
        scaled = np.floor(scaled)
        return np.clip(scaled / levels, -1.0, 1.0).astype(np.float32)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.numpy_function(quantized, [x @ w], tf.float32) + b) ** 2)
        return tape.gradient(loss, [w, b])

    step(tf.ones([3, 2]))


@near("cut-gradient")
def a_sign_beside_a_logarithm_in_ops():
    w = tf.Variable([[0.5], [0.3]])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            h = tf.py_function(lambda o: tf.sign(o) * tf.math.log1p(tf.abs(o)), [x @ w], tf.float32)
            loss = tf.reduce_mean(h**2)
        return tape.gradient(loss, [w])

    step(tf.ones([3, 2]))


@near("cut-gradient")
def a_sign_of_labels_in_numpy():
    w = tf.Variable([[0.5], [0.3]])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            wanted = tf.numpy_function(lambda y: np.sign(y) * np.exp(-np.abs(y)), [x[:, :1]], tf.float32)
            loss = tf.reduce_mean((x @ w - wanted) ** 2)
        return tape.gradient(loss, [w])

    step(tf.ones([3, 2]))
