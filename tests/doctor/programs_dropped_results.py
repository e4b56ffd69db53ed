"""Programs that call pure functions as statements: nothing keeps what these give."""

from __future__ import annotations

import contextlib

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

IMAGES = np.random.default_rng(0).integers(0, 255, (6, 4, 4, 3)).astype("uint8")


@triggers("dropped-result", says="np.fliplr(img) gives a new array, which nothing keeps: img stays", pastes=True)
def a_mirror_image_that_nothing_keeps():
    def mirrored(img):
        np.fliplr(img)
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(mirrored, [x], tf.uint8)))


@triggers("dropped-result", says="img.astype(np.float32) in line", pastes=True)
def a_cast_of_a_body_and_its_clip():
    def prepared(img):
        np.clip(img, 10, 200)
        img.astype(np.float32)
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(prepared, [x], tf.uint8)))


@triggers("dropped-result", says="tf.image.random_flip_left_right(img)", pastes=True)
def an_augmentation_of_a_mapped_function():
    def augment(img):
        img = tf.numpy_function(lambda one: one, [img], tf.uint8)
        img = tf.ensure_shape(img, (4, 4, 3))
        if tf.reduce_max(img) > 3:
            tf.image.random_flip_left_right(img)
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(augment))


@triggers("dropped-result", says="gives a new tensor", pastes=True)
def a_cast_of_a_function_that_is_called_by_another():
    def scaled(x):
        tf.cast(x, tf.float32)
        return tf.identity(x)

    @tf.function
    def step(x):
        return tf.numpy_function(lambda one: np.float32(one), [scaled(x)], tf.float32)

    step(tf.constant([1, 2]))


@triggers("dropped-result", says="row.reshape(2, 8, 3) gives a new array", pastes=True)
def a_shape_of_a_generator():
    def rows():
        for row in IMAGES:
            row.reshape(2, 8, 3)
            yield row

    list(tf.data.Dataset.from_generator(rows, output_types=tf.uint8))


@triggers("dropped-result", says="np.multiply(self.img, 2) gives a new array")
def a_product_of_an_attribute():
    class Reader:
        def __init__(self):
            self.img = IMAGES[0]

        def read(self, place):
            np.multiply(self.img, 2)
            return self.img + place

    reader = Reader()
    list(tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(reader.read, [x], tf.int64)))


@near("dropped-result")
def functions_that_change_what_they_get():
    def changed(img):
        np.random.shuffle(img)
        img.sort()
        np.clip(img, 0, 9, img)
        np.clip(img, 0, 9, out=img)
        np.add(img, 1, img)
        np.copyto(img, 3)
        return img

    list(
        tf.data.Dataset.from_tensor_slices(IMAGES).map(
            lambda x: tf.numpy_function(lambda one: changed(one.copy()), [x], tf.uint8)
        )
    )


@near("dropped-result")
def results_that_are_kept():
    def kept(img):
        img = np.fliplr(img)
        parts = [np.clip(img, 0, 9)]
        parts.append(img.astype(np.float32))
        return parts[1].transpose(1, 0, 2)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(kept, [x], tf.float32)))


@near("dropped-result")
def a_call_that_is_to_fail():
    def checked(img):
        try:
            img.reshape(2, 8, 3)
        except ValueError:
            return img[:0]
        with contextlib.suppress(ValueError):
            np.reshape(img, (7, 7))
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(checked, [x], tf.uint8)))


@near("dropped-result")
def an_object_with_a_method_of_that_name():
    class Picture:
        def __init__(self, pixels):
            self.pixels = pixels

        def transpose(self):
            self.pixels = self.pixels.swapaxes(0, 1)

    def turned(img):
        picture = Picture(img)
        picture.transpose()
        return picture.pixels

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(turned, [x], tf.uint8)))


@near("dropped-result")
def a_function_that_nothing_called():
    def unused(img):
        np.fliplr(img)
        return img

    def same(img):
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(same, [x], tf.uint8)))
    return unused
