"""Programs whose bodies turn images with NumPy: the axes of each image, or those that count images and channels."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

IMAGES = np.random.default_rng(0).random((12, 8, 8, 3)).astype("float32")


@triggers("batch-axis", says="np.fliplr(batch) turns the second, the rows of each image", pastes=True)
def rows_in_the_place_of_columns():
    def mirrored(batch):
        return np.fliplr(batch)

    data = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    data = data.map(lambda x: tf.numpy_function(mirrored, [x], tf.float32))
    turned = np.concatenate([one.numpy() for one in data])
    assert not np.array_equal(turned, IMAGES)


@triggers("batch-axis", says="np.rot90(batch, k) turns the first two: it mixes", pastes=True)
def quarter_turns_of_a_batch():
    def turned(batch):
        k = np.random.randint(4)
        return np.rot90(batch, k)

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).shuffle(12).batch(8)
    list(batches.map(lambda x: tf.numpy_function(turned, [x], tf.float32)))


@triggers("batch-axis", says="the order of the images: each gets the label of another", pastes=True)
def images_in_another_order_than_their_labels():
    def augment(images):
        images = images.numpy()
        if np.random.rand() < 0.5:
            images = np.flipud(images)
        return images

    def mapped(x, y):
        return tf.py_function(augment, [x], tf.float32), y

    list(tf.data.Dataset.from_tensor_slices((IMAGES, np.arange(12))).batch(6).map(mapped))


@triggers("batch-axis", says="all axes, also the channels: red becomes blue", pastes=True)
def an_image_whose_channels_turn_too():
    data = tf.data.Dataset.from_tensor_slices(IMAGES)
    list(data.map(lambda x: tf.numpy_function(lambda image: np.flip(image), [x], tf.float32)))


@near("batch-axis")
def the_axes_of_the_images_in_a_batch():
    def turned(batch):
        return np.rot90(np.flip(batch, axis=2), 1, axes=(1, 2))

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(turned, [x], tf.float32)))


@near("batch-axis")
def images_one_by_one():
    def turned(image):
        return np.rot90(np.fliplr(np.flipud(image)))

    data = tf.data.Dataset.from_tensor_slices(IMAGES)
    list(data.map(lambda x: tf.numpy_function(turned, [x], tf.float32)).batch(4))


@near("batch-axis")
def volumes_without_a_batch():
    volumes = np.random.default_rng(0).random((3, 4, 8, 8, 3)).astype("float32")

    def turned(volume):
        return np.flipud(volume)

    list(tf.data.Dataset.from_tensor_slices(volumes).map(lambda x: tf.numpy_function(turned, [x], tf.float32)))


@near("batch-axis")
def rows_of_numbers():
    def backwards(row):
        return np.flip(row)

    data = tf.data.Dataset.from_tensor_slices(IMAGES[..., 0, 0])
    list(data.map(lambda x: tf.numpy_function(backwards, [x], tf.float32)))


@near("batch-axis")
def each_image_of_a_batch_in_a_loop():
    def turned(batch):
        return np.stack([np.fliplr(image) for image in batch])

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(turned, [x], tf.float32)))


ROWS = np.random.default_rng(0).random((12, 4)).astype("float32")
KINDS = np.eye(3, dtype="float32")[np.arange(12) % 3]


def classifier():
    return tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3, activation="softmax")])


@triggers("batch-axis", says="give a row's number for each of the 3 columns, and accuracy needs the", pastes=True)
def the_best_row_of_each_class():
    def right(y, p):
        return np.float32(np.mean(np.argmax(y, 0) == np.argmax(p, axis=0)))

    def accuracy(y, p):
        return tf.ensure_shape(tf.numpy_function(right, [y, p], tf.float32), [])

    model = classifier()
    model.compile("sgd", "categorical_crossentropy", metrics=[accuracy])
    model.fit(ROWS, KINDS, batch_size=6, verbose=0)


@triggers("batch-axis", says="tf.argmax(p) give a row's number", pastes=True)
def tensorflow_looks_along_rows_by_itself():
    def right(y, p):
        return tf.reduce_mean(tf.cast(tf.argmax(y) == tf.argmax(p), tf.float32))

    def accuracy(y, p):
        return tf.ensure_shape(tf.py_function(right, [y, p], tf.float32), [])

    model = classifier()
    model.compile("sgd", "categorical_crossentropy", metrics=[accuracy])
    model.fit(ROWS, KINDS, batch_size=6, verbose=0)


@triggers("batch-axis", says="y.argmax() and p.argmax() give one number for all of them")
def the_best_of_a_batch():
    def right(y, p):
        return np.float32(y.argmax() == p.argmax())

    def accuracy(y, p):
        return tf.ensure_shape(tf.numpy_function(right, [y, p], tf.float32), [])

    model = classifier()
    model.compile("sgd", "categorical_crossentropy", metrics=[accuracy])
    model.fit(ROWS, KINDS, batch_size=6, verbose=0)


@near("batch-axis")
def the_best_class_of_each_row():
    def right(y, p):
        return np.float32(np.mean(np.argmax(y, 1) == p.argmax(axis=-1)))

    def accuracy(y, p):
        return tf.ensure_shape(tf.numpy_function(right, [y, p], tf.float32), [])

    model = classifier()
    model.compile("sgd", "categorical_crossentropy", metrics=[accuracy])
    model.fit(ROWS, KINDS, batch_size=6, verbose=0)


@near("batch-axis")
def the_best_of_one_row():
    def best(x):
        return np.argmax(x)

    data = tf.data.Dataset.from_tensor_slices(np.random.default_rng(0).random((6, 3)))
    list(data.map(lambda x: tf.numpy_function(best, [x], tf.int64)))
