"""Programs whose generators split their data in each pass, and programs that only look so."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

X = np.arange(40, dtype=np.float32).reshape(20, 2)
SPEC = tf.TensorSpec((2,), tf.float32)
HELD = 5


def train_test_split(x, test_size, random_state=None):  # as that of sklearn
    order = np.random.RandomState(random_state).permutation(len(x))
    n = int(len(x) * test_size)
    return x[order[n:]], x[order[:n]]


def read(rows):
    return tf.data.Dataset.from_generator(rows, output_signature=SPEC)


def passes(first, second):
    for _ in range(2):
        list(first.batch(4))
        list(second.batch(4))


@triggers("shuffled-split", says="train_rows and held_rows each split the data in each pass", pastes=True)
def two_generators_that_split():
    def train_rows():
        train, _ = train_test_split(X, test_size=0.25)
        yield from train

    def held_rows():
        _, held = train_test_split(X, test_size=0.25)
        yield from held

    passes(read(train_rows), read(held_rows))


@triggers("shuffled-split", says="rows splits the data in each pass", pastes=True)
def one_generator_for_both_parts():
    def rows(training):
        train, held = train_test_split(X, 0.25)
        yield from train if training else held

    first = tf.data.Dataset.from_generator(rows, args=[True], output_signature=SPEC)
    second = tf.data.Dataset.from_generator(rows, args=[False], output_signature=SPEC)
    passes(first, second)


@triggers("shuffled-split", says="first_rows takes the rows before HELD of np.random.permutation(20)", pastes=True)
def two_permutations():
    def first_rows():
        order = np.random.permutation(20)
        for i in order[:HELD]:
            yield X[i]

    def last_rows():
        order = np.random.permutation(20)
        for i in order[HELD:]:
            yield X[i]

    passes(read(first_rows), read(last_rows))


@near("shuffled-split")
def generators_that_split_by_a_seed():
    def train_rows():
        train, _ = train_test_split(X, test_size=0.25, random_state=3)
        yield from train

    def held_rows():
        _, held = train_test_split(X, test_size=0.25, random_state=3)
        yield from held

    passes(read(train_rows), read(held_rows))


@near("shuffled-split")
def a_split_above_the_generators():
    train, held = train_test_split(X, test_size=0.25)

    def train_rows():
        for i in np.random.permutation(len(train)):
            yield train[i]

    def held_rows():
        yield from held

    passes(read(train_rows), read(held_rows))


@near("shuffled-split")
def a_sample_of_each_pass():
    def some_rows():
        order = np.random.permutation(20)
        for i in order[:HELD]:
            yield X[i]

    def all_rows():
        yield from X

    passes(read(some_rows), read(all_rows))
