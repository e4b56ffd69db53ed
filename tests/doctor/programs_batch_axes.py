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
