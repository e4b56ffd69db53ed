"""Programs that read images with OpenCV, for what takes red, green, blue, or for what takes them as they are."""

from __future__ import annotations

import os

import cv2
import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

COLOURS = np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8)


@triggers("channel-order", says="gives the channels as blue, green, red", pastes=True)
def images_for_a_trained_network():
    cv2.imwrite("a.png", COLOURS)

    def read(path):
        image = cv2.imread(path.decode())
        return cv2.resize(image, (32, 32)).astype(np.float32)

    def load(path):
        image = tf.numpy_function(read, [path], tf.float32)
        image.set_shape((32, 32, 3))
        return keras.applications.mobilenet_v2.preprocess_input(image)

    list(tf.data.Dataset.from_tensor_slices(["a.png"] * 3).map(load))
    os.remove("a.png")


@triggers("channel-order", says="shows them as red, green, blue", pastes=True)
def images_that_are_shown():
    cv2.imwrite("b.png", COLOURS)

    def read(path):
        return cv2.imread(path.numpy().decode(), cv2.IMREAD_COLOR)

    images = tf.data.Dataset.from_tensor_slices(["b.png"]).map(lambda p: tf.py_function(read, [p], tf.uint8))
    for image in images:
        plt.imshow(image.numpy())
    plt.close(plt.gcf())
    os.remove("b.png")


@triggers("channel-order", says="reads others as red, green, blue", pastes=True)
def images_of_two_readers():
    cv2.imwrite("c.png", COLOURS)

    def pictures():
        for name in ["c.png", "c.png"]:
            yield cv2.imread(name) / 255.0

    trained = tf.data.Dataset.from_generator(pictures, output_signature=tf.TensorSpec((16, 16, 3), tf.float32))
    tested = tf.image.decode_png(tf.io.read_file("c.png"), channels=3) / 255
    assert next(iter(trained)).shape == tested.shape
    os.remove("c.png")


@near("channel-order")
def channels_that_are_exchanged():
    cv2.imwrite("d.png", COLOURS)

    def read(path):
        image = cv2.imread(path.decode())
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB).astype(np.float32)

    def load(path):
        image = tf.ensure_shape(tf.numpy_function(read, [path], tf.float32), (16, 16, 3))
        return keras.applications.mobilenet_v2.preprocess_input(image)

    list(tf.data.Dataset.from_tensor_slices(["d.png"]).map(load))
    os.remove("d.png")


@near("channel-order")
def a_network_of_ones_own():
    cv2.imwrite("e.png", COLOURS)

    def read(path):
        return cv2.imread(path.decode()).astype(np.float32) / 255

    def load(path):
        return tf.ensure_shape(tf.numpy_function(read, [path], tf.float32), (16, 16, 3))

    images = tf.data.Dataset.from_tensor_slices(["e.png"] * 4).map(load).batch(2)
    keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(2)]).predict(images, verbose=0)
    os.remove("e.png")


@near("channel-order")
def images_without_colours():
    cv2.imwrite("f.png", COLOURS)

    def read(path):
        return cv2.imread(path.decode(), 0)

    for image in tf.data.Dataset.from_tensor_slices(["f.png"]).map(lambda p: tf.numpy_function(read, [p], tf.uint8)):
        plt.imshow(image.numpy())
    plt.close(plt.gcf())
    os.remove("f.png")


@near("channel-order")
def channels_read_backwards():
    cv2.imwrite("g.png", COLOURS)

    def read(path):
        return cv2.imread(path.decode())[:, :, ::-1].copy()

    for image in tf.data.Dataset.from_tensor_slices(["g.png"]).map(lambda p: tf.numpy_function(read, [p], tf.uint8)):
        plt.imshow(image.numpy())
    plt.close(plt.gcf())
    os.remove("g.png")
