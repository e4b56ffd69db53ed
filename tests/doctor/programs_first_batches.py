"""Programs that begin their dataset in each turn of a loop, and programs that only look so."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

RATE = 0.01


def row(i):
    return np.full((4,), i, np.float32)


def rows():
    made = tf.data.Dataset.range(40).map(lambda i: tf.numpy_function(row, [i], tf.float32))
    return made.map(lambda x: tf.ensure_shape(x, [4])).batch(4)


def train(weights, batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.linalg.matvec(batch, weights) - 1.0) ** 2)
    weights.assign_sub(RATE * tape.gradient(loss, weights))


@triggers("first-batch", says="begins ds in each of 8 turns, and takes the first element", pastes=True)
def the_first_batch_in_each_step():
    ds, weights = rows(), tf.Variable(tf.zeros([4]))
    for _ in range(8):
        batch = next(iter(ds))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.linalg.matvec(batch, weights) - 1.0) ** 2)
        weights.assign_sub(RATE * tape.gradient(loss, weights))


@triggers("first-batch", says="trains with the same one", pastes=True)
def the_first_batch_in_two_loops():
    ds, weights = rows(), tf.Variable(tf.zeros([4]))
    for _ in range(2):
        for _ in range(3):
            train(weights, next(iter(ds)))


@triggers("first-batch", says="and its generator, in each of 6 turns", pastes=True)
def the_first_of_a_generator_in_each_step():
    def numbers():
        for i in range(20):
            yield row(i)

    ds, weights = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((4,))), tf.Variable([0.0] * 4)
    for _ in range(6):
        train(weights, next(iter(ds))[tf.newaxis])


@triggers("first-batch", says="trains with the same one", pastes=True)
def the_first_pair_in_each_step():
    ds, weights = tf.data.Dataset.zip((rows(), rows())), tf.Variable(tf.zeros([4]))
    for step in range(5):
        pair = next(iter(ds))
        x, y = pair
        train(weights, x + y)
        print(step)


@triggers("first-batch", says="next(ds.as_numpy_iterator()) begins ds in each of 6 turns", pastes=True)
def the_first_arrays_in_each_step():
    ds, weights = rows(), tf.Variable(tf.zeros([4]))
    for _ in range(6):
        train(weights, tf.constant(next(ds.as_numpy_iterator())))


@triggers("first-batch", says="next(batches_of(x)) begins batches_of(x) in each turn of the loop", pastes=True)
def a_generator_that_begins_in_each_step():
    def batches_of(x):
        for i in range(0, len(x), 2):
            yield tf.numpy_function(np.array, [x[i : i + 2]], tf.float32)

    x, weights = np.ones((8, 4), np.float32), tf.Variable(tf.zeros([4]))
    for i in range(6):
        batch = next(batches_of(x))
        train(weights, batch)
        print(i)


@near("first-batch")
def generators_that_begin_with_another_element():
    def drawn(x):
        while True:
            yield tf.numpy_function(np.array, [x[np.random.randint(0, 8, 2)]], tf.float32)

    def part(x, i):
        yield tf.numpy_function(np.array, [x[i : i + 2]], tf.float32)

    def places(x):
        yield tf.constant(x[order[:2]])

    x, weights, order = np.ones((8, 4), np.float32), tf.Variable(tf.zeros([4])), np.arange(8)
    for i in range(6):
        np.random.shuffle(order)
        train(weights, next(drawn(x)) + next(part(x, i)) + next(places(x)))


@near("first-batch")
def one_iterator_for_all_steps():
    weights = tf.Variable(tf.zeros([4]))
    batches = iter(rows())
    for _ in range(8):
        train(weights, next(batches))


@near("first-batch")
def the_same_batch_looked_at_after_each_epoch():
    ds, weights = rows(), tf.Variable(tf.zeros([4]))
    for _ in range(6):
        for batch in ds:
            train(weights, batch)
        print(tf.linalg.matvec(next(iter(ds)), weights).numpy())


@near("first-batch")
def a_sample_beside_the_training():
    ds, weights = rows(), tf.Variable(tf.zeros([4]))
    sample = iter(rows().repeat())
    for _ in range(6):
        shown = next(iter(ds))
        train(weights, next(sample))
        print(tf.linalg.matvec(shown, weights).numpy())


@near("first-batch")
def another_first_batch_in_each_step():
    ds, weights = rows().unbatch().shuffle(40).batch(4), tf.Variable(tf.zeros([4]))
    for _ in range(6):
        train(weights, next(iter(ds)))


@near("first-batch")
def a_few_steps_to_see_that_it_runs():
    ds, weights = rows(), tf.Variable(tf.zeros([4]))
    for _ in range(3):
        train(weights, next(iter(ds)))
