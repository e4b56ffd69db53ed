"""Programs that look for a class in a path, at its place or at another one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

PATHS = [f"data/train/{kind}/{i}.png" for i in range(4) for kind in ("cat", "dog")]


def labels(body, paths=PATHS):
    data = tf.data.Dataset.from_tensor_slices(paths)
    return {int(one) for one in data.map(lambda p: tf.numpy_function(body, [p], tf.int64))}


@triggers("never-equal", severity="error", says="parts[1] is 'train'", pastes=True)
def a_class_at_another_place():
    def label(path):
        parts = path.decode().split("/")
        return np.int64(1 if parts[1] == "dog" else 0)

    labels(label)


@triggers("never-equal", says="stands in some", pastes=True)
def a_class_in_a_part_that_has_a_name():
    def label(path):
        folder = path.decode("utf-8").split(os.sep)[-3]
        if "dog" in folder:
            return np.int64(1)
        return np.int64(0)

    labels(label)


@triggers("never-equal", says="the part of the text", pastes=False)
def a_class_in_a_name_that_goes_on():
    def label(path):
        name = Path(path.decode()).name
        return np.int64(name == "dog")

    labels(label, [f"data/{kind}.{i}.png" for i in range(4) for kind in ("cat", "dog")])


@triggers("never-equal", says="is False in all 8 recorded calls", pastes=True)
def a_class_for_an_eager_body():
    def label(path):
        path = path.numpy()
        where = path.decode().split("/")
        return 1 if where[0] == "dog" else 0

    data = tf.data.Dataset.from_tensor_slices(PATHS)
    list(data.map(lambda p: tf.py_function(label, [p], tf.int64)))


@near("never-equal")
def a_class_at_its_place():
    def label(path):
        parts = path.decode().split("/")
        return np.int64(1 if parts[-2] == "dog" else 0)

    assert labels(label) == {0, 1}


@near("never-equal")
def a_class_that_these_files_do_not_have():
    def label(path):
        parts = path.decode().split("/")
        return np.int64(2 if parts[-2] == "bird" else 1)

    labels(label)


@near("never-equal")
def a_folder_for_another_part_of_the_data():
    def label(path):
        parts = path.decode().split("/")
        return np.int64(parts[1] == "test")

    labels(label)
    labels(label, [f"test/{path}" for path in PATHS])


@near("never-equal")
def a_place_that_a_branch_decides():
    def label(path):
        parts = path.decode().split("/")
        part = parts[-2] if len(parts) > 3 else parts[0]
        return np.int64(part == "dog")

    assert labels(label) == {0, 1}


@near("never-equal")
def a_name_that_gets_two_values():
    def label(path):
        part = path.decode().split("/")[1]
        for one in path.decode().split("/"):
            part = one if one in ("cat", "dog") else part
        return np.int64(part == "dog")

    assert labels(label) == {0, 1}


@near("never-equal")
def a_class_at_either_of_two_places():
    def label(path):
        parts = path.decode().split("/")
        return np.int64(parts[1] == "dog" or parts[2] == "dog")

    assert labels(label) == {0, 1}
