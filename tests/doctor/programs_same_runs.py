"""Programs that draw once for all elements, or number texts by their hashes; and near-misses."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

ROWS = np.random.default_rng(0).random((60, 4)).astype("float32")
WORDS = ["the cat sat", "a dog ran", "the bird flew"]
PAIR = (tf.TensorSpec((4,)), tf.TensorSpec((4,)))


# -- same-draws: above a generator ------------------------------------------------------------------------------------


@triggers("same-draws", says="all 12 elements of pairs are the same: what it yields was drawn once", pastes=True)
def a_pair_that_is_drawn_above():
    def sample():
        i, j = np.random.randint(0, len(ROWS), 2)
        return ROWS[i], ROWS[j]

    a, b = sample()

    def pairs():
        for _ in range(12):
            yield a, b

    list(tf.data.Dataset.from_generator(pairs, output_signature=PAIR))


@triggers("same-draws", says="what it yields was drawn once, in line", pastes=True)
def a_method_of_an_object():
    class Buffer:
        def draw(self):
            return np.random.normal(size=4).astype(np.float32)

    row = Buffer().draw()

    def rows():
        while True:
            yield row

    list(tf.data.Dataset.from_generator(rows, output_signature=PAIR[0]).take(8))


@triggers("same-draws", says="all 9 elements of noise", pastes=True)
def numbers_of_numpy():
    rng = np.random.default_rng()
    x = rng.normal(size=4)

    def noise():
        for _ in range(9):
            yield x

    list(tf.data.Dataset.from_generator(noise, output_signature=PAIR[0]))


@near("same-draws")
def a_pair_for_each_element():
    def pairs():
        for _ in range(12):
            i, j = np.random.randint(0, len(ROWS), 2)
            yield ROWS[i], ROWS[j]

    list(tf.data.Dataset.from_generator(pairs, output_signature=PAIR))


@near("same-draws")
def ones_on_purpose():
    x = np.ones(4, np.float32)

    def ones():
        for _ in range(12):
            yield x

    list(tf.data.Dataset.from_generator(ones, output_signature=PAIR[0]))


@near("same-draws")
def an_array_that_each_round_changes():
    x = np.random.default_rng(0).normal(size=4).astype(np.float32)

    def walk():
        for _ in range(12):
            x[:] += 1
            yield x

    list(tf.data.Dataset.from_generator(walk, output_signature=PAIR[0]))


# -- hashed-text ------------------------------------------------------------------------------------------------------


@triggers("hashed-text", says="encode makes numbers of hash(word)", pastes=True)
def words_by_their_hashes():
    def encode(text):
        return np.array([hash(word) % 5000 for word in text.split()], np.int64)

    list(tf.data.Dataset.from_tensor_slices(WORDS).map(lambda t: tf.numpy_function(encode, [t], tf.int64)))


@triggers("hashed-text", says="Python hashes texts and bytes otherwise in each run", pastes=True)
def a_text_in_a_helper():
    def bucket(name):
        return abs(hash(name)) % 100

    def encode(text):
        return np.int64(bucket(text.numpy().decode()))

    list(tf.data.Dataset.from_tensor_slices(WORDS).map(lambda t: tf.py_function(encode, [t], tf.int64)))


@triggers("hashed-text", says="makes numbers of hash(line.strip())", pastes=True)
def lines_of_a_generator():
    def lines():
        for line in WORDS:
            yield hash(line.strip()) % 1000

    list(tf.data.Dataset.from_generator(lines, output_signature=tf.TensorSpec((), tf.int64)))


@near("hashed-text")
def numbers_that_are_hashed():
    def buckets(x):
        return np.array([hash(int(one)) % 7 for one in x], np.int64)

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda r: tf.numpy_function(buckets, [r], tf.int64)))


@near("hashed-text")
def hashes_that_are_keys():
    seen = {}

    def first(text):
        seen.setdefault(hash(text), text)
        return np.int64(len(text))

    list(tf.data.Dataset.from_tensor_slices(WORDS).map(lambda t: tf.numpy_function(first, [t], tf.int64)))


@near("hashed-text")
def a_sum_that_is_the_same_in_each_run():
    import zlib

    def encode(text):
        return np.array([zlib.crc32(word) % 5000 for word in text.split()], np.int64)

    list(tf.data.Dataset.from_tensor_slices(WORDS).map(lambda t: tf.numpy_function(encode, [t], tf.int64)))
