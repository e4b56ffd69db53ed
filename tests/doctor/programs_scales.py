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


@triggers("scaled-twice", says="# image is between 0 and 1 already", pastes=True)
def images_of_a_class_that_are_divided_in_place():
    class Loader:
        def _read(self, i):
            image = np.random.default_rng(int(i)).integers(0, 255, (4, 4, 3))
            return (image / 255.0).astype(np.float32), np.int64(i % 2)

        def parse(self, i):
            image, label = tf.py_function(self._read, inp=[i], Tout=[tf.float32, tf.int64])
            image.set_shape([4, 4, 3])
            return image, label

        def norm(self, image, label):
            image = tf.image.resize(image, (2, 2))
            image /= 255.0
            return image, label

        def dataset(self):
            ds = tf.data.Dataset.range(8).map(self.parse, num_parallel_calls=2)
            ds = ds.batch(4)
            return ds.map(self.norm)

    list(Loader().dataset())


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


# -- blended-labels ---------------------------------------------------------------------------------------------------


def segmentation(size):
    model = keras.Sequential([keras.Input((size, size, 3)), keras.layers.Conv2D(3, 1)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@triggers("blended-labels", severity="warning", says='tf.image.resize(m, [16, 16], method="nearest")', pastes=True)
def classes_that_are_resized_as_an_image():
    def load(i):
        m = (np.arange(64).reshape(8, 8) % 3).astype(np.uint8)
        return np.ones((8, 8, 3), np.float32), m[..., None]

    def parse(i):
        x, m = tf.numpy_function(load, [i], [tf.float32, tf.uint8])
        x.set_shape([8, 8, 3])
        m.set_shape([8, 8, 1])
        x = tf.image.resize(x, [16, 16])
        m = tf.image.resize(m, [16, 16])
        return x, m

    segmentation(16).fit(tf.data.Dataset.range(8).map(parse).batch(4), epochs=1, verbose=0)


@triggers("blended-labels", says='tf.cast(tf.image.resize(mask, (4, 4), "nearest"), tf.float32)', pastes=True)
def a_mask_in_the_next_map():
    def read(i):
        return np.ones((8, 8, 3), np.uint8), np.arange(64).reshape(8, 8, 1) % 5

    def wrapped(i):
        image, mask = tf.py_function(read, [i], [tf.uint8, tf.int64])
        return tf.ensure_shape(image, [8, 8, 3]), tf.ensure_shape(mask, [8, 8, 1])

    def small(image, mask):
        mask = tf.image.resize(mask, (4, 4), "bilinear")
        return tf.image.resize(image, (4, 4)), tf.cast(mask, tf.int32)

    ds = tf.data.Dataset.range(4).map(wrapped)
    list(ds.map(small))


@triggers("blended-labels", says="interpolation=cv2.INTER_NEAREST", pastes=True)
def a_mask_that_opencv_blends():
    import cv2

    def load_small(i):
        image = np.ones((8, 8, 3), np.uint8)
        mask = np.zeros((8, 8), np.uint8)
        mask[2:5] = 4
        mask = cv2.resize(mask, (6, 6))
        return cv2.resize(image, (6, 6)), mask

    list(tf.data.Dataset.range(4).map(lambda i: tf.numpy_function(load_small, [i], [tf.uint8, tf.uint8])))


@triggers("blended-labels", says="which decode_png in line", pastes=True)
def a_mask_of_a_file():
    data = tf.io.encode_png(tf.cast(tf.reshape(tf.range(64) % 3, [8, 8, 1]), tf.uint8))

    def sample(i):
        mask = tf.io.decode_png(data, channels=1)
        mask = tf.image.resize(mask, [4, 4])
        return tf.ones([4, 4, 3]), mask

    segmentation(4).fit(tf.data.Dataset.range(4).map(sample).batch(2), epochs=1, verbose=0)


@near("blended-labels")
def a_mask_that_keeps_its_classes():
    def load_mask(i):
        return np.ones((8, 8, 3), np.float32), np.arange(64).reshape(8, 8, 1) % 3

    def resized(i):
        x, mask = tf.numpy_function(load_mask, [i], [tf.float32, tf.int64])
        mask = tf.ensure_shape(mask, [8, 8, 1])
        return tf.ensure_shape(x, [8, 8, 3]), tf.image.resize(mask, [4, 4], method="nearest")

    list(tf.data.Dataset.range(4).map(resized))


@near("blended-labels")
def two_images():
    def load_pair(i):
        image = np.arange(192).reshape(8, 8, 3).astype(np.uint8)
        return image, image[..., :1]

    def both(i):
        x, y = tf.numpy_function(load_pair, [i], [tf.uint8, tf.uint8])
        x, y = tf.ensure_shape(x, [8, 8, 3]), tf.ensure_shape(y, [8, 8, 1])
        return tf.image.resize(x, [4, 4]), tf.image.resize(y, [4, 4])

    list(tf.data.Dataset.range(4).map(both))


@near("blended-labels")
def a_map_of_heat():
    def load_heat(i):
        return np.ones((8, 8, 3), np.float32), np.random.rand(8, 8, 1).astype(np.float32) * 3

    def heat(i):
        x, mask = tf.numpy_function(load_heat, [i], [tf.float32, tf.float32])
        x, mask = tf.ensure_shape(x, [8, 8, 3]), tf.ensure_shape(mask, [8, 8, 1])
        return tf.image.resize(x, [4, 4]), tf.image.resize(mask, [4, 4])

    list(tf.data.Dataset.range(4).map(heat))


@near("blended-labels")
def depths_in_whole_meters():
    def load_depth(i):
        return np.ones((8, 8, 3), np.float32), (np.arange(64).reshape(8, 8, 1) % 9).astype(np.uint8)

    def depth_of(i):
        x, depth = tf.numpy_function(load_depth, [i], [tf.float32, tf.uint8])
        depth = tf.ensure_shape(depth, [8, 8, 1])
        return tf.ensure_shape(x, [8, 8, 3]), tf.image.resize(depth, [4, 4])

    list(tf.data.Dataset.range(4).map(depth_of))


@near("blended-labels")
def a_mask_of_two_classes_that_is_cut_at_a_half():
    def load_two(i):
        return np.ones((8, 8, 3), np.float32), (np.arange(64).reshape(8, 8, 1) % 2).astype(np.uint8)

    def halves(i):
        x, mask = tf.numpy_function(load_two, [i], [tf.float32, tf.uint8])
        mask = tf.image.resize(tf.ensure_shape(mask, [8, 8, 1]), [4, 4])
        return tf.ensure_shape(x, [8, 8, 3]), tf.one_hot(tf.cast(mask[..., 0] > 0.5, tf.int32), 2)

    list(tf.data.Dataset.range(4).map(halves))
