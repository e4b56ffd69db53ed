"""Programs that do not fail, and whose calls number what is new by the size of what they share."""

from __future__ import annotations

import threading

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

LINES = ("a b c", "c d", "e a", "f g h")


def encoded(encode, calls=4):
    """What a body makes of some lines, in parallel calls."""
    data = tf.data.Dataset.from_tensor_slices(list(LINES))
    return list(data.map(lambda line: tf.numpy_function(encode, [line], tf.int64), num_parallel_calls=calls))


@triggers("shared-state", says="numbers what is new by the size of vocabulary, which", pastes=True)
def a_vocabulary_that_grows_in_a_map():
    vocabulary = {}

    def encode(line):
        numbers = []
        for word in line.decode().split():
            if word not in vocabulary:
                vocabulary[word] = len(vocabulary) + 1
            numbers.append(vocabulary[word])
        return np.int64(numbers)

    data = tf.data.Dataset.from_tensor_slices(list(LINES))
    list(data.map(lambda line: tf.numpy_function(encode, [line], tf.int64), num_parallel_calls=4))


@triggers("shared-state", says="by the size of numbers, which its calls share")
def a_default_of_the_size():
    numbers = {"": 0}
    encoded(lambda line: np.int64([numbers.setdefault(word, len(numbers)) for word in line.decode().split()]))


@triggers("shared-state", says="by the size of self.numbers, which its calls share")
def a_vocabulary_of_an_object():
    class Vocabulary:
        def __init__(self):
            self.numbers = {}

        def number(self, word):
            if word not in self.numbers:
                self.numbers[word] = len(self.numbers)
            return self.numbers[word]

        def encode(self, line):
            return np.int64([self.number(word) for word in line.decode().split()])

    encoded(Vocabulary().encode)


@triggers("shared-state", says="changes 'counts[word]', which its calls share")
def counts_that_are_added_to():
    counts = {}

    def count(line):
        for word in line.decode().split():
            counts[word] = counts.get(word, 0) + 1
        return np.int64(len(line))

    encoded(count)


@triggers("shared-state", says="numbers, which its calls share, as the default of encode is made once", pastes=True)
def a_vocabulary_that_is_a_default():
    def encode(line, numbers={}):  # noqa: B006
        return np.int64([numbers.setdefault(word, len(numbers)) for word in line.decode().split()])

    data = tf.data.Dataset.from_tensor_slices(list(LINES))
    list(data.map(lambda line: tf.numpy_function(encode, [line], tf.int64), num_parallel_calls=4))


@triggers("shared-state", says="known, which its calls share, as the default of number is made once")
def a_default_of_what_a_body_calls():
    def number(word, known=dict()):  # noqa: B006, C408
        if word not in known:
            known[word] = len(known)
        return known[word]

    def encode(line):
        return np.int64([number(word) for word in line.decode().split()])

    encoded(encode)


@triggers("shared-state", says="changes 'counts[word]', which its calls share")
def counts_in_a_default():
    def count(line, counts={}):  # noqa: B006
        for word in line.decode().split():
            counts[word] = counts.get(word, 0) + 1
        return np.int64(len(line))

    encoded(count)


@near("shared-state")
def a_default_that_each_call_replaces():
    def number(word, known={}):  # noqa: B006
        return known.setdefault(word, len(known))

    def encode(line):
        own = {}
        return np.int64([number(word, own) for word in line.decode().split()])

    encoded(encode)


@near("shared-state")
def a_default_that_is_copied():
    def encode(line, known={"": 0}):  # noqa: B006
        known = dict(known)
        return np.int64([known.setdefault(word, len(known)) for word in line.decode().split()])

    encoded(encode)


@near("shared-state")
def a_cache_by_key():
    lengths = {}

    def length(line):
        if line not in lengths:
            lengths[line] = len(line)
        return np.int64(lengths[line])

    encoded(length)


@near("shared-state")
def a_vocabulary_of_one_call_at_a_time():
    vocabulary = {}

    def encode(line):
        return np.int64([vocabulary.setdefault(word, len(vocabulary)) for word in line.decode().split()])

    encoded(encode, None)


@near("shared-state")
def a_vocabulary_behind_a_lock():
    vocabulary, lock = {}, threading.Lock()

    def number(word):
        with lock:
            return vocabulary.setdefault(word, len(vocabulary))

    def encode(line):
        return np.int64([number(word) for word in line.decode().split()])

    encoded(encode)


@near("shared-state")
def numbers_within_one_call():
    def encode(line):
        own = {}
        for word in line.decode().split():
            if word not in own:
                own[word] = len(own)
        return np.int64([own[word] for word in line.decode().split()])

    encoded(encode)
