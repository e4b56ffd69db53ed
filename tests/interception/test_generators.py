"""The user's generators behind Dataset.from_generator: name, line and calls are in the ledger, also after a failure."""

from __future__ import annotations

import pytest
import tensorflow as tf

import pyfunc_debug as pfd


def numbers():
    for number in range(7):
        yield float(number)


class Rows:
    def read(self, count):
        yield from ({"row": number} for number in range(count))


def generators(recording):
    return {
        node.node.body: (node.node.file, node.node.line, node.calls, node.errors)
        for row in recording.ledger().rows
        for node in row.nodes
        if node.generator
    }


def line(function):
    return function.__code__.co_firstlineno


def test_generators_have_their_names_lines_and_calls():
    with pfd.record(gil=False) as recording:
        for _ in tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([])):
            pass
        spec = {"row": tf.TensorSpec([], tf.int32)}
        for _ in tf.data.Dataset.from_generator(Rows().read, args=[3], output_signature=spec):
            pass
        for _ in tf.data.Dataset.from_generator(lambda: iter([1, 2]), tf.int32):
            pass
    found = generators(recording)
    assert found["numbers"] == (__file__, line(numbers), 8, 0)  # the last call finds the end
    assert found["Rows.read"] == (__file__, line(Rows.read), 4, 0)
    assert len(found) == 3
    assert "numbers  generator test_generators.py" in str(recording.ledger())
    assert recording.findings() == []


def test_they_are_there_when_the_program_failed_before():
    def program():
        dataset = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([])).prefetch(1)
        for number in dataset:
            if number > 3:
                dataset.map(lambda x: x.no_such_thing)

    recording = pfd.record(gil=False)
    with pytest.raises(AttributeError), recording:
        program()
    assert generators(recording)["numbers"][2] >= 5


def test_only_generators_of_the_users_are_shown():
    with pfd.record(gil=False) as recording:
        for _ in tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(lambda y: y, [x], tf.int64)):
            pass
    assert generators(recording) == {}
