"""Programs whose skip or shard stands behind a map that takes long, and programs where it costs nothing."""

import time

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


def slow(i):
    time.sleep(0.004)
    return np.float32(i)


def quick(i):
    return np.float32(i)


@near("input-bound")  # most of what it waits for is thrown away
@triggers("late-skip", says="data.skip(12 * size).map(", pastes=True)
def batches_skipped_in_one_chain():
    size = 10
    data = tf.data.Dataset.range(150)
    held_out = data.map(lambda i: tf.numpy_function(slow, [i], tf.float32)).batch(size).skip(12).prefetch(2)
    for _ in range(2):
        assert sum(float(tf.reduce_sum(x)) for x in held_out) == sum(range(120, 150))


@triggers("late-skip", says=".skip(count).map(", pastes=True)
def a_split_of_what_was_loaded():
    count = 110
    rows = tf.data.Dataset.from_tensor_slices(np.arange(130))
    rows = rows.map(lambda i: tf.numpy_function(slow, [i], tf.float32))
    training = rows.take(count)
    held_out = rows.skip(count)
    for _ in range(2):
        assert sum(1 for _ in training) == count
        assert sum(float(x) for x in held_out) == sum(range(110, 130))


def loaded_from(count):
    return tf.data.Dataset.range(count).map(lambda i: tf.numpy_function(slow, [i], tf.float32))


@triggers("late-skip", says="skip(13) leaves out 13 batches of 8")
def a_split_behind_another_function():
    batches = loaded_from(120).batch(8)
    for _ in range(2):
        assert sum(1 for _ in batches.skip(13)) == 2


@triggers("late-skip", says="gives one of 4 parts", pastes=True)
def a_part_for_each_worker_of_what_was_loaded():
    files = tf.data.Dataset.range(200)
    part = files.map(lambda i: tf.numpy_function(slow, [i], tf.float32))
    part = part.shard(4, 1)
    assert sum(float(x) for x in part) == sum(range(1, 200, 4))


@near("late-skip")
def a_skip_before_the_map():
    rows = tf.data.Dataset.range(150).skip(120).map(lambda i: tf.numpy_function(slow, [i], tf.float32))
    for _ in range(4):
        list(rows)


@near("late-skip")
def a_skip_behind_a_cache():
    rows = tf.data.Dataset.range(120).map(lambda i: tf.numpy_function(slow, [i], tf.float32)).cache().skip(101)
    for _ in range(2):
        list(rows)


@near("late-skip")
def a_skip_before_a_cache():
    rows = tf.data.Dataset.range(120).map(lambda i: tf.numpy_function(slow, [i], tf.float32)).skip(102).cache()
    for _ in range(3):
        list(rows)


@near("late-skip")
def a_skip_of_cheap_elements():
    rows = tf.data.Dataset.range(200).map(lambda i: tf.numpy_function(quick, [i], tf.float32)).skip(151)
    for _ in range(3):
        list(rows)


@near("late-skip")
def a_skip_of_the_first():
    rows = tf.data.Dataset.range(100).map(lambda i: tf.numpy_function(slow, [i], tf.float32)).skip(1)
    for _ in range(2):
        list(rows)


@near("late-skip")
def a_skip_behind_a_filter():
    rows = tf.data.Dataset.range(150).map(lambda i: tf.numpy_function(slow, [i], tf.float32))
    rows = rows.filter(lambda x: x > 20.0).skip(103)
    for _ in range(2):
        list(rows)


@near("late-skip")
def a_skip_of_more_than_there_is():
    rows = tf.data.Dataset.range(90).map(lambda i: tf.numpy_function(slow, [i], tf.float32)).skip(104)
    for _ in range(2):
        list(rows)
