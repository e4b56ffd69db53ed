"""Programs that shuffle rows of an array by Python's shuffle, and programs that only look so."""

from __future__ import annotations

import random

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

SPEC = tf.TensorSpec((2,), tf.float32)


def read(rows, spec=SPEC):
    return list(tf.data.Dataset.from_generator(rows, output_signature=spec))


@triggers("doubled-rows", says="random.shuffle(data) swaps rows of an array", pastes=True)
def rows_of_a_reshaped_array():
    data = np.arange(24, dtype=np.float32).reshape(12, 2)

    def rows():
        random.shuffle(data)
        yield from data

    read(rows)


@triggers("doubled-rows", says="Some rows of pairs are there twice", pastes=True)
def rows_of_drawn_numbers():
    pairs = np.random.rand(12, 2).astype(np.float32)
    random.shuffle(pairs)
    read(lambda: iter(pairs))


@triggers("doubled-rows", says="np.random.shuffle(pairs)", pastes=True)
def rows_of_written_pairs():
    pairs = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    random.shuffle(pairs)
    read(lambda: iter(pairs))


@near("doubled-rows")
def numbers_of_one_row():
    order = np.arange(12)

    def rows():
        random.shuffle(order)
        for i in order:
            yield np.float32([i, i])

    read(rows)


@near("doubled-rows")
def rows_of_a_list():
    data = [[float(i), 1.0] for i in range(12)]
    random.shuffle(data)
    read(lambda: iter(data))


@near("doubled-rows")
def rows_shuffled_by_numpy():
    data = np.arange(24, dtype=np.float32).reshape(12, 2)
    np.random.shuffle(data)
    read(lambda: iter(data))
