"""Programs whose labels, logits or images have another range than what comes behind takes them for."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
Y = (X[:, 0] > 0).astype("float32")
NAMES = [f"c{i % 4 + 1}_{i}.png" for i in range(16)]


# -- logit-accuracy ---------------------------------------------------------------------------------------------------


@triggers("logit-accuracy", says='"accuracy" takes what is above 0.5 for class 1', pastes=True)
def accuracy_by_its_name():
    model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(X, Y, verbose=0)


@triggers("logit-accuracy", says="rows between 0 and 0.5 count for class 0", pastes=True)
def accuracy_as_an_object():
    inputs = keras.Input((4,))
    outputs = keras.layers.Dense(1)(inputs)
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer="adam",
        loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[tf.keras.metrics.BinaryAccuracy()],
    )
    model.fit(X, Y, verbose=0)


@triggers("logit-accuracy", says="of which 0 is the bound", pastes=True)
def accuracy_behind_added_layers():
    model = keras.Sequential()
    model.add(keras.layers.Dense(4))
    model.add(keras.layers.Dense(1, activation=None))
    model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=True), metrics=["binary_accuracy"])
    model.fit(X, Y, verbose=0)


@near("logit-accuracy")
def probabilities():
    model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", keras.losses.BinaryCrossentropy(), metrics=["accuracy"])
    model.fit(X, Y, verbose=0)


@near("logit-accuracy")
def a_bound_of_zero():
    model = keras.Sequential([keras.layers.Dense(1)])
    bounded = keras.metrics.BinaryAccuracy(threshold=0.0)
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True), metrics=[bounded])
    model.fit(X, Y, verbose=0)


@near("logit-accuracy")
def logits_of_two_columns():
    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(X, Y, verbose=0)


# -- label-range ------------------------------------------------------------------------------------------------------


@triggers("label-range", says="gave labels from 1 to 4: of 16 recorded calls 4 gave one beyond", pastes=True)
def classes_that_begin_with_one():
    def load(name):
        return np.ones(4, np.float32), np.int64(name.decode()[1])

    def mapped(name):
        image, label = tf.numpy_function(load, [name], [tf.float32, tf.int64])
        return image, tf.one_hot(label, 4)

    list(tf.data.Dataset.from_tensor_slices(NAMES).map(mapped))


@triggers("label-range", says="stands for no class", pastes=True)
def a_depth_that_a_name_has():
    classes = 3

    def label(name):
        return int(name.numpy()[1:2]) - 1

    def mapped(name):
        known = tf.py_function(label, [name], tf.int32)
        return tf.one_hot(known, depth=classes)

    list(tf.data.Dataset.from_tensor_slices(NAMES).map(mapped))


@triggers("label-range", says="tf.one_hot(mask, 2) has places for 0 to 1", pastes=True)
def a_mask_with_a_class_more():
    def read(i):
        return np.full((4, 4), i % 3, np.uint8)

    def mapped(i):
        mask = tf.numpy_function(read, [i], tf.uint8)
        mask = tf.cast(mask, tf.int32)
        return tf.one_hot(mask, 2)

    list(tf.data.Dataset.range(6).map(mapped))


@near("label-range")
def classes_that_all_have_a_place():
    def label(name):
        return np.int64(int(name.decode()[1]) - 1)

    def mapped(name):
        return tf.one_hot(tf.numpy_function(label, [name], tf.int64), 4)

    list(tf.data.Dataset.from_tensor_slices(NAMES).map(mapped))


@near("label-range")
def a_depth_that_is_computed():
    def label(name):
        return np.int64(name.decode()[1])

    depth = len(set(NAMES)) + 1

    def mapped(name):
        return tf.one_hot(tf.numpy_function(label, [name], tf.int64), depth)

    list(tf.data.Dataset.from_tensor_slices(NAMES).map(mapped))


@near("label-range")
def labels_that_are_moved_before():
    def label(name):
        return np.int64(name.decode()[1])

    def mapped(name):
        known = tf.numpy_function(label, [name], tf.int64) - 1
        return tf.one_hot(known, 4)

    list(tf.data.Dataset.from_tensor_slices(NAMES).map(mapped))


# -- unscaled-input: convert_image_dtype of floats --------------------------------------------------------------------

IMAGES = np.random.default_rng(0).integers(0, 255, (6, 8, 8, 3)).astype("uint8")


@triggers("unscaled-input", says="img is float32 already: it stays as crop returned it, up to 2", pastes=True)
def floats_that_stay_as_they_are():
    def crop(img):
        return img[1:7, 1:7].astype(np.float32)

    def mapped(img):
        img = tf.numpy_function(crop, [img], tf.float32)
        img = tf.image.convert_image_dtype(img, tf.float32)
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(mapped))


@near("unscaled-input")
def whole_numbers_that_are_scaled():
    def crop(img):
        return img[1:7, 1:7]

    def mapped(img):
        return tf.image.convert_image_dtype(tf.numpy_function(crop, [img], tf.uint8), tf.float32)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(mapped))


@near("unscaled-input")
def floats_that_are_scaled_already():
    def crop(img):
        return img[1:7, 1:7] / np.float32(255)

    def mapped(img):
        return tf.image.convert_image_dtype(tf.numpy_function(crop, [img], tf.float32), tf.float32)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(mapped))
