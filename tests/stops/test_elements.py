"""Breakpoints in what makes the elements of a Dataset: generators, iterators, Keras' PyDataset and `fit`."""

from __future__ import annotations

import os
import re
import threading  # noqa: F401 - typed at a prompt

import numpy as np
import pytest

import pyfunc_debug as pfd


def numbers():
    for i in range(3):
        value = i * 2.0
        yield value
        i += 10


class Loader:
    def __iter__(self):
        for i in range(2):
            yield i + 1.0


class Counter:
    def __init__(self):
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        if self.n > 2:
            raise StopIteration
        return float(self.n)


def _line(function, offset):
    return f"{os.path.basename(__file__)}:{function.__code__.co_firstlineno + offset}"


def _elements(tf, generator):
    data = tf.data.Dataset.from_generator(generator, output_signature=tf.TensorSpec([], tf.float32))
    return [float(one) for one in data]


@pytest.mark.parametrize(
    ("generator", "where", "options", "hits"),
    [
        (numbers, "numbers", {}, 4),  # the last call finds the end
        (numbers, "numbers", {"hits": 2}, 4),
        (numbers, "numbers", {"when": "after", "condition": "outputs > 1 and i < 9"}, 2),
        (lambda: numbers(), "numbers", {}, 4),
        (lambda: numbers(), "numbers", {"when": "after"}, 3),
        (lambda: Loader(), "Loader.__iter__" if hasattr(numbers.__code__, "co_qualname") else "__iter__", {}, 3),
        (Counter, "*__next__", {}, 3),
        (Counter, _line(Counter.__next__, 4), {}, 2),
        (lambda: [1.0], "numbers", {}, 0),
    ],
)  # fmt: skip
def test_each_element_of_a_generator_by_name_and_by_line(tf, generator, where, options, hits, capsys):
    stop = pfd.break_on(where, **options)
    stops = hits - options.get("hits", 1) + 1 if hits else 0
    with pfd.answers(*["c"] * stops, "never read") as said:
        _elements(tf, generator)
    stop.remove()
    assert (stop.hits, said.left) == (hits, ["never read"]), said
    assert stop.outcomes["stopped"] == stops
    assert "trouble" not in capsys.readouterr().err


def test_steps_lead_across_a_yield_into_the_call_for_the_next_element(tf):
    stop = pfd.break_on(_line(numbers, 2), once=True)
    with pfd.answers("n", "n", "p i", "n", "n", "n", "s", "s", "n", "c") as said:
        assert _elements(tf, numbers) == [0.0, 2.0, 4.0]
    stop.remove()
    first = numbers.__code__.co_firstlineno
    shown = [int(line) - first for line in re.findall(r"> \S*test_elements\.py\((\d+)\)", str(said))]
    assert (shown, said.left) == ([2, 3, 4, 1, 2, 3, 3, 4, 1], []), said
    assert str(said).count("stepped on after its yield: numbers #") == 2


def _delegating():
    yield from numbers()


def _calling():
    for value in numbers():
        yield value * 1


class Taking(Counter):
    def __init__(self):
        self.source = numbers()

    def __next__(self):
        return next(self.source)


@pytest.mark.parametrize("generator", [_delegating, _calling, lambda: _calling(), Taking])
def test_a_step_over_the_yield_of_a_generator_that_the_body_takes_from_goes_on_behind_it(tf, generator):
    stop = pfd.break_on(_line(numbers, 3), once=True)
    with pfd.answers("n", "p i", "n", "n", "n", "n", "p i", "c", "never read") as said:
        assert _elements(tf, generator) == [0.0, 2.0, 4.0]
    stop.remove()
    first = numbers.__code__.co_firstlineno
    shown = [int(line) - first for line in re.findall(r"> \S*test_elements\.py\((\d+)\)", str(said))]
    assert (shown, said.left) == ([3, 4, 1, 2, 3, 4], ["never read"]), said
    assert str(said).count("stepped on after its yield") == 2


def _asking(start):
    for i in range(int(start) * 10, int(start) * 10 + 2):
        if i == 10:
            breakpoint()
        yield np.float32(i)
        i += 100


def test_a_step_from_a_breakpoint_in_a_generator_leads_past_the_elements_of_another_one(tf):
    stop = pfd.break_on("nothing")
    spec = tf.TensorSpec([], tf.float32)
    each = lambda i: tf.data.Dataset.from_generator(_asking, args=(i,), output_signature=spec)  # noqa: E731
    with pfd.answers("n", "p i", "n", "p i", "c", "never read") as said:
        found = [float(one) for one in tf.data.Dataset.range(3).interleave(each, cycle_length=3)]
    stop.remove()
    assert (found, said.left) == ([0.0, 10.0, 20.0, 1.0, 11.0, 21.0], ["never read"]), said
    assert str(said).count("stepped on after its yield: _asking #") == 1
    assert str(said).count("\n10\n") == 1
    assert "\n110\n" in str(said)


def test_a_condition_on_a_variable_that_a_generator_has_yet_to_set_is_false(tf):
    stop = pfd.break_on("numbers", condition="value == 2")
    wrong = pfd.break_on("numbers", condition="no_name == 2")
    with pfd.answers("disable", "c", "c", "never read") as said:
        _elements(tf, numbers)
    stop.remove()
    wrong.remove()
    assert (stop.hits, stop.condition_errors, wrong.condition_errors) == (1, 0, 1), said
    assert "(there are call, inputs, np, tf)" in str(said)
    assert said.left == ["never read"]


def _fit(tf, data):
    import keras

    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, verbose=0, shuffle=False)


def test_keras_fit_with_a_generator_and_a_py_dataset(tf):
    import keras

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            if i == getattr(self, "bad", None):
                raise ValueError("bad batch")
            x = np.full((2, 3), i, "f")
            return x, x[:, :1]

    def batches():
        data = Batches()
        yield from (data[i] for i in range(4))

    named = pfd.break_on("*Batches.__getitem__", condition="i > 1")
    line = pfd.break_on(_line(Batches.__getitem__, 3))
    with pfd.answers("p i", *["c"] * 8) as said:
        _fit(tf, Batches())
    # Keras takes the first two elements itself, before those of the epoch.
    assert (named.hits, line.hits, said.left) == (2, 6, []), said
    assert "\n0\n" in str(said)
    assert len(set(re.findall(r"__getitem__ #\d+(?= on)", str(said)))) == 6, "each call has a number of its own"
    named.remove()
    line.remove()
    inside = pfd.break_on("*batches")
    # The same; the last call finds the end.
    with pfd.answers(*["c"] * 5, "never read") as said:
        _fit(tf, batches())
    assert (inside.hits, said.left) == (5, ["never read"]), said
    inside.remove()
    threads = pfd.break_on("*Batches.__getitem__", condition="i == 3")
    with pfd.answers("p threading.current_thread().name", "c", "never read") as said:
        _fit(tf, Batches(workers=2))
    assert (threads.hits, said.left) == (1, ["never read"]), said
    threads.remove()

    error = pfd.break_on("*Batches.__getitem__", when="error")
    bad = Batches()
    bad.bad = 3
    with pfd.record(gil=False) as recording, pfd.answers("p i", "c") as said, pytest.raises(tf.errors.OpError):
        _fit(tf, bad)
    error.remove()
    assert "\n3\n" in str(said)
    ledger = str(recording.ledger())
    assert "Batches.__getitem__" in ledger
    assert "generator " in ledger
    (node,) = [node for node in recording.nodes() if node.body.endswith("Batches.__getitem__")]
    assert [call.status for call in recording.calls() if call.node == node.id][:4] == ["ok", "ok", "ok", "error"]
    (found,) = [found for found in recording.findings() if found.node == node.id]
    assert found.message.startswith("ValueError in Batches.__getitem__: once")


def test_what_keras_takes_itself_is_stopped_paused_replaced_and_ended_as_any_call(tf):
    import keras

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            if asks:
                breakpoint()
            x = np.full((2, 3), 1.0 / (i - bad), "f")
            return x, x[:, :1]

    def ones():
        for value in 1.0, 2.0:
            yield np.full((2, 3), value), np.zeros((2, 1))

    asks, bad = True, 7
    before = _keras_functions()
    with pfd.record(gil=False) as recording, pfd.answers(*["c"] * 4) as said:
        _fit(tf, Batches())
    assert str(said).count("--- breakpoint(): Batches.__getitem__") == 4
    assert str(said).count("Batches.__getitem__ on main") == 2, "no number: it would be that of a recorded call"
    assert sum("__getitem__" in node.body for node in recording.nodes()) == 1
    asks, bad = False, 1
    error = pfd.break_on("*Batches.__getitem__", when="error")
    with pfd.answers("p i", "c") as said, pytest.raises(ZeroDivisionError) as raised:
        _fit(tf, Batches())
    assert "\n1\n" in str(said)
    assert "pyfunc_debug" not in str([entry.path for entry in raised.traceback])
    error.remove()
    after = pfd.break_on("*ones", when="after", once=True)
    with pfd.answers("__return__ = np.zeros((2, 7)), __return__[1]", "c"), pytest.raises(Exception, match="7"):
        _fit(tf, ones())
    after.remove()
    quits = pfd.break_on("*ones")
    with pfd.answers("q"), pytest.raises(RuntimeError, match="quit at a pyfunc_debug stop"):
        _fit(tf, ones())
    quits.remove()
    assert _keras_functions() == before


def _keras_functions():
    from keras.src.trainers.data_adapters import generator_data_adapter, py_dataset_adapter

    return (
        py_dataset_adapter.get_index, py_dataset_adapter.PyDatasetAdapter.get_tf_dataset,
        generator_data_adapter.peek_and_restore,
    )  # fmt: skip


def test_a_generator_whose_dataset_was_made_before_the_recording_is_shown(tf):
    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.float32))
    with pfd.record(gil=False) as recording:
        assert len(list(data)) == 3
    ledger = str(recording.ledger())
    assert "numbers" in ledger, ledger
    assert "generator " in ledger, ledger
