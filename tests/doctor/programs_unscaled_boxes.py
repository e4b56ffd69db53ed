"""Programs that resize images, and scale the boxes with them or not."""

from __future__ import annotations

import cv2
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

IMAGES = np.random.default_rng(0).integers(0, 255, (6, 60, 100, 3)).astype("uint8")
BOXES = np.array([[5, 10, 80 + i, 50] for i in range(6)], "float32")
POINTS = np.stack([BOXES[:, :2], BOXES[:, 2:]], 1)
SIZE = (32, 24)


def pairs(load, boxes=BOXES):
    def mapped(image, box):
        return tf.numpy_function(load, [image, box], [tf.float32, tf.float32])

    return list(tf.data.Dataset.from_tensor_slices((IMAGES, boxes)).map(mapped))


@triggers("unscaled-boxes", severity="error", says="boxes is returned as it was", pastes=True)
def boxes_of_an_image_before():
    def load(image, boxes):
        image = cv2.resize(image, (32, 32)) / 255.0
        return image.astype(np.float32), boxes

    pairs(load)


@triggers("unscaled-boxes", says="makes images of 24 rows and 32 columns", pastes=True)
def points_of_a_file():
    def load(i):
        image = IMAGES[i]
        keypoints = POINTS[i]
        image = cv2.resize(image, SIZE)
        return np.float32(image), keypoints.astype(np.float32)

    data = tf.data.Dataset.range(6)
    list(data.map(lambda i: tf.numpy_function(load, [i], [tf.float32, tf.float32])))


@triggers("unscaled-boxes", says="up to 85", pastes=True)
def boxes_beside_an_op_of_tensorflow():
    def load(image, bbox):
        small = tf.image.resize(image, [24, 32])
        return small, bbox

    def mapped(image, box):
        return tf.py_function(load, [image, box], [tf.float32, tf.float32])

    list(tf.data.Dataset.from_tensor_slices((IMAGES, BOXES)).map(mapped))


@triggers("unscaled-boxes", says="up to 85", pastes=True)
def boxes_in_whole_numbers():
    def load(i):
        image = IMAGES[i]
        box = BOXES[i].astype(np.int64)
        small = cv2.resize(image, (32, 32))
        return small.astype(np.float32), box

    data = tf.data.Dataset.range(6)
    list(data.map(lambda i: tf.numpy_function(load, [i], [tf.float32, tf.int64])))


@near("unscaled-boxes")
def boxes_that_are_scaled():
    def load(image, boxes):
        height, width = image.shape[:2]
        image = cv2.resize(image, (32, 32)) / 255.0
        boxes = boxes * np.array([32 / width, 32 / height] * 2, np.float32)
        return image.astype(np.float32), boxes

    pairs(load)


@near("unscaled-boxes")
def boxes_that_are_scaled_in_place():
    def load(image, boxes):
        boxes = boxes.copy()
        boxes[[0, 2]] *= 32 / image.shape[1]
        boxes[[1, 3]] *= 32 / image.shape[0]
        return cv2.resize(image, (32, 32)).astype(np.float32), boxes

    pairs(load)


@near("unscaled-boxes")
def boxes_in_shares_of_the_image():
    def load(image, boxes):
        return cv2.resize(image, (32, 32)).astype(np.float32), boxes

    pairs(load, BOXES / np.array([100, 60, 100, 60], "float32"))


@near("unscaled-boxes")
def boxes_of_an_image_that_is_small():
    def load(image, boxes):
        return cv2.resize(image, (320, 320)).astype(np.float32), boxes

    pairs(load)
