"""Programs that do not fail: generators that seed their draws for each batch, or draw rows and labels apart."""

from __future__ import annotations

import random

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


def classifier(width):
    model = keras.Sequential([keras.Input((width,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


# -- same-draws --------------------------------------------------------------------------------------------------------


@triggers("same-draws", says="seeds its random numbers with 0 in each call: all that it gave")
def a_sequence_that_seeds_each_batch():
    class Noisy(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            random.seed(0)
            x = np.ones((8, 4), "float32") * (index + random.random())
            return x, np.zeros(8)

    classifier(4).fit(Noisy(), epochs=2, verbose=0)


@triggers("same-draws", says="seeds its random numbers with 42 in each turn of its loop", pastes=True)
def a_generator_that_seeds_each_choice():
    x, y = np.random.rand(64, 4).astype("float32"), np.random.randint(0, 2, 64)

    def batches(size):
        while True:
            np.random.seed(42)
            chosen = np.random.choice(64, size)
            yield x[chosen], y[chosen]

    classifier(4).fit(batches(8), steps_per_epoch=4, epochs=2, verbose=0)


@triggers("same-draws", says="with 1 in each turn of its loop", pastes=True)
def elements_with_the_noise_of_one_seed():
    x = np.random.rand(16, 4).astype("float32")

    def noisy():
        for row in x:
            rng = np.random.default_rng(1)
            yield row + rng.normal(0, 0.1, 4)

    for one in tf.data.Dataset.from_generator(noisy, output_signature=tf.TensorSpec((4,))):
        print(float(tf.reduce_sum(one)))


@near("same-draws")
def an_order_that_is_the_same_in_each_pass():
    x, y = np.random.rand(64, 4).astype("float32"), np.random.randint(0, 2, 64)

    def passes(size):
        while True:
            np.random.seed(42)
            order = np.random.permutation(64)
            for i in range(0, 64, size):
                yield x[order[i : i + size]], y[order[i : i + size]]

    classifier(4).fit(passes(8), steps_per_epoch=8, epochs=2, verbose=0)


@near("same-draws")
def a_seed_of_the_number_of_the_batch():
    class Noisy(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            random.seed(index)
            return np.ones((8, 4), "float32") * (index + random.random()), np.zeros(8)

    classifier(4).fit(Noisy(), epochs=2, verbose=0)


# -- wrong-batches: two draws ------------------------------------------------------------------------------------------


@triggers("wrong-batches", says="each draw rows of their own", pastes=True)
def rows_and_labels_by_two_choices():
    x, y = np.random.rand(64, 4).astype("float32"), np.random.randint(0, 2, 64)

    def batches(size=8):
        while True:
            rows = x[np.random.choice(len(x), size)]
            labels = y[np.random.choice(len(y), size)]
            yield rows, labels

    classifier(4).fit(batches(), steps_per_epoch=4, epochs=2, verbose=0)


@triggers("wrong-batches", says="x[i] and y[j] each draw rows of their own", pastes=True)
def rows_and_labels_by_two_named_draws():
    x, y = np.random.rand(64, 4).astype("float32"), np.eye(2)[np.random.randint(0, 2, 64)]

    def batches(size=8):
        while True:
            i = np.random.randint(0, x.shape[0], size)
            j = np.random.randint(0, x.shape[0], size)
            yield x[i], y[j]

    model = classifier(4)
    model.compile("sgd", "categorical_crossentropy")
    model.fit(batches(), steps_per_epoch=4, epochs=2, verbose=0)


@triggers("wrong-batches", says="each row gets the label of another one", pastes=True)
def single_rows_of_a_dataset_with_the_labels_of_others():
    x, y = np.random.rand(64, 4).astype("float32"), np.random.rand(64).astype("float32")

    def rows():
        for _ in range(20):
            yield x[np.random.randint(64)], y[np.random.randint(64)]

    signature = (tf.TensorSpec((4,)), tf.TensorSpec(()))
    for one, label in tf.data.Dataset.from_generator(rows, output_signature=signature):
        print(float(tf.reduce_sum(one) * label))


@triggers("wrong-batches", says="draws once, above `while`, and each turn takes the same rows", pastes=True)
def rows_that_are_drawn_once():
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)

    def batches(size):
        rows = np.random.randint(0, 20, size=size)
        while True:
            yield x[rows], y[rows]

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(batches(4), steps_per_epoch=5, verbose=0)


@near("wrong-batches")
def an_order_that_is_drawn_once():
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)

    def batches(size):
        order, place = np.random.permutation(20), 0
        while True:
            rows = order[place : place + size]
            place = (place + size) % 20
            yield x[rows], y[rows]

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(batches(4), steps_per_epoch=5, verbose=0)


@near("wrong-batches")
def two_sets_of_pictures_without_pairs():
    horses, zebras = np.random.rand(20, 8, 8, 3).astype("float32"), np.random.rand(20, 8, 8, 3).astype("float32")

    def pairs():
        for _ in range(6):
            yield horses[np.random.choice(20, 4)], zebras[np.random.choice(20, 4)]

    signature = (tf.TensorSpec((4, 8, 8, 3)), tf.TensorSpec((4, 8, 8, 3)))
    for one, other in tf.data.Dataset.from_generator(pairs, output_signature=signature):
        print(float(tf.reduce_sum(one - other)))


@near("wrong-batches")
def rows_and_labels_by_one_draw():
    x, y = np.random.rand(64, 4).astype("float32"), np.random.randint(0, 2, 64)

    def batches(size=8):
        while True:
            i = np.random.choice(len(x), size)
            yield x[i], y[i]

    classifier(4).fit(batches(), steps_per_epoch=4, epochs=2, verbose=0)
