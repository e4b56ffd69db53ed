"""What the values that a body holds weigh, as TensorFlow's registry keeps them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pyfunc_debug.interception.graphs.outside import _tensor
from pyfunc_debug.interception.graphs.registered import array_bytes

ASKED: list[str] = []


class Proxy:
    """Answers to every name with a function, as a process's far end does."""

    def __getattr__(self, name):
        def call(*args):
            raise AssertionError(name)

        ASKED.append(name)
        return call


class Numbered:
    _id = 3
    shape = (2, 3)
    dtype = "float32"


@pytest.mark.parametrize("weigh", [array_bytes, _tensor])
def test_an_object_that_answers_to_every_name_is_not_asked(weigh):
    assert not weigh(Proxy())
    assert not ASKED


def test_arrays_and_tensors_weigh_and_nothing_else_does():
    assert array_bytes(np.zeros((2, 3), np.float32)) == 24
    assert array_bytes(tf.zeros((2, 3))) == 24
    assert [array_bytes(one) for one in (Numbered(), Numbered, Proxy, "text", None)] == [0, 0, 0, 0, 0]
