"""More programs that do not fail: as `programs_threads`, of Keras models, their losses and gradients."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- printed-symbol: a text alone -------------------------------------------------------------------------------------


@triggers("printed-symbol", says="and not in each of its 5 runs", pastes=True)
def a_text_printed_in_a_step():
    @tf.function
    def step(x):
        print("start of the step", end="\n\n")
        return x * 2

    for _ in range(5):
        step(tf.constant(1.0))


@triggers("printed-symbol", says="line 39 of call prints while", pastes=True)  # tensorflow#56746
def texts_printed_in_a_model_of_keras():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            print("call is called")
            return self.dense(x)

    model = Model()
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 2), np.float32), np.ones((8, 1), np.float32), batch_size=2, epochs=3, verbose=0)


@near("printed-symbol")
def texts_of_who_knows_when_they_are_printed():
    @tf.function
    def step(x):
        print("Tracing step")
        print("this runs only once")
        print()
        print("-" * 20)
        print("-----")
        tf.print("step")
        return x * 2

    for _ in range(5):
        step(tf.constant(1.0))


@near("printed-symbol")
def a_text_in_a_function_that_runs_once_a_trace():
    @tf.function
    def step(x):
        print("hello")
        return x * 2

    step(tf.constant(1.0))
    step(tf.constant([1.0]))


@near("printed-symbol")
def a_text_of_a_model_that_runs_eagerly():
    def distance(y, prediction):
        print("in the loss")
        return tf.reduce_mean((y - prediction) ** 2)

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", distance, run_eagerly=True)
    model.fit(np.ones((8, 2), np.float32), np.ones((8, 1), np.float32), batch_size=2, epochs=3, verbose=0)
