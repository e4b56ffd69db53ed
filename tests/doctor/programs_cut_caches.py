"""Programs that do not fail, with a cache behind a body, of which passes read a part, or all."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("recomputed", says="The .cache() behind it kept nothing, as no pass read its dataset to the end", pastes=True)
def a_part_of_a_cache():
    def doubled(x):
        return np.float32(x * 2)

    ds = tf.data.Dataset.range(100).map(lambda x: tf.numpy_function(doubled, [x], tf.float32)).cache()
    for _ in range(3):
        for _ in ds.take(20):
            pass


@triggers("recomputed", says=".take(20).cache().batch(4):", pastes=True)
def batches_of_a_part_of_a_cache():
    def doubled(x):
        return np.float32(x * 2)

    ds = tf.data.Dataset.range(100)
    ds = ds.map(lambda x: tf.numpy_function(doubled, [x], tf.float32))
    for _ in range(2):
        for _ in ds.cache().batch(4).take(5):
            pass


@triggers("recomputed", says="40 of 60 calls, and gave the same again. The .cache()", pastes=True)
def a_part_of_a_cache_in_one_chain():
    def doubled(x):
        return np.float32(x * 2)

    count = 20
    names = tf.data.Dataset.range(100)
    ds = names.map(lambda x: tf.numpy_function(doubled, [x], tf.float32)).cache().take(count).prefetch(1)
    for _ in range(3):
        for _ in ds:
            pass


@triggers("recomputed", says="for element in dataset.take(n).cache(): ...  # to its end, without the break")
def a_loop_that_breaks_off():
    def doubled(x):
        return np.float32(x * 2)

    ds = tf.data.Dataset.range(100).map(lambda x: tf.numpy_function(doubled, [x], tf.float32)).cache()
    for epoch in range(3):
        for at, _ in enumerate(ds):
            if at == 30 - 5 * epoch:
                break


@triggers("recomputed", says="dataset.take(n).cache() in place of dataset.cache().take(n)")
def a_part_of_a_shuffled_cache():
    def doubled(x):
        return np.float32(x * 2)

    ds = tf.data.Dataset.range(40).map(lambda x: tf.numpy_function(doubled, [x], tf.float32)).cache()
    for _ in range(4):
        for _ in ds.shuffle(30).take(10):
            pass


@near("recomputed")
def a_cache_whose_first_pass_reads_all():
    def doubled(x):
        return np.float32(x * 2)

    ds = tf.data.Dataset.range(40).map(lambda x: tf.numpy_function(doubled, [x], tf.float32)).cache()
    for _ in ds:
        pass
    for _ in range(3):
        for _ in ds.take(20):
            pass


@near("recomputed")
def a_cache_of_a_part():
    def doubled(x):
        return np.float32(x * 2)

    ds = tf.data.Dataset.range(40).map(lambda x: tf.numpy_function(doubled, [x], tf.float32)).take(20).cache()
    for _ in range(3):
        for _ in ds:
            pass


@near("recomputed")
def a_cache_that_a_later_pass_fills():
    def doubled(x):
        return np.float32(x * 2)

    ds = tf.data.Dataset.range(40).map(lambda x: tf.numpy_function(doubled, [x], tf.float32)).cache()
    for epoch in range(4):
        for at, _ in enumerate(ds):
            if at == 20 and epoch < 3:
                break


@near("recomputed")
def two_parts_of_a_cache():
    def doubled(x):
        return np.float32(x * 2)

    ds = tf.data.Dataset.range(40).map(lambda x: tf.numpy_function(doubled, [x], tf.float32)).cache()
    for _ in range(3):
        for _ in ds.take(30):
            pass
        for _ in ds.skip(30):
            pass
