"""Programs that filter or turn images, by axes of theirs or of others, and boxes by the sides of their image."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from scipy import ndimage
from scipy.ndimage import gaussian_filter, median_filter

from tests.doctor.programs import near, triggers

IMAGES = np.random.default_rng(0).random((12, 10, 8, 3)).astype("float32")
GRAY = np.random.default_rng(1).random((12, 10, 8)).astype("float32")
BOXES = (np.random.default_rng(2).random((12, 4)) * 90).astype("float32")


def made(body, images, batch=0):
    data = tf.data.Dataset.from_tensor_slices(images)
    data = data.batch(batch) if batch else data
    return [one.numpy() for one in data.map(lambda x: tf.numpy_function(body, [x], tf.float32))]


# -- mixed-axes --------------------------------------------------------------------------------------------------------


@triggers("mixed-axes", says="gaussian_filter takes one number, 1.5, for all axes, and blurs over the", pastes=True)
def colors_that_run_into_each_other():
    def smooth(x):
        return gaussian_filter(x, sigma=1.5)

    made(smooth, IMAGES)


@triggers("mixed-axes", severity="error", says="turns the first two axes, the images and their rows", pastes=True)
def a_batch_that_is_turned():
    def turn(x):
        return ndimage.rotate(x, np.random.uniform(-20, 20), reshape=False)

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(turn, [x], tf.float32)))


@triggers("mixed-axes", severity="error", says="takes medians over the images of a batch, too", pastes=True)
def gray_images_with_those_beside_them():
    size = 3

    def clean(x):
        return median_filter(x, size)

    batches = tf.data.Dataset.from_tensor_slices(GRAY).batch(4)
    list(batches.map(lambda x: tf.numpy_function(clean, [x], tf.float32)))


@triggers("mixed-axes", says="shifts over the channels, too", pastes=True)
def colors_that_are_shifted():
    def moved(image):
        by = np.random.randint(1, 3)
        return ndimage.shift(image, by)

    made(moved, IMAGES)


@near("mixed-axes")
def colors_that_are_kept_apart():
    def smooth(x):
        return gaussian_filter(x, sigma=(1.5, 1.5, 0))

    made(smooth, IMAGES)


@near("mixed-axes")
def a_volume_of_slices():
    def smooth(x):
        return gaussian_filter(x, 1.5)

    made(smooth, np.random.default_rng(3).random((3, 8, 10, 12)).astype("float32"))


@near("mixed-axes")
def one_gray_image():
    def turn(x):
        return ndimage.rotate(gaussian_filter(x, 1.0), 15, reshape=False)

    made(turn, GRAY)


@near("mixed-axes")
def a_batch_turned_by_its_images():
    def turn(x):
        return ndimage.rotate(x, 15, axes=(1, 2), reshape=False)

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(turn, [x], tf.float32)))


# -- garbled-image: sizes that have names ------------------------------------------------------------------------------


@triggers("garbled-image", severity="error", says="x.transpose(1, 2, 0)", pastes=True)
def channels_last_by_names():
    def channels_last(x):
        c, h, w = x.shape
        return x.reshape(h, w, c)

    made(channels_last, np.random.default_rng(0).random((4, 3, 10, 8)).astype("float32"))


@triggers("garbled-image", says="np.transpose(x, [2, 0, 1])", pastes=True)
def channels_first_by_sizes():
    def channels_first(x):
        channels = x.shape[2]
        return np.reshape(x, (channels, x.shape[0], x.shape[1]))

    made(channels_first, IMAGES)


@near("garbled-image")
def rows_put_one_behind_another():
    def flat(x):
        h, w, c = x.shape
        return x.reshape(h * w, c).reshape(h, w, c)

    made(flat, IMAGES)


# -- swapped-sides -----------------------------------------------------------------------------------------------------


@triggers("swapped-sides", says="xmin / height divides a place in a row by the height of the image", pastes=True)
def boxes_by_the_other_side():
    def load(i):
        height, width = IMAGES[i].shape[:2]
        xmin, ymin, xmax, ymax = BOXES[i]
        return np.array([xmin / height, ymin / width, xmax / height, ymax / width], np.float32)

    list(tf.data.Dataset.range(12).map(lambda i: tf.numpy_function(load, [i], tf.float32)))


@triggers("swapped-sides", says="x1 / w divides a place in a row by the height of the image", pastes=True)
def sides_that_are_read_in_the_other_order():
    def scaled(image, box):
        w, h, _ = image.shape
        x1, y1, x2, y2 = box
        return np.float32([x1 / w, y1 / h, x2 / w, y2 / h])

    data = tf.data.Dataset.from_tensor_slices((IMAGES, BOXES))
    list(data.map(lambda a, b: tf.numpy_function(scaled, [a, b], tf.float32)))


@triggers("swapped-sides", says="cx / image.shape[0]", pastes=True)
def centers_by_the_other_side():
    def center(image, box):
        cx, cy = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        return np.float32([cx / image.shape[0], cy / image.shape[1]])

    data = tf.data.Dataset.from_tensor_slices((IMAGES, BOXES))
    list(data.map(lambda a, b: tf.numpy_function(center, [a, b], tf.float32)))


@near("swapped-sides")
def boxes_by_their_sides():
    def load(i):
        height, width = IMAGES[i].shape[:2]
        xmin, ymin, xmax, ymax = BOXES[i]
        return np.array([xmin / width, ymin / height, xmax / width, ymax / height], np.float32)

    list(tf.data.Dataset.range(12).map(lambda i: tf.numpy_function(load, [i], tf.float32)))


@near("swapped-sides")
def boxes_of_an_image_of_pil():
    from PIL import Image

    def scaled(image, box):
        w, h = Image.fromarray((image * 255).astype(np.uint8)).size
        x1, y1, x2, y2 = box
        return np.float32([x1 / w, y1 / h, x2 / w, y2 / h])

    data = tf.data.Dataset.from_tensor_slices((IMAGES, BOXES))
    list(data.map(lambda a, b: tf.numpy_function(scaled, [a, b], tf.float32)))


@near("swapped-sides")
def all_by_the_longer_side():
    def scaled(box):
        side = 90.0
        x1, y1, x2, y2 = box
        return np.float32([x1 / side, y1 / side, x2 / side, y2 / side])

    made(scaled, BOXES)


@near("swapped-sides")
def a_slope_and_a_ratio():
    def ratio(box):
        x, y, w, h = box + 1
        return np.float32([y / x, w / h, x / h])

    made(ratio, BOXES)


# -- batch-draw --------------------------------------------------------------------------------------------------------


@triggers("batch-draw", says="draws once for all 4 images of a batch")
def all_flipped_or_none():
    def augment(x):
        if np.random.rand() < 0.5:
            x = x[:, :, ::-1]
        return x.astype(np.float32)

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(augment, [x], tf.float32)))


@triggers("batch-draw", says="flip > 0.5 holds for all of them, or for none")
def flipped_by_a_name():
    import random

    def augment(images):
        flip = random.random()
        if flip > 0.5:
            return images[:, ::-1]
        return images

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).shuffle(12).batch(6)
    list(batches.map(lambda x: tf.numpy_function(augment, [x], tf.float32)))


@triggers("batch-draw", says="np.random.randint(2) holds for all of them, or for none")
def turned_upside_down_together():
    def augment(images):
        out = images.copy()
        if np.random.randint(2):
            out = np.flip(images, 1)
        return out

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(3)
    list(batches.map(lambda x: tf.numpy_function(augment, [x], tf.float32)))


@near("batch-draw")
def one_draw_an_image():
    def augment(x):
        if np.random.rand() < 0.5:
            x = x[:, ::-1]
        return x

    list(tf.data.Dataset.from_tensor_slices(IMAGES).map(lambda x: tf.numpy_function(augment, [x], tf.float32)).batch(4))


@near("batch-draw")
def one_draw_for_each_in_a_loop():
    def augment(x):
        x = x.copy()
        for i in range(len(x)):
            if np.random.rand() < 0.5:
                x[i] = x[i][:, ::-1]
        return x

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(augment, [x], tf.float32)))


@near("batch-draw")
def draws_for_the_rows():
    def augment(x):
        x, flip = x.copy(), np.random.rand(len(x)) < 0.5
        x[flip] = x[flip][:, :, ::-1]
        return x

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(augment, [x], tf.float32)))


@near("batch-draw")
def what_a_batch_is_mixed_by():
    def mixup(x):
        share = np.random.beta(0.2, 0.2)
        if np.random.rand() < 0.5:
            print(share)
        return (share * x + (1 - share) * x[::-1]).astype(np.float32)

    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(4)
    list(batches.map(lambda x: tf.numpy_function(mixup, [x], tf.float32)))
