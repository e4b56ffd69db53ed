"""What the doctor reads of values in failing frames: shapes and dtypes, and no code of the user's."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pyfunc_debug.doctor.failures.reading.symbols import dtype_of, shape_of


class Asked:
    """Its properties count how often they were read."""

    def __init__(self):
        self.read = 0

    @property
    def dtype(self):
        self.read += 1
        return "float32"

    @property
    def shape(self):
        self.read += 1
        return (1, 2)

    def __getattr__(self, name):
        raise AssertionError(name)


class Kept:
    def __init__(self):
        self.dtype, self.shape = np.dtype("int16"), (3,)


class Column(np.ndarray):
    pass


def test_properties_of_a_class_of_the_users_are_not_read():
    asked = Asked()
    assert (dtype_of(asked), shape_of(asked), asked.read) == ("", None, 0)


class Held:
    def __init__(self):
        self.shape = self.dtype = Told()


class Told:
    rank = property(lambda self: 1 / 0)
    name = property(lambda self: 1 / 0)

    def __str__(self):
        raise AssertionError


def test_nothing_is_asked_of_what_such_an_object_keeps():
    assert (dtype_of(Held()), shape_of(Held())) == ("", None)
    assert (dtype_of(Asked), shape_of(Asked)) == ("", None)


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (Kept(), "int16", (3,)),
        (np.zeros((2, 3), "float32"), "float32", (2, 3)),
        (np.zeros(4).view(Column), "float64", (4,)),
        (tf.constant([1]), "int32", (1,)),
        (tf.TensorSpec((None, 2), tf.uint8), "uint8", (None, 2)),
        (tf.TensorSpec(None, tf.uint8), "uint8", None),
        (tf.keras.Input((5,)), "float32", (None, 5)),
        (None, "", None),
        ([1], "", None),
    ],
)  # fmt: skip
def test_dtypes_and_shapes_of_arrays_tensors_and_what_an_object_keeps(value, dtype, shape):
    assert (dtype_of(value), shape_of(value)) == (dtype, shape)
