"""What grows with each call or epoch in TensorFlow's registry is told, with who makes it; what does not grow is not."""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import sqlite3

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd

MANY = 1100
LARGE = np.ones((1_000_000,), np.float32)


def reward(x):
    return x * 2


@functools.cache
def found_in(program):
    """What is found in a recording of a program, which runs once for all tests that ask."""
    with pfd.record(gil=False, values="none") as recording:
        program()
    found = recording.findings(select=["memory", "doctor-trouble"])
    recording.close()
    return found


def eager_calls():
    x = tf.constant(1.0)
    for _ in range(MANY):
        tf.py_function(reward, [x], tf.float32)


def eager_calls_of_a_lambda():
    total = tf.constant(0.0)
    for _ in range(MANY):
        total = tf.py_function(lambda one: one + 1, [total], tf.float32)


def a_dataset_for_each_epoch():
    def train(epoch):
        table = LARGE + epoch
        for _ in tf.data.Dataset.range(2).map(lambda i: tf.numpy_function(lambda k: table[k], [i], tf.float32)):
            pass

    for epoch in range(4):
        train(epoch)


def a_function_for_each_step():
    def train(step):
        weights = [tf.constant(LARGE), tf.constant(LARGE + step)]

        def apply(x):
            return x * weights[0][0]

        tf.function(lambda x: tf.py_function(apply, [x], tf.float32))(tf.constant(1.0))

    for step in range(3):
        train(step)


@pytest.mark.parametrize(
    ("program", "says", "fix"),
    [
        (eager_calls, "1,100 entries for reward", "reward(x)"),
        (
            eager_calls_of_a_lambda,
            "each eager call of a py_function leaves one",
            "total = tf.cast((lambda one: one + 1)(total), tf.float32)",
        ),
        (a_dataset_for_each_epoch, "MB of arrays in their closures: each time the dataset", "once, before the loop"),
        (a_function_for_each_step, "3 entries for apply", "once, before the loop"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_grows_is_told(program, says, fix):
    (found,) = found_in(program)
    assert (found.rule, found.severity) == ("memory", "warning")
    assert says in found.message
    assert fix in found.fix
    assert found.file == __file__


def test_the_line_is_that_of_the_eager_calls():
    def program():
        tf.function(lambda x: tf.py_function(reward, [x], tf.float32))(tf.constant(1.0))
        eager_calls()
        tf.function(lambda x: tf.py_function(reward, [x], tf.float32))(tf.constant(1.0))

    (found,) = found_in(program)
    assert found.line == eager_calls.__code__.co_firstlineno + 3
    assert found.fix.endswith("\n        tf.cast(reward(x), tf.float32)")


def test_the_pasted_line_grows_nothing():
    (found,) = found_in(eager_calls_of_a_lambda)
    line = ast.parse(found.fix.splitlines()[-1].strip()).body[0]

    def pasted():
        names = {"total": tf.constant(0.0)}
        for _ in range(MANY):
            exec(compile(ast.Module([line], []), "pasted", "exec"), {"tf": tf}, names)
        assert float(names["total"]) == MANY

    assert found_in(pasted) == []


def many_calls_of_one_node():
    step = tf.function(lambda x: tf.py_function(reward, [x], tf.float32))
    for _ in range(MANY):
        step(tf.constant(1.0))


def eager_numpy_function():
    for _ in range(MANY):
        tf.numpy_function(reward, [tf.constant(1.0)], tf.float32)


def a_small_dataset_for_each_epoch():
    scale = np.float32(3)
    for _ in range(4):
        for _ in tf.data.Dataset.range(2).map(lambda i: tf.numpy_function(lambda k: scale, [i], tf.float32)):
            pass


def one_large_table():
    table = np.concatenate([LARGE] * 4)
    for _ in tf.data.Dataset.range(9).map(lambda i: tf.numpy_function(lambda k: table[k], [i], tf.float32)):
        pass


@pytest.mark.parametrize(
    "program",
    [many_calls_of_one_node, eager_numpy_function, a_small_dataset_for_each_epoch, one_large_table],
    ids=lambda one: one.__name__,
)
def test_what_does_not_grow_is_not(program):
    assert [one.message for one in found_in(program)] == []


FRAMES: list[np.ndarray] = []


def keep(i):
    frame = np.full(1_000_000, i, np.float32)
    FRAMES.append(frame)
    return frame[0]


class Cache:
    def __init__(self):
        self.images = {}

    def load(self, i):
        self.images[int(i)] = np.full(1_000_000, i, np.float32)
        return np.float32(1)


class Newest:
    def __init__(self):
        self.recent = {}

    def load(self, i):
        self.recent[int(i)] = np.full(1_000_000, i, np.float32)
        if len(self.recent) > 4:
            self.recent.pop(min(self.recent))
        return np.float32(1)


def loaded(body):
    for _ in tf.data.Dataset.range(5).map(lambda i: tf.numpy_function(body, [i], tf.float32)):
        pass


@pytest.mark.parametrize(
    ("body", "says", "fix"),
    [
        (keep, "keeps 20.0 MB in FRAMES: 5 entries after 5 calls, 4,000.0 kB each", "[:-100]  # keeps the newest 100"),
        (Cache().load, "keeps 20.0 MB in self.images: 5 entries", "if len(self.images) > 100 else None"),
    ],
    ids=["list", "dict"],
)
def test_what_bodies_keep_is_told_with_its_bytes(body, says, fix):
    (found,) = found_in(lambda: loaded(body))
    FRAMES[:] = []
    assert (found.rule, found.confidence) == ("memory", "likely")
    assert says in found.message
    assert fix in found.fix
    assert "1_000_000" in found.fix or "append" in found.fix


def test_what_is_taken_out_again_is_not():
    assert found_in(lambda: loaded(Newest().load)) == []


def growth(counts, resident=0):
    """What was counted, so many each second, while the process grew by so many MB each second."""
    return {
        "columns": ["ns", "calls", "resident_bytes", "entries", "graphs", "tapes"],
        "points": [
            [i * 10**9, i * 100, 10**8 + i * resident * 10**6, *([count] * 3)] for i, count in enumerate(counts)
        ],
    }


def with_growth(program, counts, resident=0, **options):
    """What is found in a recording of a program in which this was counted."""
    with pfd.record(gil=False, values="none", **options) as recording:
        program()
    with contextlib.closing(sqlite3.connect(recording.path)) as file, file:
        file.execute("UPDATE meta SET value = ? WHERE key = 'growth'", (json.dumps(growth(counts, resident)),))
    found = [one for one in recording.findings() if one.rule in ("memory", "leaked-tapes", "function-in-loop")]
    recording.close()
    return found


def functions_in_a_loop():
    for _ in range(7):
        tf.function(lambda x: x + 1)(tf.constant(1.0))


def tapes_that_nobody_asks():
    weights = tf.Variable(LARGE)
    for _ in range(3):
        with tf.GradientTape():
            tf.function(lambda x: tf.py_function(reward, [x], tf.float32))(weights)


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (eager_calls, "entries in all"),
        (functions_in_a_loop, "graphs in memory"),
        (tapes_that_nobody_asks, "tapes kept"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_grows_is_told_with_its_slope(program, what):
    (found,) = with_growth(program, [*range(10, 411, 50)], 20)
    assert f"{what}: 10 after 0 calls, 410 after 800: 0.5 more with each call" in found.evidence
    assert (
        "the process grew by 80 MB in the second half of the recording, steadily: 200.0 kB a call, whoever made it"
        in found.evidence
    )


def test_a_process_that_does_not_grow_steadily_is_not_mentioned():
    (found,) = with_growth(eager_calls, [10, 10, 10, 10, 210])
    assert "entries in all: 10 after 0 calls, 210 after 400" in found.evidence
    assert not [one for one in found.evidence if one.startswith("the process grew")]


def test_graphs_that_went_again_are_not_said_to_stay():
    (gone,) = with_growth(functions_in_a_loop, [1, 1, 1, 1, 1])
    (kept,) = with_growth(functions_in_a_loop, [1, 3, 5, 6, 7])
    assert ("stay in memory" in gone.message, "stay in memory" in kept.message) == (False, True)
