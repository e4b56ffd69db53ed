"""Calls of decorated bodies are read as calls of py_function, with the user's own text for their parts."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.bodies import decorated
from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS, argument, py_call
from pyfunc_debug.doctor.failures.reading.source import parsed

TEXT = """
import numpy as np
import tensorflow as tf

@tf.numpy_function(Tout=tf.float32)
def halved(x, y):
    return np.load(x) + y

class Layer:
    @staticmethod
    @tf.py_function(Tout=[tf.int32])
    def load(x):
        return x

    def call(self, x):
        return self.load(halved(
            x, 1.0)), np.load(x)

data = data.map(halved)
"""


def calls(text):
    return [one for one in parsed(text).calls_of(NODE_CALLS) if isinstance(one, decorated.Call)]


def test_calls_of_bodies_and_of_static_methods_are_found_and_no_other_function_of_the_name():
    assert sorted(ast.unparse(one) for one in calls(TEXT)) == [
        "tf.numpy_function(halved, [x, 1.0], Tout=tf.float32)",
        "tf.py_function(self.load, [tf.numpy_function(halved, [x, 1.0], Tout=tf.float32)], Tout=[tf.int32])",
    ]


def test_their_text_is_what_is_written():
    source = parsed(TEXT)
    assert sorted(map(source.text, calls(TEXT))) == ["halved(x, 1.0)", "self.load(halved(x, 1.0))"]
    call = py_call(source, 17)
    assert [source.text(argument(call, place, name)) for place, name in ((1, "inp"), (2, "Tout"))] == [
        "[x, 1.0]", "tf.float32",
    ]  # fmt: skip


def test_a_name_that_is_mapped_is_a_call_in_a_lambda():
    source = parsed(TEXT)
    call = py_call(source, 19)
    assert source.text(call) == "halved(x, y)"
    assert source.replaced({call: f"tf.ensure_shape({source.text(call)}, [])"}) == (
        19, 19, "data = data.map(lambda x, y: tf.ensure_shape(halved(x, y), []))",
    )  # fmt: skip


def test_names_with_two_meanings_are_left_alone():
    assert [one.body.name for one in calls(TEXT.replace("data = data", "halved = data"))] == ["load"]
    assert len(calls(f"{TEXT}\ndef halved(x, y):\n    return x")) == 1
    assert len(calls(f"{TEXT}\nother = lambda halved: halved(1)")) == 1


def test_other_inputs_change_the_call_and_the_decorator_stays():
    source = parsed(TEXT)
    call = py_call(source, 17)
    first, last, text = source.replaced({argument(call, 1, "inp"): "[x, z]"})
    assert (first, last) == (16, 17)
    assert text.strip() == "return self.load(halved(x, z)), np.load(x)"


def test_a_call_in_python_takes_the_decorator_away_where_it_is_the_only_one():
    once = TEXT.replace("data = data.map(halved)", "")
    source = parsed(once)
    call = py_call(source, 17)
    first, last, text = source.replaced({call: "halved(x, 1.0)"}, bare=True)
    assert (first, last) == (5, 17)
    assert text.split("\n")[0] == "def halved(x, y):"
    assert "self.load(halved(x, 1.0))" in text
    twice = parsed(TEXT)
    assert twice.replaced({py_call(twice, 17): "halved(x, 1.0)"}, bare=True) is None
