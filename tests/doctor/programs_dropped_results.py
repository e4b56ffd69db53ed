"""Programs that call pure functions as statements: nothing keeps what these give."""

from __future__ import annotations

import contextlib

import keras
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


# -- functions of the user's that only give something ------------------------------------------------------------------


class Paired(keras.utils.PyDataset):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y
        self.on_epoch_end()

    def __len__(self):
        return 3

    def shuffle_pair(self, a, b):
        order = np.random.permutation(a.shape[0])
        return a[order], b[order]

    def on_epoch_end(self):
        self.shuffle_pair(self.x, self.y)

    def __getitem__(self, at):
        return self.x[4 * at : 4 * at + 4], self.y[4 * at : 4 * at + 4]


class Permuted(keras.utils.PyDataset):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y
        self.order = np.arange(len(x))

    def __len__(self):
        return 3

    def __getitem__(self, at):
        rows = self.order[4 * at : 4 * at + 4]
        return self.x[rows], self.y[rows]

    def on_epoch_end(self):
        np.random.permutation(self.order)


class Swapped(keras.utils.PyDataset):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def __len__(self):
        return 3

    def __getitem__(self, at):
        return self.x[4 * at : 4 * at + 4], self.y[4 * at : 4 * at + 4]

    def turn(self, rows):
        rows[:] = rows[::-1].copy()
        return rows

    def on_epoch_end(self):
        self.turn(self.x)
        self.turn(self.y)


def _fitted(kind):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(kind(np.ones((12, 2), np.float32), np.ones((12, 1), np.float32)), epochs=2, shuffle=False, verbose=0)


@triggers("dropped-result", says="self.x and self.y stay as they were", pastes=True)
def a_shuffled_pair_that_is_dropped():
    _fitted(Paired)


@triggers("dropped-result", says="self.order stays as it was", pastes=True)
def a_permutation_that_is_dropped():
    _fitted(Permuted)


def _brighter(img):
    out = img.copy()
    out[:, :4] = np.clip(out[:, :4] + 0.2, 0, 1)
    return out


@triggers("dropped-result", says="_brighter(img) gives what it makes", pastes=True)
def a_helper_that_gives_an_image():
    def augment(img):
        if img.mean() >= 0:
            _brighter(img)
        return img

    data = tf.data.Dataset.from_tensor_slices(np.ones((4, 8, 8, 3), np.float32))
    list(data.map(lambda x: tf.numpy_function(augment, [x], tf.float32)))


def _darker(img):
    img -= 0.2
    return img


def _checked(img):
    if img.mean() > 2:
        raise ValueError("not scaled")
    return img.mean()


def _shown(img):
    print("mean", img.mean())
    return img


@near("dropped-result")
def a_helper_that_changes_what_it_gets():
    def augment(img):
        img = img.copy()
        _darker(img)
        _checked(img)
        _shown(img)
        return img

    data = tf.data.Dataset.from_tensor_slices(np.ones((4, 8, 8, 3), np.float32))
    list(data.map(lambda x: tf.numpy_function(augment, [x], tf.float32)))


@near("dropped-result")
def a_sequence_that_turns_its_rows_in_place():
    _fitted(Swapped)


def _cached(name, kept={}):  # noqa: B006
    kept[name] = len(name)
    return kept[name]


def _grown(rows, row):
    rows.append(row)
    return rows


@near("dropped-result")
def helpers_that_keep_what_they_make():
    seen = []

    def body(x):
        _cached("a")
        _grown(seen, 1)
        return x

    data = tf.data.Dataset.from_tensor_slices(np.ones((4, 2), np.float32))
    list(data.map(lambda x: tf.numpy_function(body, [x], tf.float32)))
