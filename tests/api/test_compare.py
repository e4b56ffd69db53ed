"""`compare` finds the planted difference, says what it cannot isolate, and leaves the program as it was."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.interception import names as tensorflow_names

X = tf.constant([1.0, 2.0])


def plus_one(v):
    return v + 1.0


def twice(v):
    return v * 2.0


def node(body, x):
    return tf.ensure_shape(tf.py_function(body, [x], tf.float32), x.shape)


def test_equal_functions_agree_call_by_call():
    @tf.function
    def step(x):
        x = node(plus_one, x)
        for _ in tf.range(3):
            x = node(twice, x)
        if tf.reduce_sum(x) > 10.0:
            x = tf.ensure_shape(tf.numpy_function(plus_one, [x], tf.float32), [2])
        else:
            x = tf.ensure_shape(tf.numpy_function(twice, [x], tf.float32), [2])
        return x

    found = pfd.compare(step, X, gradients=False)
    assert found.equal, str(found)
    assert [(row.body, row.number, row.status) for row in found.calls] == [
        ("plus_one", 1, "equal"), ("twice", 1, "equal"), ("twice", 2, "equal"), ("twice", 3, "equal"),
        ("plus_one", 1, "equal"),
    ]  # fmt: skip
    assert found.left.duration_ns
    assert found.right.duration_ns
    assert found.left.trace_ns
    assert found.right.trace_ns is None
    assert "agree" in str(found)
    assert "agree" in found._repr_html_()


def test_first_difference_names_call_line_and_both_values():
    def body(v):
        return v + (1.0 if threading.current_thread() is threading.main_thread() else 2.0)

    @tf.function
    def step(x):
        x = node(twice, x)
        return node(body, x)

    found = pfd.compare(step, X)
    assert not found.equal
    first = found.first
    assert (first.body, first.number, first.status) == (
        "test_first_difference_names_call_line_and_both_values.body", 1, "different",
    )  # fmt: skip
    line = node.__code__.co_firstlineno + 1
    assert first.source_line == f"test_compare.py:{line}"
    (value,) = [value for value in first.values if value.status == "different"]
    assert value.role == "output"
    assert "4" in value.left
    assert "3" in value.right
    assert value.largest == 1.0
    assert found.outputs[0].status == "different"
    assert "first differ in call 1 of" in str(found)


def test_a_gradient_that_differs_in_the_graph_is_found():
    @tf.custom_gradient
    def wrong(x):
        graph = not tf.executing_eagerly()
        return x * 1.0, lambda dy: dy * (2.0 if graph else 1.0)

    weight = tf.Variable(3.0)

    @tf.function
    def step(x):
        return wrong(x) * weight

    found = pfd.compare(step, X)
    assert {value.path.split(" ")[0]: value.status for value in found.gradients} == {
        "args[0]": "different", weight.name: "equal",
    }  # fmt: skip
    assert found.outputs[0].status == "equal"
    assert found.first.role == "gradient"
    assert pfd.compare(step, X, gradients=False).equal


def test_variables_are_put_back():
    count, table = tf.Variable(5.0), tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        count.assign_add(1.0)
        table.scatter_nd_update([[0]], [9.0])
        return x * count

    found = pfd.compare(step, X)
    assert found.equal, str(found)
    assert count.numpy() == 5.0
    assert list(table.numpy()) == [1.0, 2.0]


def test_python_state_that_changes_once_or_each_time_is_said():
    seen = []

    class Counter:
        number = 0

    counter = Counter()
    counter.number = 0

    @tf.function
    def step(x):
        seen.append(1)
        counter.number += 1
        return x

    found = pfd.compare(step, X)
    assert found.equal
    assert (
        "Python state `seen` changes each time it runs eagerly; as a graph it changed once, when traced" in found.notes
    )
    assert any("`counter.number`" in note for note in found.notes)


def test_python_state_of_a_method_and_of_a_layer_is_said():
    class Module(tf.Module):
        def __init__(self):
            self.steps = 0

        @tf.function
        def step(self, x):
            self.steps += 1
            return x

    class Layer(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.steps = 0

        def call(self, x):
            self.steps += 1
            return x

    module = Module()
    for thing, name in ((module.step, "self.steps"), (Layer(), "Layer.steps")):
        assert pfd.compare(thing, X).notes == (
            f"Python state `{name}` changes each time it runs eagerly; as a graph it changed once, when traced",
        )


def test_random_numbers_are_said_and_states_put_back():
    @tf.function
    def step(x):
        return x + tf.random.uniform([]) + np.random.rand() + random.random()

    random.seed(3)
    np.random.seed(3)
    before = random.getstate(), np.random.get_state()[1].tolist()
    found = pfd.compare(step, X)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    text = " ".join(found.notes)
    assert "TensorFlow's random numbers" in text
    assert "random is drawn from each time eagerly" in text
    assert "numpy.random is drawn from" in text


def test_numpy_random_in_bodies_gets_the_same_stream():
    def noisy(v):
        return v + np.random.rand(2).astype(np.float32)

    @tf.function
    def step(x):
        return tf.ensure_shape(tf.numpy_function(noisy, [x], tf.float32), [2])

    assert pfd.compare(step, X, gradients=False).equal


def test_errors_of_either_side_are_results():
    @tf.function
    def makes_variable(x):
        return tf.Variable(x) + 1.0

    found = pfd.compare(makes_variable, X)
    assert found.left.error
    assert found.right.error is None
    assert not found.equal
    assert "end differently" in str(found)

    @tf.function
    def gathers(x):
        return tf.gather(x, tf.constant(5))

    found = pfd.compare(gathers, X)
    assert found.left.error.startswith("InvalidArgumentError")
    assert found.right.error.startswith("InvalidArgumentError")
    assert found.right.where == f"test_compare.py:{gathers.python_function.__code__.co_firstlineno + 2}"


def test_a_failure_is_told_in_its_own_words_whatever_tensorflow_wrapped_it_in():
    def body(v):
        raise ValueError("not this one")

    @tf.function
    def in_a_body(x):
        return tf.py_function(body, [x], tf.float32)

    @tf.function
    def in_an_array_body(x):
        return tf.numpy_function(body, [x], tf.float32)

    @tf.function
    def in_the_trace(x):
        return {}["missing"]

    @tf.function
    def in_the_trace_too(x):
        return {}["another"]

    for function, said, line in (
        (in_a_body, "ValueError: not this one", body.__code__.co_firstlineno + 1),
        (in_an_array_body, "ValueError: not this one", body.__code__.co_firstlineno + 1),
        (in_the_trace, "KeyError: 'missing'", in_the_trace.python_function.__code__.co_firstlineno + 2),
    ):
        found = pfd.compare(function, X)
        assert (found.left.error, found.right.error) == (said, said)
        assert found.left.where == found.right.where == f"test_compare.py:{line}"
        assert "both fail, in the same way" in str(found)
    assert "both fail, differently" in str(pfd.compare(in_the_trace, X, against=in_the_trace_too))

    @tf.function
    def in_the_graph(x):
        return tf.gather(x, tf.cast(x[0], tf.int32) + 5)

    found = pfd.compare(in_the_graph, X)
    assert "Graph execution error" not in found.left.error
    assert found.left.error.startswith("InvalidArgumentError: indices")
    assert found.left.where == found.right.where


def test_pruned_stateless_nodes_are_not_called_different():
    @tf.function
    def step(x):
        tf.numpy_function(plus_one, [x], tf.float32, stateful=False)
        return x

    found = pfd.compare(step, X)
    assert found.equal
    assert [(row.status, row.left) for row in found.calls] == [("unknown", None)]
    assert "optimised it away" in found.calls[0].note


def test_signatures_and_numpy_arguments_are_converted_for_both():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def signed(x):
        return x + tf.cast(x.dtype.size, tf.float32)

    assert pfd.compare(signed, [1.0, 2.0]).equal

    @tf.function
    def plain(x):
        return x.shape[0] + tf.reduce_sum(x)

    assert pfd.compare(plain, np.ones(3)).equal


def test_against_compares_two_functions_by_their_outputs_and_calls():
    def left(x):
        return node(twice, x) + 1.0

    @tf.function
    def right(x):
        return node(twice, x * 1.0) + 1.5

    found = pfd.compare(left, X, against=right)
    assert (found.left.name, found.right.name) == ("left", "right")
    assert [row.status for row in found.calls] == ["equal", "equal"]  # forward and gradient
    assert found.first.role == "output"
    assert pfd.compare(left, X, against=lambda x: x * 2.0 + 1.0, gradients=False).outputs[0].status == "equal"


def test_the_backward_graph_is_built_outside_of_what_is_timed(monkeypatch):
    events = []

    class Clock:
        @staticmethod
        def monotonic_ns():
            events.append("clock")
            return 0

    @tf.custom_gradient
    def doubled(x):
        def backward(upstream):
            events.append("built")
            return 2.0 * upstream

        return 2.0 * x, backward

    monkeypatch.setattr("pyfunc_debug.api.compare.time", Clock)
    pfd.compare(tf.function(lambda x: doubled(x)), X)
    assert events[:5] == ["clock", "clock", "built", "clock", "clock"]  # traced; built; the graph's run


def test_other_threads_keep_running_graphs():
    executed = []

    @tf.function
    def other(x):
        executed.append(1)
        return x + 1.0

    @tf.function
    def step(x):
        return x * 2.0

    other(X)
    executed.clear()
    done = threading.Event()

    def work():
        while not done.is_set():
            other(X)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(3):
        assert pfd.compare(step, X).equal
    done.set()
    thread.join()
    assert executed == []


def test_the_switch_is_put_back_by_identity():
    kind = tensorflow_names.load().function_type
    before = vars(kind)["_run_functions_eagerly"]
    during = []

    @tf.function
    def step(x):
        during.append(vars(kind)["_run_functions_eagerly"])
        return x

    pfd.compare(step, X)
    assert during[-1] is not before
    assert vars(kind)["_run_functions_eagerly"] is before


def test_it_refuses_inside_a_graph():
    @tf.function
    def outer(x):
        pfd.compare(twice, x)
        return x

    with pytest.raises(Exception, match="while a graph is being built"):  # AutoGraph wraps it
        outer(X)
    with tf.Graph().as_default(), pytest.raises(pfd.PyfuncDebugError, match="while a graph is being built"):
        pfd.compare(twice, 1.0)
    with pytest.raises(pfd.PyfuncDebugError, match="not callable"):
        pfd.compare(3, X)


def test_it_works_while_recording():
    @tf.function
    def step(x):
        return node(twice, x)

    with pfd.record(values="full", gil=False) as recording:
        found = pfd.compare(step, X)
        assert found.equal
    assert len(list(recording.calls("twice"))) >= 3


def test_a_keras_layer_is_made_a_graph_and_compared():
    layer = tf.keras.layers.Dense(3)
    assert pfd.compare(layer, tf.ones([2, 4])).equal


def test_the_callers_tensor_and_what_the_function_captures_are_left_alone_by_a_body_that_writes():
    captured, table = tf.constant([1.0, 2.0]), np.ones(2, np.float32)

    def writes(v):
        v += 1.0
        table[0] += 1.0
        return v

    @tf.function
    def step(x):
        return node_of(writes, x) + node_of(writes, captured)

    def node_of(body, x):
        return tf.ensure_shape(tf.numpy_function(body, [x], tf.float32), x.shape)

    given = tf.constant([5.0, 6.0])
    found = pfd.compare(step, given, gradients=False)
    assert (given.numpy().tolist(), captured.numpy().tolist(), table.tolist()) == ([5.0, 6.0], [1.0, 2.0], [1.0, 1.0])
    notes = " ".join(found.notes)
    assert "writes` (test_compare.py:" in notes
    assert "writes into its input `v`" in notes
    assert "keeps state in `table`" in notes


def test_a_frozen_random_number_is_not_equal_though_no_value_differs():
    @tf.function
    def step(x):
        return x * np.random.rand()

    for _ in range(2):  # the second time the graph is there already
        found = pfd.compare(step, X)
        assert found.frozen == ("numpy.random",)
        assert not found.equal
    np.random.seed(3)
    found = pfd.compare(tf.function(step.python_function), X)
    assert found.first is None
    assert "graph and eager agree here, but random numbers are frozen in the graph" in str(found)


def test_each_value_says_which_run_it_is_of():
    @tf.function
    def step(x):
        return x + (1.0 if tf.executing_eagerly() else 2.0)

    lines = str(pfd.compare(step, X, gradients=False)).splitlines()
    (graph,) = [line for line in lines if line.strip().startswith("graph  float32")]
    (eager,) = [line for line in lines if line.strip().startswith("eager  float32")]
    assert "[3, 4]" in graph
    assert "[2, 3]" in eager


def test_ragged_sparse_and_string_arguments_are_copied_too():
    @tf.function
    def step(ragged, words, sparse):
        return tf.reduce_sum(ragged) + tf.sparse.reduce_sum(sparse), tf.strings.length(words)

    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    sparse = tf.sparse.from_dense([[0.0, 4.0]])
    found = pfd.compare(step, ragged, tf.constant(["a", "bc"]), sparse, gradients=False)
    assert found.equal, str(found)
