"""Generators that yield fractions where whole numbers are declared, and those that yield what they should."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("output-contract", says="shares yields 0.25 (float), but its dataset declares int32", pastes=True)
def shares_of_output_types():
    def shares():
        for i in range(4):
            yield i / 4

    list(tf.data.Dataset.from_generator(shares, tf.int32, []))


@triggers("output-contract", says='"weight": tf.TensorSpec([2], tf.float32)', pastes=True)
def an_array_in_a_dict():
    def rows():
        for i in range(3):
            yield {"weight": np.array([i, i + 0.5]), "class": i}

    spec = {"weight": tf.TensorSpec([2], tf.int64), "class": tf.TensorSpec([], tf.int64)}
    list(tf.data.Dataset.from_generator(rows, output_signature=spec))


@triggers("output-contract", says="as value 2, but its dataset declares uint8", pastes=True)
def the_second_of_two_values():
    def pairs():
        for i in range(12):
            yield i, np.float32(i) / 8

    list(tf.data.Dataset.from_generator(pairs, output_types=(tf.int32, tf.uint8), output_shapes=([], [])).take(5))


@near("output-contract")
def whole_numbers_that_are_floats():
    def counts():
        for i in range(4):
            yield float(i), np.array([i, i + 1.0])

    list(tf.data.Dataset.from_generator(counts, (tf.int32, tf.int64), ([], [2])))


@near("output-contract")
def fractions_that_are_declared():
    def halves():
        for i in range(4):
            yield i, i / 2

    list(tf.data.Dataset.from_generator(halves, (tf.int32, tf.float32), ([], [])))
