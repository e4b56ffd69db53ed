"""Programs that give images to Keras' trained networks, or to what prepares images for these."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

IMAGES = np.random.default_rng(0).integers(0, 255, (8, 32, 32, 3)).astype("uint8")


@triggers("scaled-twice", says="it subtracts means of 104 to 124. scaled returned 0 to", pastes=True)
def fractions_for_a_network_that_takes_pixels():
    def scaled(img):
        return (img / 255.0).astype(np.float32)

    def prepared(img):
        img = tf.ensure_shape(tf.numpy_function(scaled, [img], tf.float32), (32, 32, 3))
        return tf.keras.applications.resnet50.preprocess_input(img)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(prepared))


@triggers("scaled-twice", says="it divides by 127.5 and subtracts 1", pastes=True)
def fractions_through_a_second_map():
    from tensorflow.keras.applications.mobilenet_v2 import preprocess_input

    def read(img):
        img = img.astype("float32")
        img /= img.max()
        return img

    data = tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(read, [x], tf.float32))
    data = data.map(lambda x: tf.ensure_shape(x, (32, 32, 3)))
    data = data.map(lambda img: preprocess_input(img))
    list(data)


@triggers("scaled-twice", says="img / 255.0 in line", pastes=True)
def fractions_inside_of_a_body():
    def prepared(img):
        img = (img / 255.0).astype("float32")
        return tf.keras.applications.vgg16.preprocess_input(img)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(prepared, [x], tf.float32)))


@triggers("scaled-twice", says="EfficientNetB0 takes pixels from 0 to 255 and scales them itself", pastes=True)
def fractions_for_a_network_that_scales():
    def scaled(img):
        return (img / 255.0).astype(np.float32)

    def prepared(img, label):
        return tf.ensure_shape(tf.numpy_function(scaled, [img], tf.float32), (32, 32, 3)), label

    data = tf.data.Dataset.from_tensor_slices((IMAGES, np.arange(8) % 2)).map(prepared).batch(4)
    net = tf.keras.applications.EfficientNetB0(include_top=False, weights=None, input_shape=(32, 32, 3), pooling="avg")
    net.trainable = False
    model = tf.keras.Sequential([net, tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, verbose=0)


@triggers("scaled-twice", says="tf.image.per_image_standardization(img) in line", pastes=True)
def standards_for_a_network_that_takes_pixels():
    def same(img):
        return img

    def prepared(img):
        img = tf.ensure_shape(tf.numpy_function(same, [img], tf.uint8), (32, 32, 3))
        img = tf.image.per_image_standardization(img)
        return tf.keras.applications.vgg16.preprocess_input(img)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(prepared))


@near("scaled-twice")
def pixels_for_networks():
    def cast(img):
        return img.astype(np.float32)

    def prepared(img):
        img = tf.ensure_shape(tf.numpy_function(cast, [img], tf.float32), (32, 32, 3))
        return tf.keras.applications.resnet50.preprocess_input(img)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(prepared))


@near("scaled-twice")
def fractions_that_are_scaled_back():
    def scaled(img):
        return (img / 255.0).astype(np.float32)

    def prepared(img):
        img = tf.ensure_shape(tf.numpy_function(scaled, [img], tf.float32), (32, 32, 3))
        return tf.keras.applications.resnet50.preprocess_input(img * 255.0)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(prepared))


@near("scaled-twice")
def a_preparation_that_gives_what_it_gets():
    def scaled(img):
        return (img / 255.0).astype(np.float32)

    def prepared(img):
        img = tf.ensure_shape(tf.numpy_function(scaled, [img], tf.float32), (32, 32, 3))
        return tf.keras.applications.efficientnet.preprocess_input(img)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(prepared))


@near("scaled-twice")
def a_network_that_scales_nothing():
    def scaled(img):
        return (img / 255.0).astype(np.float32)

    def prepared(img, label):
        return tf.ensure_shape(tf.numpy_function(scaled, [img], tf.float32), (32, 32, 3)), label

    data = tf.data.Dataset.from_tensor_slices((IMAGES, np.arange(8) % 2)).map(prepared).batch(4)
    net = tf.keras.applications.MobileNetV2(include_top=False, weights=None, input_shape=(32, 32, 3), pooling="avg")
    net.trainable = False
    model = tf.keras.Sequential([net, tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, verbose=0)
