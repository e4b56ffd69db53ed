"""Programs that number texts by their places in a set, whose order is another one in each run, or in a list of them."""

from __future__ import annotations

import json
import os

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

PATHS = ["cat_1.png", "dog_2.png", "bird_3.png"]


def numbers(label):
    data = tf.data.Dataset.from_tensor_slices(PATHS)
    return [int(one) for one in data.map(lambda p: tf.numpy_function(label, [p], tf.int64))]


@triggers("set-order", says="takes places in a set of texts for numbers", pastes=True)
def a_place_in_a_list_of_a_set():
    classes = list({"cat", "dog", "bird"})

    def label(path):
        return np.int64(classes.index(path.decode().split("_")[0]))

    assert sorted(numbers(label)) == [0, 1, 2]


@triggers("set-order", says="enumerate(sorted({f.split", pastes=True)
def a_table_of_a_set():
    table = {name: i for i, name in enumerate({f.split("_")[0] for f in PATHS})}

    def label(path):
        return np.int64(table[path.decode().split("_")[0]])

    assert sorted(numbers(label)) == [0, 1, 2]


@triggers("set-order", says="classes = sorted(classes)", pastes=True)
def a_set_that_a_loop_fills():
    classes = set()
    for name in PATHS:
        classes.add(name.split("_")[0])
    classes = list(classes)
    table = {}
    for i, name in enumerate(classes):
        table[name] = i  # noqa: PERF403

    def label(path):
        return np.int64(table[path.decode().split("_")[0]])

    assert sorted(numbers(label)) == [0, 1, 2]


@triggers("set-order", says="enumerate(sorted(vocabulary))", pastes=True)
def words_of_a_vocabulary():
    vocabulary = set()
    for text in ("a cat", "the dog"):
        vocabulary.update(text.split())
    index = {word: i + 1 for i, word in enumerate(vocabulary)}

    def encode(text):
        return np.int64(index[text.decode()])

    data = tf.data.Dataset.from_tensor_slices(["cat", "dog"])
    assert len({int(one) for one in data.map(lambda p: tf.numpy_function(encode, [p], tf.int64))}) == 2


@near("set-order")
def a_set_of_numbers():
    known = list({3, 1, 2})

    def label(path):
        return np.int64(known.index(int(path.decode().split("_")[1][0])))

    assert sorted(numbers(label)) == [0, 1, 2]


@near("set-order")
def a_list_that_is_sorted_later():
    names = list({"cat", "dog", "bird"})
    names.sort()

    def label(path):
        return np.int64(names.index(path.decode().split("_")[0]))

    assert numbers(label) == [1, 2, 0]


@near("set-order")
def a_set_of_members():
    animals = {"cat", "dog"}

    def label(path):
        return np.int64(path.decode().split("_")[0] in animals)

    assert numbers(label) == [1, 1, 0]


@near("set-order")
def numbers_of_classes_that_are_kept(folder="/tmp"):
    kept = list({"cat", "dog", "bird"})
    with open(os.path.join(folder, f"classes_{os.getpid()}.json"), "w") as file:
        json.dump(kept, file)
    os.remove(file.name)

    def label(path):
        return np.int64(kept.index(path.decode().split("_")[0]))

    assert sorted(numbers(label)) == [0, 1, 2]
