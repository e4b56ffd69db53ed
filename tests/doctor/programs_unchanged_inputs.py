"""Programs whose bodies draw random numbers and give back what they got."""

from __future__ import annotations

import time

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

IMAGES = np.random.default_rng(0).random((20, 8, 8, 3)).astype("float32")


@triggers("unchanged-input", says="writes into patch, which is a copy (line", pastes=True)
def a_patch_that_is_a_copy():
    def cutout(img):
        img = img.copy()
        r, c = np.random.randint(0, 6), np.random.randint(0, 6)
        patch = img[r : r + 2, c : c + 2].copy()
        patch[:] = 0
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(cutout, [x], tf.float32)))


@triggers("unchanged-input", says="makes noisy, which nothing reads", pastes=True)
def a_result_that_nothing_reads():
    def noise(img):
        noisy = img + np.random.normal(0, 0.1, img.shape)  # noqa: F841
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(noise, [x], tf.float32)))


@triggers("unchanged-input", says="in all 20 recorded calls: line", pastes=True)
def a_patch_of_a_part_of_the_calls():
    rng = np.random.default_rng(3)

    def erased(img):
        whole = np.array(img)
        if rng.random() < 0.5:
            part = np.array(whole[2:4])
            part.fill(0.5)
        return whole

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(erased, [x], tf.float32)))


@triggers("unchanged-input", says="look at what it draws")
def noise_that_is_none():
    def noise(img):
        added = np.random.normal(0, 0.0, img.shape)
        return (img + added).astype(np.float32)

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(noise, [x], tf.float32)))


@near("unchanged-input")
def a_body_that_draws_rarely():
    rng = np.random.default_rng(1)

    def mirrored(img):
        if rng.random() < 0.001:
            img = img[:, ::-1]
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(mirrored, [x], tf.float32)))


@near("unchanged-input")
def a_body_that_only_waits():
    def waits(img):
        time.sleep(np.random.rand() / 1e4)
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(waits, [x], tf.float32)))


@near("unchanged-input")
def the_input_beside_what_is_made_of_it():
    def both(img):
        return img, img + np.float32(np.random.rand())

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(both, [x], [tf.float32] * 2)))


@near("unchanged-input")
def inputs_without_anything_to_turn():
    def turned(img):
        return np.rot90(img, np.random.randint(4))

    zeros = tf.data.Dataset.from_tensor_slices(np.zeros_like(IMAGES))
    list(zeros.map(lambda x: tf.numpy_function(turned, [x], tf.float32)))


@near("unchanged-input")
def a_rare_draw_beside_a_number_that_nothing_reads():
    def mirrored(img):
        mean = img.mean()  # noqa: F841
        return img[:, ::-1] if np.random.rand() < 0.0001 else img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(mirrored, [x], tf.float32)))


@near("unchanged-input")
def a_patch_that_is_a_view():
    def cutout(img):
        img = img.copy()
        patch = img[np.random.randint(6) :][:2]
        patch[:] = 0
        return img

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(cutout, [x], tf.float32)))
