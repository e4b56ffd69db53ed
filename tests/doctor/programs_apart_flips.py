"""Programs whose bodies flip an image by a draw, with or without what belongs to it."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

IMAGES = np.random.default_rng(0).random((8, 6, 6, 3)).astype(np.float32)
MASKS = (IMAGES[..., 0] > 0.5).astype(np.uint8)
BOXES = np.tile(np.array([[0, 1, 3, 4], [2, 2, 5, 5]], np.float32), (8, 1, 1))
CLASSES = np.arange(8) % 2


def mapped(body, second, kind):
    data = tf.data.Dataset.from_tensor_slices((IMAGES, second))
    return list(data.map(lambda a, b: tf.numpy_function(body, [a, b], [tf.float32, kind])))


@triggers("augmented-apart", says="augment flips image and mask each by a draw of its own", pastes=True)
def an_image_and_its_mask_by_two_draws():
    def augment(image, mask):
        if np.random.rand() < 0.5:
            image = np.fliplr(image)
        if np.random.rand() < 0.5:
            mask = np.fliplr(mask)
        return image, mask

    mapped(augment, MASKS, tf.uint8)


@triggers("augmented-apart", says="turned flips picture where a draw says so, and returns mask as it came", pastes=True)
def a_mask_that_stays():
    def turned(picture, mask):
        picture = picture.numpy()
        if tf.random.uniform(()) < 0.5:
            picture = np.ascontiguousarray(picture[:, ::-1])
        return picture.astype(np.float32), mask

    data = tf.data.Dataset.from_tensor_slices((IMAGES, MASKS))
    list(data.map(lambda a, b: tf.py_function(turned, [a, b], [tf.float32, tf.uint8])))


@triggers("augmented-apart", says="each x of boxes becomes img.shape[1] - x")
def boxes_that_stay():
    rng = np.random.default_rng(1)

    def augment(img, boxes):
        flip = rng.random() < 0.5
        if flip:
            img = img[:, ::-1].copy()
        return img, boxes

    mapped(augment, BOXES, tf.float32)


@triggers("augmented-apart", says="each y of keypoints becomes 1 - y")
def points_that_stay():
    def augment(img, keypoints):
        if np.random.randint(2):
            img = img[::-1]
        return img, keypoints

    mapped(augment, BOXES[..., :2] / 6, tf.float32)


@near("augmented-apart")
def a_mask_that_is_flipped_with_its_image():
    def augment(image, mask):
        if np.random.rand() < 0.5:
            image = image[:, ::-1]
            mask = mask[:, ::-1]
        return image, mask

    mapped(augment, MASKS, tf.uint8)


@near("augmented-apart")
def boxes_that_the_same_draw_moves():
    def augment(img, boxes):
        flip = np.random.rand() < 0.5
        if flip:
            img = img[:, ::-1]
        if flip:
            boxes = np.stack([6 - boxes[:, 2], boxes[:, 1], 6 - boxes[:, 0], boxes[:, 3]], 1)
        return img, boxes

    mapped(augment, BOXES, tf.float32)


@near("augmented-apart")
def boxes_that_are_moved_behind_the_body():
    def augment(img, boxes):
        flip = np.random.rand() < 0.5
        if flip:
            img = img[:, ::-1]
        return img, boxes, flip

    data = tf.data.Dataset.from_tensor_slices((IMAGES, BOXES))
    data = data.map(lambda a, b: tf.numpy_function(augment, [a, b], [tf.float32, tf.float32, tf.bool]))
    list(data.map(lambda a, b, f: (a, tf.where(f, 6 - b, b))))


@near("augmented-apart")
def a_class_beside_a_flipped_image():
    def augment(img, label):
        if np.random.rand() < 0.5:
            img = np.fliplr(img)
        return img, label

    mapped(augment, CLASSES, tf.int64)


@near("augmented-apart")
def an_image_that_gets_brighter():
    def augment(img, mask):
        if np.random.rand() < 0.5:
            img = img * 1.1
        return img.astype(np.float32), mask

    mapped(augment, MASKS, tf.uint8)


@near("augmented-apart")
def two_views_by_two_draws():
    def views(one, other):
        if np.random.rand() < 0.5:
            one = np.fliplr(one)
        if np.random.rand() < 0.5:
            other = np.fliplr(other)
        return one, other

    mapped(views, IMAGES, tf.float32)
