"""What looks at the first elements of a generator adds no frame, takes what it finds, and is gone after them."""

from __future__ import annotations

import traceback

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.interception import yields
from pyfunc_debug.interception.yields import Yields


class State:
    """As TensorFlow's: an iterator by the number of a pass."""

    def __init__(self, values):
        self._iterator = iter(values)

    def get_iterator(self, number):
        if number:
            raise ValueError("there is only one pass")
        return self._iterator


class Told:
    def __init__(self):
        self.found, self.troubles = [], []

    def notice(self, rule, token, call, **facts):
        self.found.append((token, facts["element"], facts["position"], facts["own"]))

    def trouble(self, where, error):
        self.troubles.append(error)


class Odd:
    dtype = property(lambda self: 1 / 0)


def taken(state, count):
    return [next(state.get_iterator(0)) for _ in range(count)]


def test_the_first_elements_are_looked_at_and_stay_what_they_are():
    told, values = Told(), [i / 2 for i in range(20)]
    state = State(values)
    Yields(told).watch("pyfunc_1", state, ["int32"])
    assert taken(state, 20) == values
    assert told.found == [("pyfunc_1", i + 1, 0, i / 2) for i in range(1, yields.FIRST, 2)]
    assert list(vars(state)) == ["_iterator"]


def test_stop_gives_back_what_there_was():
    state, watching = State([0.5, 0.5]), Yields(Told())
    watching.watch("pyfunc_1", state, ["int32"])
    assert "get_iterator" in vars(state)
    watching.stop()
    assert list(vars(state)) == ["_iterator"]
    assert taken(state, 2) == [0.5, 0.5]


def test_floats_alone_are_not_looked_at():
    state = State([])
    Yields(Told()).watch("pyfunc_1", state, ["float32", "string"])
    assert list(vars(state)) == ["_iterator"]


@pytest.mark.parametrize("value", [Odd(), None, "a", (1, 2), {"a": "b"}, float("nan"), float("inf"), [[1.5]], [], 3])
def test_what_is_not_known_is_passed_on(value):
    told = Told()
    state = State([value])
    Yields(told).watch("pyfunc_1", state, ["int32"])
    assert taken(state, 1)[0] is value
    assert told.found == []


def test_an_exception_has_no_frame_of_ours():
    state = State([])
    Yields(Told()).watch("pyfunc_1", state, ["int32"])
    with pytest.raises(ValueError, match="only one") as caught:
        state.get_iterator(1)
    assert [one.name for one in traceback.extract_tb(caught.value.__traceback__)][1:] == ["get_iterator"]
    with pytest.raises(StopIteration):
        next(state.get_iterator(0))


def test_a_recording_leaves_a_dataset_as_it_was():
    def gen():
        yield from (0.5, 1.5)
        raise KeyError("row 3")

    with pfd.record():
        data = tf.data.Dataset.from_generator(gen, tf.int32, [])
    with pytest.raises(tf.errors.OpError, match="row 3") as caught:
        list(data)
    assert "interception/yields.py" not in str(caught.value)
