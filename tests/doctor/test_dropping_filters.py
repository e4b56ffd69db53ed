"""A filter behind an endless repeat that lets nothing through is told of while its program stands still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

HEAD = """import time
import numpy as np
import tensorflow as tf
begun = []
def waited():
    begun.append(time.monotonic()) if not begun else None
    if time.monotonic() - begun[0] > {seconds}:
        raise RuntimeError("long enough")
"""
PLAIN = """
def load(i):
    waited()
    return np.full(5, i, np.float32)
def is_long(x):
    return tf.shape(x)[0] >= 8
ds = tf.data.Dataset.range(6).map(lambda i: tf.ensure_shape(tf.py_function(load, [i], tf.float32), [5]))
ds = ds.repeat()
ds = ds.filter(is_long).batch(2)
for x in ds.take(3):
    print(x)
"""
PREDICATE = """
def keep(i):
    waited()
    return i > 10
ds = tf.data.Dataset.range(6).repeat()
ds = ds.filter(lambda x: tf.py_function(keep, [x], tf.bool))
ds = ds.map(lambda x: (tf.ones(3), tf.ones(1))).batch(2)
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ds, steps_per_epoch=3, verbose=0)
"""
GENERATOR = """
def rows():
    while True:
        waited()
        yield np.ones(3, np.float32), np.float32([0])
ds = tf.data.Dataset.from_generator(rows, output_signature=(tf.TensorSpec(3), tf.TensorSpec(1)))
first = next(iter(ds.filter(lambda x, y: y[0] > 0)))
"""
SHUFFLED = """
def load(i):
    waited()
    return np.full(5, i, np.float32)
ds = tf.data.Dataset.range(6).map(lambda i: tf.ensure_shape(tf.py_function(load, [i], tf.float32), [5])).repeat()
for x in ds.filter(lambda x: x[0] > 1.0).shuffle(10_000_000):
    print(x)
"""
RARE = """
def load(i):
    waited()
    return i
ds = tf.data.Dataset.range(1000).map(lambda i: tf.py_function(load, [i], tf.int64)).repeat()
for x in ds.filter(lambda x: x % 40 == 0).batch(8):
    time.sleep(0.01)
"""
OFTEN = """
def keep(i):
    waited()
    time.sleep(0.001)
    return i == 5
ds = tf.data.Dataset.range(1000).repeat().filter(lambda x: tf.py_function(keep, [x], tf.bool))
for x in ds.batch(1000):
    print(x)
"""


def told(folder, program, seconds=4):
    (folder / "prog.py").write_text(HEAD.replace("{seconds}", str(seconds)) + program)
    return subprocess.Popen(
        [sys.executable, "-m", "pyfunc_debug", "record", "--hang-after", "1", "prog.py"], cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (PLAIN, ["and the filter by is_long (prog.py:13) has let through nothing", "A result of load: float32[5]"]),
        (
            PREDICATE,
            ["keep (prog.py:10) was False for all", "int64[] 0, int64[] 1, int64[] 2", "repeat() begins"],
        ),
        (GENERATOR, ["rows has yielded", "the filter by the lambda (prog.py:15)", "rows never ends"]),
    ],
)
def test_the_filter_is_named_while_the_program_waits(tmp_path, program, words):
    _, error = told(tmp_path, program).communicate(timeout=100)
    said = " ".join(error[error.index("pyfunc-debug: prog.py") :].split())
    assert "no element has come here yet" in said
    assert all(one in said for one in words), said


@pytest.mark.parametrize("program", [SHUFFLED, RARE, OFTEN])
def test_nothing_is_said_where_elements_come_or_are_gathered(tmp_path, program):
    _, error = told(tmp_path, program).communicate(timeout=100)
    assert "no element has come" not in error


def test_a_second_interrupt_ends_such_a_program(tmp_path):
    process = told(tmp_path, PLAIN, seconds=60)
    for line in process.stderr:
        if "repeat() begins" in line:
            break
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(1.5)
    process.communicate(timeout=20)
    assert process.returncode not in (0, None)
