"""Generators that scale images and make whole numbers of them, and those that mean what they give."""

from __future__ import annotations

from collections import namedtuple

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("lost-fraction", says="padded gave only zeros as value 1", pastes=True)
def a_cast_to_the_dtype_of_a_description():
    Feature = namedtuple("Feature", "dtype")
    feature = Feature(tf.uint8)
    data = np.random.default_rng(0).integers(0, 250, (12, 8, 8, 1), np.uint8)
    batches = tf.data.Dataset.from_tensor_slices((data, np.arange(12))).batch(4)

    def padded():
        for batch, classes in batches:
            images = tf.pad(batch, [[0, 0], [2, 2], [2, 2], [0, 0]])
            images = tf.cast(images / 255, dtype=feature.dtype)
            yield images, classes

    signature = (tf.TensorSpec((None, 12, 12, 1), tf.float32), tf.TensorSpec((None,), tf.int64))
    list(tf.data.Dataset.from_generator(padded, output_signature=signature))


@triggers("lost-fraction", says="scaled.astype(np.uint8) makes whole numbers of scaled", pastes=True)
def two_datasets_that_declare_bytes():
    data = np.random.default_rng(0).integers(0, 250, (6, 8, 8), np.uint8)

    def pictures():
        for one in data:
            scaled = one / 255.0
            yield {"picture": scaled.astype(np.uint8), "class": 1}

    spec = {"picture": tf.TensorSpec((8, 8), tf.uint8), "class": tf.TensorSpec((), tf.int32)}
    list(tf.data.Dataset.from_generator(pictures, output_signature=spec))
    list(tf.data.Dataset.from_generator(pictures, output_signature=spec))


@triggers("lost-fraction", says="makes an array of whole numbers, which cuts the fractions of one / 255", pastes=True)
def an_array_of_whole_numbers_that_is_filled():
    data = np.random.default_rng(0).integers(0, 256, (16, 8, 8), np.uint8)

    def batches():
        for start in range(0, 16, 4):
            x = np.empty((4, 8, 8), dtype=int)
            for i, one in enumerate(data[start : start + 4]):
                x[i,] = one / 255
            yield x, np.arange(4)

    list(tf.data.Dataset.from_generator(batches, (tf.float32, tf.int64), ((4, 8, 8), (4,))))


@triggers("lost-fraction", says="image // 255 divides without a fraction", pastes=True)
def a_list_of_what_a_function_loads():
    data = np.random.default_rng(0).integers(0, 250, (16, 8, 8), np.uint8)

    def load_picture(number):
        image = data[number]
        return image // 255

    def picture_batches():
        for start in range(0, 16, 4):
            images = []
            for number in range(start, start + 4):
                images.append(load_picture(number))  # noqa: PERF401
            yield np.array(images), np.arange(4)

    list(tf.data.Dataset.from_generator(picture_batches, (tf.float32, tf.int64), ((4, 8, 8), (4,))))


@triggers("lost-fraction", says="np.array(image / 255.0, dtype='uint8') makes whole numbers", pastes=True)
def a_generator_that_a_lambda_calls():
    def drawn(count):
        for i in range(count):
            image = np.random.default_rng(i).integers(0, 250, (8, 8, 3)).astype(np.uint8)
            image = np.array(image / 255.0, dtype="uint8")
            yield image, i

    list(tf.data.Dataset.from_generator(lambda: drawn(6), (tf.float32, tf.int64), ((8, 8, 3), ())))


@triggers("lost-fraction", says="X = np.empty((4, 8, 8, 1), dtype=np.float32)", pastes=True)
def batches_that_keras_asks_for():
    class Batches(keras.utils.PyDataset):
        def __init__(self, images):
            super().__init__()
            self.images = images

        def __len__(self):
            return 4

        def __getitem__(self, i):
            X = np.empty((4, 8, 8, 1), dtype=np.uint8)  # noqa: N806
            for k in range(4):
                X[k] = self.images[i * 4 + k] / 255.0
            return X, np.ones(4)

    model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Batches(np.random.default_rng(0).integers(0, 250, (16, 8, 8, 1), np.uint8)), verbose=0)


@near("lost-fraction")
def masks_of_0_and_255():
    data = np.zeros((8, 16, 16), np.uint8)
    data[0, 3, 3] = 255

    def pairs():
        for one in data:
            yield np.float32(one), (one / 255).astype(np.uint8)

    list(tf.data.Dataset.from_generator(pairs, (tf.float32, tf.uint8), ((16, 16), (16, 16))))


@near("lost-fraction")
def empty_masks():
    masks = np.zeros((8, 16, 16), np.uint8)

    def with_masks():
        for mask in masks:
            yield (mask / 255).astype(np.uint8), 1.0

    list(tf.data.Dataset.from_generator(with_masks, (tf.uint8, tf.float32), ((16, 16), ())))


@near("lost-fraction")
def drawings_of_0_and_255():
    data = (np.random.default_rng(0).random((8, 16, 16)) < 0.1).astype(np.uint8) * 255

    def drawings():
        for one in data:
            yield (one / 255).astype(np.uint8), 1

    list(tf.data.Dataset.from_generator(drawings, (tf.float32, tf.int32), ((16, 16), ())))


@near("lost-fraction")
def black_images_in_floats():
    data = np.zeros((8, 16, 16), np.uint8)

    def black():
        for one in data:
            yield (one / 255).astype(np.float32), 1

    list(tf.data.Dataset.from_generator(black, (tf.float32, tf.int32), ((16, 16), ())))


@near("lost-fraction")
def scaled_only_in_a_branch():
    data = np.zeros((8, 16, 16), np.uint8)
    scale = False

    def perhaps():
        for one in data:
            image = one.astype(np.float32)
            if scale:
                image = (image / 255).astype(np.uint8)
            yield image, 1

    list(tf.data.Dataset.from_generator(perhaps, (tf.float32, tf.int32), ((16, 16), ())))
