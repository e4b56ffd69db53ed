"""More programs that do not fail: gradients through datasets, and loops over these, after threads of users."""

from __future__ import annotations

import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("cut-gradient", says="in iter(data):", pastes=True)
def a_loop_over_a_dataset_under_a_tape_in_a_function():
    par = tf.Variable(1.0)
    floats = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(2)

    @tf.function
    def training_step(data):
        loss = 0.0
        with tf.GradientTape() as tape:
            for d in data:
                loss += tf.reduce_sum((d - par) ** 2)
        return loss, tape.gradient(loss, par)

    training_step(floats)


@triggers("cut-gradient", says="Ask a tape for each element")
def a_loop_over_elements_with_whole_numbers_under_a_tape_in_a_function():
    w = tf.Variable(2.0)

    @tf.function
    def grad(data):
        with tf.GradientTape() as tape:
            loss = 0.0
            for x, _ in data:
                loss = loss + w * x
        return tape.gradient(loss, w)

    grad(tf.data.Dataset.range(4).map(lambda v: (tf.cast(v, tf.float32), v)))


@triggers("cut-gradient", says="Do in the loop what computes with the variable")
def a_map_with_a_variable_under_a_tape_in_a_function():
    w = tf.Variable(2.0)

    @tf.function
    def grad(n):
        with tf.GradientTape() as tape:
            loss = 0.0
            for v in tf.data.Dataset.range(n).map(lambda v: tf.cast(v, tf.float32) * w):
                loss = loss + v
        return tape.gradient(loss, w)

    grad(4)


@triggers("untaped", says="is one op, which has no gradient")
def a_reduce_of_a_dataset_under_a_tape():
    w = tf.Variable(2.0)
    floats = tf.data.Dataset.from_tensor_slices([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = floats.reduce(0.0, lambda total, v: total + w * v)
    tape.gradient(loss, w)


@triggers("untaped", says="runs in the dataset, out of the tape's sight")
def a_map_with_a_variable_that_a_loop_under_a_tape_goes_over():
    w = tf.Variable(2.0)
    scaled = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda v: v * w)
    with tf.GradientTape() as tape:
        loss = 0.0
        for v in scaled:
            loss += v
    tape.gradient(loss, w)


@near("cut-gradient")
def a_tape_in_a_loop_over_a_dataset_in_a_function():
    w = tf.Variable(2.0)
    floats = tf.data.Dataset.from_tensor_slices([1.0, 2.0])

    @tf.function
    def train():
        for v in floats:
            with tf.GradientTape() as tape:
                loss = (w * v - 1.0) ** 2
            w.assign_sub(0.1 * tape.gradient(loss, w))

    train()


@near("cut-gradient")
def a_loop_over_an_iterator_under_a_tape_in_a_function():
    w = tf.Variable(2.0)
    floats = tf.data.Dataset.from_tensor_slices([1.0, 2.0])

    @tf.function
    def grad():
        with tf.GradientTape() as tape:
            loss = 0.0
            for v in iter(floats):
                loss += w * v
        return tape.gradient(loss, w)

    grad()


@near("cut-gradient")
def a_loop_over_a_dataset_under_a_tape_in_eager_code():
    w = tf.Variable(2.0)
    floats = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda v: v * 2.0)
    with tf.GradientTape() as tape:
        loss = 0.0
        for v in floats:
            loss += w * v
    tape.gradient(loss, w)
