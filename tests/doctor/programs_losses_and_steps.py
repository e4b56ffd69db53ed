"""Programs whose training goes another way: a loss without its minus, bounds of logits, gradients that are kept."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

ROWS = np.random.default_rng(0).random((48, 4)).astype("float32")
TWO = (ROWS.sum(1, keepdims=True) > 2).astype("float32")
SUMS = ROWS.sum(1, keepdims=True)
IMAGES = np.random.default_rng(1).random((24, 6, 6, 1)).astype("float32")
CLASSES = np.arange(24) % 2


def dense(activation=None, units=1):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(units, activation=activation)])
    return model


# -- missing-minus -----------------------------------------------------------------------------------------------------


@triggers("missing-minus", severity="error", says="and no minus stands before it", pastes=True)
def a_likelihood_for_a_loss():
    def likelihood(t, p):
        return tf.reduce_mean(t * tf.math.log(p + 1e-7) + (1 - t) * tf.math.log(1 - p + 1e-7))

    def loss(t, p):
        return tf.ensure_shape(tf.py_function(likelihood, [t, p], tf.float32), [])

    model = dense("sigmoid")
    model.compile("sgd", loss)
    model.fit(ROWS, TWO, verbose=0)


@triggers("missing-minus", says="training makes the right class less and less likely", pastes=True)
def a_likelihood_of_classes_under_a_tape():
    def likelihood(t, p):
        value = tf.reduce_sum(t * tf.math.log(p + 1e-9), axis=-1)
        return tf.reduce_mean(value)

    weights = tf.Variable(tf.random.normal((4, 3), seed=1))
    targets = tf.one_hot(np.arange(48) % 3, 3)
    for _ in range(4):
        with tf.GradientTape() as tape:
            p = tf.nn.softmax(ROWS @ weights)
            value = tf.py_function(likelihood, [targets, p], tf.float32)
        weights.assign_sub(0.1 * tape.gradient(value, weights))


@triggers("missing-minus", says="is below 0 in all", pastes=True)
def rewards_times_log_probabilities():
    def policy(rewards, p):
        return tf.reduce_mean(rewards * tf.math.log(p))

    weights = tf.Variable(tf.random.normal((4, 1), seed=1))
    for _ in range(3):
        with tf.GradientTape() as tape:
            value = tf.py_function(policy, [TWO, tf.sigmoid(ROWS @ weights)], tf.float32)
        weights.assign_sub(0.1 * tape.gradient(value, weights))


@near("missing-minus")
def a_likelihood_with_its_minus():
    def loss(t, p):
        return -tf.reduce_mean(t * tf.math.log(p + 1e-7) + (1 - t) * tf.math.log(1 - p + 1e-7))

    weights = tf.Variable(tf.random.normal((4, 1), seed=1))
    for _ in range(3):
        with tf.GradientTape() as tape:
            value = tf.py_function(loss, [TWO, tf.sigmoid(ROWS @ weights)], tf.float32)
        weights.assign_sub(0.1 * tape.gradient(value, weights))


@near("missing-minus")
def a_minus_where_it_is_called():
    def likelihood(t, p):
        return tf.reduce_mean(t * tf.math.log(p + 1e-7))

    weights = tf.Variable(tf.random.normal((4, 1), seed=1))
    for _ in range(3):
        with tf.GradientTape() as tape:
            value = tf.py_function(likelihood, [TWO, tf.sigmoid(ROWS @ weights)], tf.float32)
            loss = 1.0 - value
        weights.assign_sub(0.1 * tape.gradient(loss, weights))


@near("missing-minus")
def a_divergence():
    def divergence(t, p):
        return tf.reduce_mean(t * tf.math.log(t / p))

    weights = tf.Variable(tf.random.normal((4, 1), seed=1))
    targets = tf.constant(TWO * 0.1 + 0.01)
    for _ in range(3):
        with tf.GradientTape() as tape:
            value = tf.py_function(divergence, [targets, tf.sigmoid(ROWS @ weights)], tf.float32)
        weights.assign_sub(0.1 * tape.gradient(value, weights))


# -- logit-accuracy: in a metric's body --------------------------------------------------------------------------------


@triggers("logit-accuracy", severity="error", says="takes p for probabilities, and the model gives logits", pastes=True)
def a_metric_of_logits():
    def f1_np(t, p):
        p = (p > 0.5).astype(np.float32)
        return np.float32(2 * (t * p).sum() / (t.sum() + p.sum() + 1e-7))

    def f1(t, p):
        return tf.ensure_shape(tf.numpy_function(f1_np, [t, p], tf.float32), [])

    model = dense()
    model.layers[0].set_weights([-np.ones((4, 1), "float32"), np.zeros(1, "float32")])
    model.compile("sgd", loss=keras.losses.BinaryCrossentropy(from_logits=True), metrics=[f1])
    model.fit(ROWS, TWO, verbose=0)


@near("logit-accuracy")
def a_metric_of_logits_by_their_bound():
    def f1_np(t, p):
        p = (p > 0.0).astype(np.float32)
        return np.float32(2 * (t * p).sum() / (t.sum() + p.sum() + 1e-7))

    def f1(t, p):
        return tf.ensure_shape(tf.numpy_function(f1_np, [t, p], tf.float32), [])

    model = dense()
    model.compile("sgd", loss=keras.losses.BinaryCrossentropy(from_logits=True), metrics=[f1])
    model.fit(ROWS, TWO, verbose=0)


@near("logit-accuracy")
def a_metric_of_sums_above_a_half():
    def large_np(t, p):
        return np.mean((t > 0.5) == (p > 0.5)).astype(np.float32)

    def large(t, p):
        return tf.ensure_shape(tf.numpy_function(large_np, [t, p], tf.float32), [])

    model = dense()
    model.compile("sgd", loss="mse", metrics=[large])
    model.fit(ROWS, SUMS - 2, verbose=0)


# -- kept-gradients ----------------------------------------------------------------------------------------------------


@triggers("kept-gradients", severity="error", says="nothing sets", pastes=True)
def sums_of_gradients_that_are_kept():
    model = dense()
    optimizer = keras.optimizers.SGD(0.01)
    total = [tf.Variable(tf.zeros_like(one)) for one in model.trainable_variables]
    data = tf.data.Dataset.from_tensor_slices((ROWS, SUMS)).batch(8)
    data = data.map(lambda x, y: (tf.ensure_shape(tf.numpy_function(np.abs, [x], tf.float32), [None, 4]), y))
    for number, (x, y) in enumerate(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        for one, grad in zip(total, grads):
            one.assign_add(grad)
        if number % 3 == 2:
            optimizer.apply_gradients(zip(total, model.trainable_variables))


@near("kept-gradients")
def sums_of_gradients_that_are_set_back():
    model = dense()
    optimizer = keras.optimizers.SGD(0.01)
    total = [tf.Variable(tf.zeros_like(one)) for one in model.trainable_variables]
    data = tf.data.Dataset.from_tensor_slices((ROWS, SUMS)).batch(8)
    for number, (x, y) in enumerate(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        for one, grad in zip(total, grads):
            one.assign_add(grad)
        if number % 3 == 2:
            optimizer.apply_gradients(zip(total, model.trainable_variables))
            for one in total:
                one.assign(tf.zeros_like(one))


@near("kept-gradients")
def sums_that_each_turn_makes():
    model = dense()
    optimizer = keras.optimizers.SGD(0.01)
    data = tf.data.Dataset.from_tensor_slices((ROWS, SUMS)).batch(8)
    for x, y in data:
        total = [tf.Variable(tf.zeros_like(one)) for one in model.trainable_variables]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        for one, grad in zip(total, grads):
            one.assign_add(grad)
        optimizer.apply_gradients(zip(total, model.trainable_variables))


# -- remade-optimizer: compiled in a loop ------------------------------------------------------------------------------


@triggers("remade-optimizer", says="begins again in each turn of the loop", pastes=True)
def a_model_that_is_compiled_for_each_epoch():
    model = dense()
    for _ in range(2):
        model.compile("adam", "mse")
        model.fit(ROWS, SUMS, verbose=0)


@near("remade-optimizer")
def a_model_that_is_compiled_for_other_layers():
    model = dense()
    for trainable in (False, True):
        model.layers[0].trainable = trainable
        model.compile("adam", "mse")
        model.fit(ROWS, SUMS, verbose=0)


@near("remade-optimizer")
def a_model_for_each_rate():
    for rate in (0.1, 0.01):
        model = dense()
        model.compile(keras.optimizers.Adam(rate), "mse")
        model.fit(ROWS, SUMS, verbose=0)


@near("remade-optimizer")
def one_model_with_smaller_rates():
    model = dense()
    for rate in (0.1, 0.01):
        model.compile(keras.optimizers.Adam(rate), "mse")
        model.fit(ROWS, SUMS, verbose=0)


# -- augmented-validation: made by one function ------------------------------------------------------------------------


@triggers("augmented-validation", says="stands in the pipeline of validation_data=make(IMAGES[12:], CLASSES[12:])")
def both_by_one_function():
    def turned(x):
        return x[:, ::-1].copy() if np.random.rand() < 0.5 else x

    def make(x, y):
        data = tf.data.Dataset.from_tensor_slices((x, y))
        data = data.map(lambda a, b: (tf.ensure_shape(tf.numpy_function(turned, [a], tf.float32), [6, 6, 1]), b))
        return data.batch(4)

    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(make(IMAGES[:12], CLASSES[:12]), validation_data=make(IMAGES[12:], CLASSES[12:]), verbose=0)


@near("augmented-validation")
def one_function_that_asks_what_for():
    def turned(x):
        return x[:, ::-1].copy() if np.random.rand() < 0.5 else x

    def make(x, y, augment):
        data = tf.data.Dataset.from_tensor_slices((x, y))
        if augment:
            data = data.map(lambda a, b: (tf.ensure_shape(tf.numpy_function(turned, [a], tf.float32), [6, 6, 1]), b))
        return data.batch(4)

    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(make(IMAGES[:12], CLASSES[:12], True), validation_data=make(IMAGES[12:], CLASSES[12:], False), verbose=0)
