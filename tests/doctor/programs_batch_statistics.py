"""Programs that normalize images: by numbers of a whole batch, or of each image."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

IMAGES = np.random.default_rng(0).integers(0, 255, (12, 8, 8, 3)).astype("uint8")
LABELS = np.arange(12) % 2


@triggers("batch-statistics", says="x.mean() and x.std() are the mean and spread of all 6 images", pastes=True)
def standardized_by_a_batch():
    def normalize(x):
        return ((x - x.mean()) / x.std()).astype(np.float32)

    data = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(6)
    data = data.map(lambda x, y: (tf.numpy_function(normalize, [x], tf.float32), y))
    assert next(iter(data))[0].shape == (6, 8, 8, 3)


@triggers("batch-statistics", says="are the smallest value and largest value of all 4 images of a batch", pastes=True)
def stretched_by_a_batch():
    def stretch(images):
        images = images.astype(np.float32)
        low = np.min(images)
        high = np.max(images)
        return (images - low) / (high - low)

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).shuffle(12).batch(4)
    list(batches.map(lambda x: tf.numpy_function(stretch, [x], tf.float32)))


@triggers("batch-statistics", says="np.max(x) is the largest value of all 3 images", pastes=True)
def divided_by_the_largest_of_a_batch():
    def scale(x):
        x = x.numpy().astype("float32")
        x = x / np.max(x)
        return x

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(3)
    list(batches.map(lambda x: tf.py_function(scale, [x], tf.float32)))


@near("batch-statistics")
def standardized_one_by_one():
    def normalize(x):
        return ((x - x.mean()) / x.std()).astype(np.float32)

    data = tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(normalize, [x], tf.float32))
    list(data.batch(4))


@near("batch-statistics")
def standardized_each_in_a_batch():
    def normalize(x):
        x = x.astype(np.float32)
        return (x - x.mean(axis=(1, 2, 3), keepdims=True)) / x.std(axis=(1, 2, 3), keepdims=True)

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(normalize, [x], tf.float32)))


@near("batch-statistics")
def looked_at_and_not_used():
    seen = []

    def note(x):
        seen.append(x.mean())
        return (x / 255).astype(np.float32)

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(note, [x], tf.float32)))
    assert len(seen) == 3


@near("batch-statistics")
def numbers_of_all_data():
    mean, std = IMAGES.mean(), IMAGES.std()

    def normalize(x):
        return ((x - mean) / std).astype(np.float32)

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(normalize, [x], tf.float32)))


@near("batch-statistics")
def a_series_in_windows():
    def normalize(x):
        return (x - x.mean()) / x.std()

    windows = tf.data.Dataset.from_tensor_slices(np.random.default_rng(0).random(40).astype("float32")).batch(8)
    list(windows.map(lambda x: tf.numpy_function(normalize, [x], tf.float32)))


@near("batch-statistics")
def a_loss_of_a_batch():
    def spread(x):
        return np.float32(x.max() - x.min())

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(spread, [x], tf.float32)))
