"""Programs whose loops take elements out of the list they go over, and those that go over another one."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

NUMBER = tf.TensorSpec((), tf.int32)


def read(rows):
    for _ in tf.data.Dataset.from_generator(rows, output_signature=NUMBER):
        pass


@triggers("missed-element", says="the loop goes over rows by places", pastes=True)
def empty_rows_removed():
    rows = [1, 0, 0, 3, 0, 0, 5]

    def given():
        for row in rows:
            if row == 0:
                rows.remove(row)
                continue
            yield row

    read(given)


@triggers("missed-element", says="is shorter in the next pass", pastes=True)
def a_place_deleted():
    words = ["a", "", "", "b"]

    def size(_):
        for at, word in enumerate(words):  # a loop over enumerate reads places, too
            if not word:
                words[at] = "none"
        for word in words:
            if word == "none":
                del words[words.index(word)]
        return np.int32(len(words))

    for _ in tf.data.Dataset.range(2).map(lambda i: tf.numpy_function(size, [i], tf.int32)):
        pass


@triggers("missed-element", says="list", pastes=True)
def popped_in_the_loop():
    class Store:
        def __init__(self):
            self.left = [1, 2, 3, 4, 5, 6]

        def rows(self):
            for row in self.left:
                self.left.pop(0)
                yield row

    read(Store().rows)


@near("missed-element")
def a_copy_is_gone_over():
    rows = [1, 0, 0, 3]

    def given():
        for row in list(rows):
            if row == 0:
                rows.remove(row)
                continue
            yield row

    read(given)


@near("missed-element")
def the_loop_ends_behind_it():
    rows = [1, 2, 0, 3]

    def given():
        for row in rows:
            if row == 0:
                rows.remove(row)
                break
        yield from rows

    read(given)


@near("missed-element")
def another_list_loses_it():
    rows, left = [1, 2, 3], [1, 2, 3]

    def given():
        for row in rows:
            left.remove(row)
            yield row
        left.extend(rows)

    read(given)
