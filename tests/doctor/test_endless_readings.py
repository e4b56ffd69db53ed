"""Who waits for the end of a dataset that has none is told so: by what takes it all, and what begins again."""

from __future__ import annotations

import contextlib
import sys
import threading

import pytest

from pyfunc_debug.doctor.failures.datasets import endless_readings
from tests.doctor.pasting import pasted, pastes
from tests.doctor.test_endless_epochs import interrupted

HEAD = """import numpy as np
import tensorflow as tf
from tensorflow.keras.preprocessing.image import ImageDataGenerator
images, labels = np.zeros((10, 8, 8, 3), "float32"), np.arange(10)
datagen = ImageDataGenerator(rescale=1 / 255)
kinds, calls = (tf.float32, tf.int64), []
def seen(x, y):
    calls.append(1)
    if len(calls) > 30:
        stop()
    return x, y
"""
MAP = ".map(lambda x, y: tf.numpy_function(seen, [x, y], kinds))"
REDUCED = f"""
def batches():
    found = datagen.flow(images, labels, batch_size=4)
    return found
def count(dataset, share):
    number = dataset.reduce(np.int64(0), lambda n, _: n + 1).numpy()
    return int(number * share), number
data = tf.data.Dataset.from_generator(batches, kinds){MAP}
part, number = count(data, 0.5)
"""
LISTED = f"""
flow = datagen.flow(images, labels, batch_size=4)
class Data:
    def __init__(self):
        self.train = tf.data.Dataset.from_generator(lambda: flow, kinds){MAP}
    def labels(self):
        return np.concatenate([y for _, y in self.train])
number = len(Data().labels())
"""
LOOP = f"""
def make():
    data = tf.data.Dataset.from_generator(get, kinds)
    data = data{MAP}
    return data.prefetch(1)
def get():
    return datagen.flow(images, labels, batch_size=4)
number = 0
for x, y in make():
    number += 1
"""
OWN = f"""
def gen():
    while True:
        yield images, labels
number = sum(1 for _ in tf.data.Dataset.from_generator(gen, kinds){MAP})
"""


def stopped(path, source):
    """What is printed where a program is interrupted in a body, its recording, and its names."""
    path.write_text(source)
    names = {}

    def stop():
        raise KeyboardInterrupt

    names["stop"] = stop
    told, recording = interrupted(path, names)
    return told, recording, names


def known(path, source):
    """What is said while a program goes on."""
    path.write_text(source)
    found = []

    def stop():
        frame = sys._current_frames()[threading.main_thread().ident]
        found.append(endless_readings.going_on(frame, lambda file, line: (file, line)))
        raise KeyboardInterrupt

    names = {"__name__": "__main__", "stop": stop}
    with contextlib.suppress(BaseException):
        exec(compile(path.read_text(), str(path), "exec"), names)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("source", "count"), [(REDUCED, 3), (LISTED, 10), (LOOP, 3)], ids=["reduced", "listed", "loop"]
)
def test_a_generator_of_keras_images_gets_an_end(source, count, tmp_path):
    path = tmp_path / "program.py"
    found = known(path, HEAD + source)
    assert found is not None
    assert "gives Keras' batches of images, which begin again at their end, and so does the dataset" in found.cause
    text = found.text()
    assert pastes(text)
    told, _, names = stopped(path, pasted(HEAD + source, text))
    assert told == ""
    assert names["number"] == count


def test_of_a_loop_of_the_users_own_it_says_what_to_do(tmp_path):
    found = known(tmp_path / "program.py", HEAD + OWN)
    assert "gen (line 13) loops without an end" in found.cause
    assert found.edit is None
    assert "Let gen end after one pass" in found.advice


TAKEN = REDUCED.replace("return found", "return iter([next(found), next(found)] * 50)")
ENDS = (
    REDUCED.replace("dataset.reduce", "dataset.take(90).reduce"),
    TAKEN,
    LOOP.replace("number += 1", "number += 1\n    if number > 90:\n        break"),
    OWN.replace("sum(1", "next(1"),
    OWN.replace("number = sum(1 for _ in", "for _ in").replace(f"{MAP})", f"{MAP}:\n    pass"),
    "try:\n    list(tf.data.Dataset.from_generator(lambda: datagen.flow(images, labels), kinds)" + MAP + ")\n"
    "except ValueError:\n    pass\n",
)


@pytest.mark.parametrize("source", ENDS)
def test_nothing_is_said_of_what_may_end(source, tmp_path):
    assert known(tmp_path / "program.py", HEAD + source) is None
