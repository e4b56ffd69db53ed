"""Programs whose bodies write summaries, on threads that have a writer, and on others."""

from __future__ import annotations

import tempfile

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers(
    "no-writer", says="tf.summary.write writes nothing here: TensorFlow ran log on a thread of its own", pastes=True
)
def a_writer_without_a_name():
    folder = tempfile.mkdtemp()

    @tf.function
    def step(x):
        def log(value):
            tf.summary.write("loss", value)

        tf.py_function(log, [x], [])
        return x * 2.0

    with tf.summary.create_file_writer(folder).as_default():
        tf.summary.experimental.set_step(3)
        step(tf.constant(1.0))


@triggers("no-writer", says="in all of its 4 calls", pastes=True)
def a_helper_of_a_mapped_body():
    writer = tf.summary.create_file_writer(tempfile.mkdtemp())

    def note(x, number):
        size = tf.size(x)
        tf.summary.write("mean", tf.reduce_mean(x), step=number)
        tf.summary.write("size", size, step=number)

    def body(x):
        note(x, 2)
        return x * 2.0

    data = tf.data.Dataset.from_tensor_slices(np.ones((4, 2), "float32"))
    with writer.as_default():
        for _ in data.map(lambda x: tf.py_function(body, [x], tf.float32)):
            pass


@triggers("no-writer", says="TensorFlow ran note on a thread of its own", pastes=True)
def a_writer_of_a_model():
    class Noted(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.head = tf.keras.layers.Dense(1)
            self.writer = tf.summary.create_file_writer(tempfile.mkdtemp())
            self.seen = tf.Variable(0, dtype=tf.int64, trainable=False)

        def note(self, value):
            tf.summary.write("mean", value, step=self.seen)

        def call(self, x):
            y = self.head(x)
            tf.py_function(self.note, [tf.reduce_mean(y)], [])
            return y

    model = Noted()
    model.compile("sgd", "mse")
    with model.writer.as_default():
        model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)


@triggers("no-writer", says="with writer.as_default(step=...):")
def a_step_that_the_loop_sets():
    @tf.function
    def step(x):
        tf.py_function(lambda value: tf.summary.write("loss", value), [x], tf.bool)
        return x * 2.0

    writer = tf.summary.create_file_writer(tempfile.mkdtemp())
    for number in range(2):
        with writer.as_default(step=number):
            step(tf.constant(1.0))


@near("no-writer")
def a_body_with_its_writer():
    writer = tf.summary.create_file_writer(tempfile.mkdtemp())

    def log(value):
        with writer.as_default(step=1):
            tf.summary.write("loss", value)

    @tf.function
    def step(x):
        tf.py_function(log, [x], [])
        return x

    step(tf.constant(1.0))


@near("no-writer")
def an_eager_body():
    def log(value):
        assert tf.summary.write("loss", value, step=1)
        return value

    with tf.summary.create_file_writer(tempfile.mkdtemp()).as_default():
        tf.py_function(log, [tf.constant(1.0)], tf.float32)


@near("no-writer")
def another_writer_of_scalars():
    class Board:
        def __init__(self):
            self.summary = self
            self.seen = []

        def scalar(self, name, value):
            self.seen.append((name, float(value)))

    board = Board()

    @tf.function
    def step(x):
        tf.py_function(lambda value: board.summary.scalar("loss", value), [x], [])
        tf.summary.write("loss", x, step=1)
        return x

    with tf.summary.create_file_writer(tempfile.mkdtemp()).as_default():
        step(tf.constant(1.0))
