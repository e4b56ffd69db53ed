"""Programs that do not fail, whose numbers are scaled twice, or blended: as `programs_threads`."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- scaled-twice -----------------------------------------------------------------------------------------------------


@triggers("scaled-twice", severity="error", says="scales what load scaled already, in line", pastes=True)
def images_that_a_map_divides_again():
    def load(i):
        image = np.random.default_rng(int(i)).integers(0, 255, (4, 4, 3)).astype(np.float32)
        return image / 255.0

    def parse(i):
        x = tf.numpy_function(load, [i], tf.float32)
        x.set_shape([4, 4, 3])
        x = tf.cast(x, tf.float32) / 255.0
        return x, i % 2

    list(tf.data.Dataset.range(8).map(parse).batch(4))


@triggers("scaled-twice", says="x * 2.0 - 1.0", pastes=True)
def images_that_the_next_map_moves_around_zero():
    def load_bytes(i):
        image = np.random.default_rng(int(i)).integers(0, 255, (4, 4, 3))
        image = image.astype(np.float32)
        image /= image.max()
        return image, np.int64(i)

    def wrapped(i):
        image, label = tf.py_function(load_bytes, [i], [tf.float32, tf.int64])
        image = tf.ensure_shape(image, [4, 4, 3])
        return image, label

    ds = tf.data.Dataset.range(8).map(wrapped)
    ds = ds.shuffle(8)
    ds = ds.map(lambda x, y: (x / 127.5 - 1.0, y)).batch(4)
    list(ds)


@triggers("scaled-twice", says="Rescaling(1.0)", pastes=True)
def images_that_the_model_divides_again():
    def read(i):
        image = np.random.default_rng(int(i)).integers(0, 255, (4, 4, 3))
        return (image * (1 / 255)).astype("float32"), np.float32(i % 2)

    def sample(i):
        x, y = tf.numpy_function(read, [i], [tf.float32, tf.float32])
        return tf.ensure_shape(x, [4, 4, 3]), tf.ensure_shape(y, [])

    train = tf.data.Dataset.range(8).map(sample).batch(4)
    inputs = keras.Input((4, 4, 3))
    x = keras.layers.Rescaling(1.0 / 255)(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(x)))
    model.compile("sgd", "mse")
    model.fit(train, epochs=1, verbose=0)


@near("scaled-twice")
def images_that_are_scaled_behind_the_body_only():
    def plain(i):
        return np.random.default_rng(int(i)).integers(0, 255, (4, 4, 3)).astype(np.float32)

    def scaled_once(i):
        x = tf.numpy_function(plain, [i], tf.float32)
        return x / 255.0, i % 2

    list(tf.data.Dataset.range(8).map(scaled_once).batch(4))


@near("scaled-twice")
def images_that_are_scaled_back_between():
    def load_scaled(i):
        return np.random.default_rng(int(i)).integers(0, 255, (4, 4, 3)).astype(np.float32) / 255.0

    def brightened(i):
        x = tf.numpy_function(load_scaled, [i], tf.float32)
        x = tf.clip_by_value(x * 255.0 + 10.0, 0.0, 255.0)
        return x / 255.0

    list(tf.data.Dataset.range(8).map(brightened).batch(4))


@near("scaled-twice")
def a_layer_of_the_model_that_is_shipped():
    def read_scaled(i):
        image = np.random.default_rng(int(i)).integers(0, 255, (4, 4, 3))
        return (image / 255.0).astype("float32"), np.float32(i % 2)

    def scaled_sample(i):
        x, y = tf.numpy_function(read_scaled, [i], [tf.float32, tf.float32])
        return tf.ensure_shape(x, [4, 4, 3]), tf.ensure_shape(y, [])

    train = tf.data.Dataset.range(8).map(scaled_sample).batch(4)
    model = keras.Sequential([keras.Input((4, 4, 3)), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(train, epochs=1, verbose=0)
    shipped = keras.Sequential([keras.Input((4, 4, 3)), keras.layers.Rescaling(1 / 255), model])
    shipped.predict(np.full((1, 4, 4, 3), 200, "float32"), verbose=0)


@near("scaled-twice")
def shares_that_a_body_never_scaled():
    def noise(i):
        return np.random.default_rng(int(i)).random((4, 4)).astype(np.float32)

    def faint(i):
        x = tf.numpy_function(noise, [i], tf.float32)
        return x / 255.0

    list(tf.data.Dataset.range(8).map(faint))


@near("scaled-twice")
def a_map_that_scales_other_images_too():
    def load_shares(i):
        return np.random.default_rng(int(i)).integers(0, 255, (4, 4)).astype(np.float32) / 255.0

    def first(i):
        return tf.numpy_function(load_shares, [i], tf.float32)

    def normalized(x):
        return x / 255.0

    list(tf.data.Dataset.range(8).map(first).map(normalized))
    list(tf.data.Dataset.from_tensor_slices(tf.random.uniform([4, 4, 4], 0, 255)).map(normalized))
