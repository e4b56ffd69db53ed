"""Programs that do not fail, and shuffle apart what belongs together, or batches for rows: as `programs_threads`."""

from __future__ import annotations

import random

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- shuffled-apart: arrays and lists ---------------------------------------------------------------------------------


@triggers("shuffled-apart", severity="error", says="x = x[order]", pastes=True)
def two_arrays_that_numpy_shuffles():
    x = np.arange(16, dtype="float32").reshape(16, 1)
    y = (x[:, 0] > 7).astype("float32")
    np.random.shuffle(x)
    np.random.shuffle(y)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)


@triggers("shuffled-apart", says="x[:] = x[order]", pastes=True)
def a_generator_that_shuffles_arrays_of_the_module():
    x, y = np.arange(12, dtype="float32"), np.arange(12) % 2

    def rows():
        np.random.shuffle(x)
        np.random.shuffle(y)
        yield from zip(x, y)

    data = tf.data.Dataset.from_generator(
        rows, output_signature=(tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int64))
    )
    for _ in range(2):
        assert len(list(data.batch(4))) == 3


@triggers("shuffled-apart", says="files = [files[i] for i in order]", pastes=True)
def two_lists_that_random_shuffles():
    files = [f"{i}.png" for i in range(8)]
    labels = [i % 2 for i in range(8)]
    random.shuffle(files)
    random.shuffle(labels)
    dataset = tf.data.Dataset.from_tensor_slices((files, labels))
    list(dataset.map(lambda file, label: tf.numpy_function(lambda one, _: one, [file, label], tf.string)))


@triggers("shuffled-apart", says="order = rng.permutation(len(images))", pastes=True)
def images_alone():
    images = np.ones((16, 2), "float32")
    labels = np.repeat([0, 1], 8)
    rng = np.random.default_rng(3)
    rng.shuffle(images)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    model.fit(x=images, y=labels, verbose=0)


@triggers("shuffled-apart", says="an order of its own", pastes=True)
def two_permutations():
    x = np.ones((16, 2), "float32")
    y = np.repeat([0.0, 1.0], 8)
    x = x[np.random.permutation(len(x))]
    y = y[np.random.permutation(len(y))]
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x[:12], y[:12], verbose=0)


@near("shuffled-apart")
def one_seed_before_each():
    x = np.arange(16, dtype="float32").reshape(16, 1)
    y = (x[:, 0] > 7).astype("float32")
    np.random.seed(1)
    np.random.shuffle(x)
    np.random.seed(1)
    np.random.shuffle(y)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)


@near("shuffled-apart")
def rows_that_are_split_behind_the_shuffle():
    data = np.random.rand(16, 3)
    np.random.shuffle(data)
    x, y = data[:, :2], data[:, 2]
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)


@near("shuffled-apart")
def labels_that_are_all_alike():
    fake = np.random.rand(16, 2)
    np.random.shuffle(fake)
    real = np.ones(16)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(fake, real, verbose=0)


@near("shuffled-apart")
def an_order_for_both():
    x, y = np.ones((16, 2)), np.ones(16)
    index = np.arange(16)
    np.random.shuffle(index)
    x, y = x[index], y[index]
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)


@near("shuffled-apart")
def pictures_of_two_kinds():
    horses = [f"h{i}.png" for i in range(8)]
    zebras = [f"z{i}.png" for i in range(8)]
    random.shuffle(horses)
    random.shuffle(zebras)
    dataset = tf.data.Dataset.from_tensor_slices((horses, zebras))
    list(dataset.map(lambda one, other: tf.numpy_function(lambda a, _: a, [one, other], tf.string)))


# -- batched-shuffle --------------------------------------------------------------------------------------------------


@triggers("batched-shuffle", severity="note", says="has the same 8 rows", pastes=True)
def batches_that_fit_gets_in_another_order():
    x, y = np.ones((32, 2), "float32"), np.repeat([0.0, 1.0], 16)
    ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).shuffle(1000)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(ds, epochs=2, verbose=0)


@triggers("batched-shuffle", says="ds = ds.shuffle(16)", pastes=True)
def one_statement_a_step():
    ds = tf.data.Dataset.from_tensor_slices(tf.range(16))
    ds = ds.batch(4)
    ds = ds.shuffle(16).prefetch(1)
    for _ in range(3):
        for batch in ds:
            tf.numpy_function(lambda rows: rows, [batch], tf.int32)


@triggers("batched-shuffle", says=".map(lambda rows: rows + 1))", pastes=True)
def a_map_of_batches_between():
    ds = (
        tf.data.Dataset.from_tensor_slices(tf.range(16))
        .map(lambda row: row * 2)
        .batch(4)
        .map(lambda rows: rows + 1)
        .shuffle(16))  # fmt: skip
    for _ in range(2):
        for batch in ds:
            tf.numpy_function(lambda rows: rows, [batch], tf.int32)


@near("batched-shuffle")
def sequences_that_are_shuffled():
    ds = tf.data.Dataset.from_tensor_slices(tf.range(64)).batch(5, drop_remainder=True)
    ds = ds.map(lambda row: (row[:-1], row[1:])).shuffle(100).batch(4)
    for _ in range(2):
        for batch, _ in ds:
            tf.numpy_function(lambda rows: rows, [batch], tf.int32)


@near("batched-shuffle")
def rows_and_batches():
    ds = tf.data.Dataset.from_tensor_slices(tf.range(16)).shuffle(16).batch(4).shuffle(4)
    for _ in range(2):
        for batch in ds:
            tf.numpy_function(lambda rows: rows, [batch], tf.int32)


@near("batched-shuffle")
def one_pass():
    ds = tf.data.Dataset.from_tensor_slices(tf.range(16)).batch(4).shuffle(4)
    for batch in ds:
        tf.numpy_function(lambda rows: rows, [batch], tf.int32)
