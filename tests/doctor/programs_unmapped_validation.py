"""Programs that scale in the training's pipeline, and validate on the arrays as they are, or on scaled ones."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

X = np.random.default_rng(0).normal(50, 10, (48, 5)).astype("float32")
Y = (X.sum(1) > 250).astype("float32")


def classifier():
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    return model


@triggers("unscaled-input", says="val is made of the same arrays without prep", pastes=True)
def a_scaler_in_the_map_of_the_training_alone():
    mean, std = X[:32].mean(0), X[:32].std(0)

    def normalise(a):
        return ((a - mean) / std).astype("float32")

    def prep(a, b):
        a = tf.numpy_function(normalise, [a], tf.float32)
        return tf.ensure_shape(a, (5,)), b

    train = tf.data.Dataset.from_tensor_slices((X[:32], Y[:32])).shuffle(32).map(prep).batch(8)
    val = tf.data.Dataset.from_tensor_slices((X[32:], Y[32:])).batch(8)
    classifier().fit(train, validation_data=val, verbose=0)


@triggers("unscaled-input", says="from up to 199 to up to 0.78", pastes=True)
def pixels_that_a_body_divides():
    images = np.arange(240, dtype="float32").reshape(48, 5) % 201

    def scale(image):
        return image / np.float32(255)

    def load(image, label):
        return tf.ensure_shape(tf.numpy_function(scale, [image], tf.float32), (5,)), label

    train_ds = tf.data.Dataset.from_tensor_slices((images[:40], Y[:40])).map(load, num_parallel_calls=2).batch(8)
    val_ds = tf.data.Dataset.from_tensor_slices((images[40:], Y[40:])).batch(8).prefetch(1)
    classifier().fit(train_ds, validation_data=val_ds, epochs=1, verbose=0)


@triggers("unscaled-input", says="is validated on numbers of another size", pastes=True)
def two_results_of_one_body():
    def both(row, label):
        return (row.numpy() - 50) / 100, label

    def prepared(row, label):
        row, label = tf.py_function(both, [row, label], [tf.float32, tf.float32])
        return tf.ensure_shape(row, (5,)), tf.ensure_shape(label, ())

    train = tf.data.Dataset.from_tensor_slices((X[:32], Y[:32])).map(prepared).batch(8)
    held = tf.data.Dataset.from_tensor_slices((X[32:], Y[32:])).batch(8)
    classifier().fit(train, validation_data=held, verbose=0)


@near("unscaled-input")
def a_map_of_both():
    def scaled(a):
        return a / np.float32(255)

    def prep(a, b):
        return tf.ensure_shape(tf.numpy_function(scaled, [a], tf.float32), (5,)), b

    train = tf.data.Dataset.from_tensor_slices((X[:32], Y[:32])).map(prep).batch(8)
    val = tf.data.Dataset.from_tensor_slices((X[32:], Y[32:])).map(prep).batch(8)
    classifier().fit(train, validation_data=val, verbose=0)


@near("unscaled-input")
def arrays_of_their_own_that_are_scaled_before():
    x_val = (X[32:] / 255).astype("float32")

    def scaled(a):
        return a / np.float32(255)

    def prep(a, b):
        return tf.ensure_shape(tf.numpy_function(scaled, [a], tf.float32), (5,)), b

    train = tf.data.Dataset.from_tensor_slices((X[:32], Y[:32])).map(prep).batch(8)
    val = tf.data.Dataset.from_tensor_slices((x_val, Y[32:])).batch(8)
    classifier().fit(train, validation_data=val, verbose=0)


@near("unscaled-input")
def an_augmentation_that_keeps_the_size():
    def mirrored(a):
        return a[::-1].copy()

    def prep(a, b):
        return tf.ensure_shape(tf.numpy_function(mirrored, [a], tf.float32), (5,)), b

    train = tf.data.Dataset.from_tensor_slices((X[:32], Y[:32])).map(prep).batch(8)
    val = tf.data.Dataset.from_tensor_slices((X[32:], Y[32:])).batch(8)
    classifier().fit(train, validation_data=val, verbose=0)


@near("unscaled-input")
def a_validation_that_is_mapped_in_another_line():
    def scaled(a):
        return a / np.float32(255)

    def prep(a, b):
        return tf.ensure_shape(tf.numpy_function(scaled, [a], tf.float32), (5,)), b

    train = tf.data.Dataset.from_tensor_slices((X[:32], Y[:32])).map(prep).batch(8)
    val = tf.data.Dataset.from_tensor_slices((X[32:], Y[32:])).batch(8)
    val = val.unbatch().map(prep).batch(4)
    classifier().fit(train, validation_data=val, verbose=0)
