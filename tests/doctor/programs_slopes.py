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


# -- gradient-check: what follows is left out -------------------------------------------------------------------------


def trained(function, size=3):
    w = tf.Variable(tf.linspace(0.1, 0.5, size))
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(3.0 * function(w))
        w.assign_sub(0.1 * tape.gradient(loss, w))


@triggers("gradient-check", says="return dy * g", pastes=True)
def a_sine_of_numpy_without_what_follows():
    @tf.custom_gradient
    def sine(x):
        def grad(dy):
            g = tf.numpy_function(np.cos, [x], tf.float32)
            return g

        return tf.numpy_function(np.sin, [x], tf.float32), grad

    trained(sine)


@triggers("gradient-check", says="leaves out upstream", pastes=True)
def a_slope_in_a_lambda_without_what_follows():
    @tf.custom_gradient
    def squared(x):
        return tf.numpy_function(lambda x: x * x, [x], tf.float32), lambda upstream: 2.0 * x

    trained(squared)


@triggers("gradient-check", says="multiply what grad returns by dy")
def two_slopes_without_what_follows():
    @tf.custom_gradient
    def product(x, y):
        def grad(dy):
            return y, x

        return tf.numpy_function(lambda x, y: x * y, [x, y], tf.float32), grad

    trained(lambda w: product(w, 2.0 * w))


@near("gradient-check")
def a_sine_of_numpy_with_what_follows():
    @tf.custom_gradient
    def sine(x):
        def grad(dy):
            return dy * tf.numpy_function(np.cos, [x], tf.float32)

        return tf.numpy_function(np.sin, [x], tf.float32), grad

    trained(sine)


@near("gradient-check")
def a_slope_that_is_cut_on_purpose():
    @tf.custom_gradient
    def counted(x):
        return tf.numpy_function(lambda x: x * 2, [x], tf.float32), lambda dy: tf.zeros_like(x)

    trained(counted)


@near("gradient-check")
def a_slope_of_the_loss_itself():
    @tf.custom_gradient
    def energy(x):
        def grad(dy):
            return 2.0 * x

        return tf.numpy_function(lambda x: np.sum(x * x), [x], tf.float32), grad

    w = tf.Variable([0.1, 0.2])
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = energy(w)
        w.assign_sub(0.1 * tape.gradient(loss, w))


@near("gradient-check")
def a_slope_by_all_that_is_given():
    @tf.custom_gradient
    def sine(x):
        def grad(*given):
            return given[0] * tf.cos(x)

        return tf.numpy_function(np.sin, [x], tf.float32), grad

    trained(sine)
