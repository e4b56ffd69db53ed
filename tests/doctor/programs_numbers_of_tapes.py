"""Programs whose loss is made of a number of Python's, behind a py_function under the tape."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("untaped", says="`float(y)` leaves TensorFlow, and the loss is made of it alone", pastes=True)
def a_loss_of_a_float():
    w = tf.Variable(1.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            y = tf.py_function(lambda x: x * 3, [w], tf.float32)
            loss = (tf.constant(float(y)) - 5.0) ** 2
        tape.gradient(loss, [w])


@triggers("untaped", says="`y.numpy()` leaves TensorFlow", pastes=True)
def a_loss_of_an_array():
    w = tf.Variable([1.0, 2.0])

    def tripled(x):
        return tf.square(x) * 3

    def step():
        with tf.GradientTape() as tape:
            y = tf.py_function(tripled, [w], tf.float32)
            loss = tf.reduce_sum(tf.convert_to_tensor(y.numpy()) - 5.0)
        return tape.gradient(loss, w)

    step()


@near("untaped")
def a_number_beside_the_loss():
    w = tf.Variable(1.0)
    seen = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            y = tf.py_function(lambda x: x * 3, [w], tf.float32)
            seen.append(float(y))
            loss = (y - 5.0) ** 2
        assert tape.gradient(loss, [w])[0] is not None


@near("untaped")
def a_body_that_leaves_itself():
    w = tf.Variable(1.0)

    def tripled(x):
        return np.float32(x.numpy() * 3)

    with tf.GradientTape() as tape:
        y = tf.py_function(tripled, [w], tf.float32)
        loss = tf.constant(float(y)) ** 2
    tape.gradient(loss, [w])
