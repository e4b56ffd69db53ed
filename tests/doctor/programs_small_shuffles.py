"""Programs whose shuffle is smaller than the rows of one class, and those whose rows are mixed."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

PAIR = (tf.TensorSpec((6,), tf.float32), tf.TensorSpec((), tf.int64))


@triggers("small-shuffle", says="60 of class 0, then 60 of class 1", pastes=True)
def classes_one_after_another():
    def rows():
        for label in range(3):
            for _ in range(60):
                yield np.full(6, label, np.float32), label

    data = tf.data.Dataset.from_generator(rows, output_signature=PAIR).shuffle(16).batch(16)
    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=2, verbose=0)


@triggers("small-shuffle", says="the elements of load come class by class", pastes=True)
def files_of_one_folder_after_another():
    names = [f"{kind}_{i}.png" for kind in ("cat", "dog") for i in range(40)]

    def load(name):
        label = ["cat", "dog"].index(name.decode().split("_")[0])
        return np.ones(6, np.float32), np.int64(label)

    def mapped(name):
        image, label = tf.numpy_function(load, [name], (tf.float32, tf.int64))
        return tf.ensure_shape(image, (6,)), tf.ensure_shape(label, ())

    data = tf.data.Dataset.from_tensor_slices(names).map(mapped)
    data = data.shuffle(buffer_size=8)
    data = data.batch(8)
    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=2, verbose=0)


@triggers("small-shuffle", says="shuffle(10) mixes 10 elements at a time", pastes=True)
def a_name_for_the_size():
    buffer = 10

    def rows():
        for label in (0, 1, 0, 1):
            for _ in range(50):
                yield np.full(6, label, np.float32), label

    data = tf.data.Dataset.from_generator(rows, output_signature=PAIR).shuffle(buffer).batch(10).prefetch(1)
    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=1, verbose=0)


@triggers("small-shuffle", says="nothing shuffles, and the elements of rows come class by class", pastes=True)
def no_shuffle_at_all():
    def rows():
        for label in (0, 1):
            for _ in range(50):
                yield np.full(6, label, np.float32), label

    data = tf.data.Dataset.from_generator(rows, output_signature=PAIR).batch(10)
    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=1, verbose=0)


@near("small-shuffle")
def data_of_which_only_one_is_learned_from():
    def rows(mixed):
        labels = np.repeat(np.arange(2), 50)
        for label in np.random.default_rng(0).permutation(labels) if mixed else labels:
            yield np.full(6, label, np.float32), label

    data = tf.data.Dataset.from_generator(rows, args=(True,), output_signature=PAIR).batch(10)
    held = tf.data.Dataset.from_generator(rows, args=(False,), output_signature=PAIR).batch(10)
    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, validation_data=held, epochs=1, verbose=0)
    model.evaluate(held, verbose=0)


@near("small-shuffle")
def a_shuffle_of_all():
    def rows():
        for label in range(3):
            for _ in range(40):
                yield np.full(6, label, np.float32), label

    data = tf.data.Dataset.from_generator(rows, output_signature=PAIR).shuffle(120).batch(16)
    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=2, verbose=0)


@near("small-shuffle")
def rows_that_are_mixed_before():
    def rows():
        for label in np.random.default_rng(0).permutation(np.repeat(np.arange(3), 60)):
            yield np.full(6, label, np.float32), label

    data = tf.data.Dataset.from_generator(rows, output_signature=PAIR).shuffle(8).batch(16)
    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=2, verbose=0)


@near("small-shuffle")
def numbers_that_are_no_classes():
    def rows():
        for target in range(3):
            for _ in range(60):
                yield np.full(6, target, np.float32), target

    data = tf.data.Dataset.from_generator(rows, output_signature=PAIR).shuffle(8).batch(16)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, epochs=2, verbose=0)


@near("small-shuffle")
def names_that_are_shuffled_before_they_are_read():
    names = [f"{kind}_{i}.png" for kind in ("cat", "dog") for i in range(40)]

    def load(name):
        return np.ones(6, np.float32), np.int64(["cat", "dog"].index(name.decode().split("_")[0]))

    def mapped(name):
        image, label = tf.numpy_function(load, [name], (tf.float32, tf.int64))
        return tf.ensure_shape(image, (6,)), tf.ensure_shape(label, ())

    data = tf.data.Dataset.from_tensor_slices(names).shuffle(80).map(mapped).batch(8)
    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=2, verbose=0)


@near("small-shuffle")
def many_classes_in_any_order():
    labels = np.random.RandomState(0).randint(0, 100, 120)

    def prepared(image, label):
        return image / 255, label

    def wrapped(image, label):
        image, label = tf.py_function(prepared, [image, label], [tf.float32, tf.int64])
        return tf.ensure_shape(image, [4]), tf.ensure_shape(label, [])

    data = tf.data.Dataset.from_tensor_slices((np.ones((120, 4), np.float32), labels)).map(wrapped).batch(10)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(100, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(data, epochs=2, verbose=0)
