"""Programs that draw random numbers where the ends of the draw leave one answer only."""

from __future__ import annotations

import random

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

ROWS = np.arange(24, dtype="float32").reshape(8, 3)


@triggers("decided-draw", says="np.random.randint(0, 1) is always 0: the upper end, 1, does not count", pastes=True)
def a_coin_that_is_always_0():
    def mirrored(row):
        if np.random.randint(0, 1):
            row = row[::-1]
        return row

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(mirrored, [x], tf.float32)))


@triggers("decided-draw", says="`p > 1` never holds: np.random.rand() goes from 0 to below 1, which", pastes=True)
def a_fraction_that_is_compared_with_1():
    def mirrored(row):
        p = np.random.rand()
        if p > 1:
            row = row[::-1]
        return row

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(mirrored, [x], tf.float32)))


@triggers("decided-draw", says="`random.random() < 0` never holds", pastes=True)
def a_fraction_below_0():
    def mirrored(row):
        return row[::-1] if random.random() < 0 else row

    def augment(x):
        return tf.numpy_function(mirrored, [x], tf.float32)

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(augment))


@triggers("decided-draw", says="counts as true unless it is exactly 0", pastes=True)
def a_fraction_as_a_condition():
    rng = np.random.default_rng(1)

    def rows():
        for row in ROWS:
            if rng.random():
                row = row[::-1]
            yield row

    list(tf.data.Dataset.from_generator(rows, output_types=tf.float32))


@triggers("decided-draw", says="random.randint(1, 1) is always 1, as its ends are the same", pastes=True)
def a_coin_of_one_side():
    def moved(row):
        if random.randint(1, 1) == 1:
            row = row + 1
        return row

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(moved, [x], tf.float32)))


@triggers("decided-draw", says="`np.random.randint(0, 2) == 2` never holds", pastes=True)
def an_end_that_does_not_count():
    def moved(row):
        if np.random.randint(0, 2) == 2:
            row = row + 1
        return row

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(moved, [x], tf.float32)))


@triggers("decided-draw", says="maxval=1, dtype=tf.int32) is always 0", pastes=True)
def a_draw_of_a_graph():
    def moved(x):
        x = tf.numpy_function(lambda row: row, [x], tf.float32)
        if tf.random.uniform([], maxval=1, dtype=tf.int32) == 1:
            x = x + 1.0
        return x

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(moved))


@triggers("decided-draw", says="np.random.choice([0]) is always 0")
def a_choice_of_one():
    def moved(row):
        return row + np.float32(np.random.choice([0]))

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(moved, [x], tf.float32)))


@near("decided-draw")
def draws_that_decide():
    def mirrored(row):
        if np.random.randint(0, 2) or np.random.randint(2) == 1 or random.randint(0, 1):
            row = row[::-1]
        if np.random.rand() < 0.5 or random.random() > 0.99 or np.random.uniform(-1, 1) > 0:
            row = row + 1
        if np.random.randn() > 1 or np.random.normal(0, 1) < 0 or np.random.uniform(0, 2) > 1:
            row = row + 1
        return row + random.choice([0.0, 1.0]).real + np.float32(0)

    list(
        tf.data.Dataset.from_tensor_slices(ROWS).map(
            lambda x: tf.numpy_function(lambda row: np.float32(mirrored(row)), [x], tf.float32)
        )
    )


@near("decided-draw")
def ends_that_are_not_written():
    chance, count = 0.0, 1

    def mirrored(row):
        if random.random() < chance or np.random.randint(0, count):
            row = row[::-1]
        return row

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(mirrored, [x], tf.float32)))


@near("decided-draw")
def a_module_of_that_name():
    class Dice:
        def randint(self, low, high):
            return high - low

    rng = Dice()

    def moved(row):
        if rng.randint(1, 1):
            row = row + 1
        return row

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(moved, [x], tf.float32)))


@near("decided-draw")
def a_draw_that_is_on_purpose_always_taken():
    def moved(row):
        if random.random() < 1.0:
            row = row + 1
        return row

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(moved, [x], tf.float32)))
