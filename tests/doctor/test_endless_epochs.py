"""`fit` on data without an end is told while it goes on, and to who interrupts it."""

from __future__ import annotations

import contextlib
import io
import sys

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.doctor.failures.models import endless_epochs, unended_passes
from tests.doctor.pasting import pasted, pastes

HEAD = """import time
import keras
import numpy as np
import tensorflow as tf
x, y = np.ones((16, 2), "float32"), np.ones((16, 1), "float32")
class Enough(keras.callbacks.Callback):
    seen = 0
    def on_train_batch_end(self, batch, logs=None):
        Enough.seen += 1
        if Enough.seen > 20:
            time.sleep(0.5)  # what is prefetched is there: TensorFlow may wait for a generator's call at the end
            raise KeyboardInterrupt
    def on_test_batch_end(self, batch, logs=None):
        self.on_train_batch_end(batch)
def batches():
    while True:
        for i in range(0, 16, 4):
            yield x[i : i + 4], y[i : i + 4]
def some():
    count = 0
    while True:
        count += 1
        if count > 100:
            break
        yield x[:4], y[:4]
data = tf.data.Dataset.from_tensor_slices((x, y))
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""
LINE = """
def prepared(ds):
    ds = ds.shuffle(16)
    ds = ds.repeat()
    return ds.batch(4)
model.fit(prepared(data), epochs=2, verbose=0, callbacks=[Enough()])
"""
CHAIN = """
train = data.shuffle(16).repeat().batch(4)
model.fit(train, epochs=2, verbose=0, callbacks=[Enough()])
"""
LINES = """
train = (
    data.shuffle(16)
    .repeat(-1)
    .batch(4)
)
model.fit(train, epochs=2, verbose=0, callbacks=[Enough()])
"""
VALIDATION = """
train = data.repeat().batch(4)
val = data.batch(4).repeat()
model.fit(train, steps_per_epoch=4, validation_data=val, verbose=0, callbacks=[Enough()])
"""
FIT = "model.fit({}, epochs=30, verbose=0, callbacks=[Enough()])\n"
GENERATOR = FIT.format("batches()")
OF_A_GENERATOR = """
spec = (tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((None, 1), tf.float32))
train = tf.data.Dataset.from_generator(batches, output_signature=spec)
model.fit(train, epochs=2, verbose=0, callbacks=[Enough()])
"""


def interrupted(path, names=None):
    """What is printed where a program is interrupted, if it is, and the recording; its globals go into `names`."""
    names = {} if names is None else names
    names["__name__"] = "__main__"
    told = io.StringIO()
    recording = pfd.record(gil=False)
    with contextlib.redirect_stderr(told), contextlib.suppress(KeyboardInterrupt), recording:
        exec(compile(path.read_text(), str(path), "exec"), names)
    text = told.getvalue()
    return text[text.index("pyfunc-debug: ") :].rstrip("\n") if "pyfunc-debug: " in text else "", recording


@pytest.mark.parametrize("source", [LINE, CHAIN, LINES, VALIDATION], ids=["line", "chain", "lines", "validation"])
def test_who_interrupts_it_reads_which_repeat_it_is_and_without_it_the_epochs_end(source, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + source)
    told, recording = interrupted(path)
    assert "repeats without an end, and no" in " ".join(told.split())
    assert [one.rule for one in recording.findings() if one.severity == "error"] == ["endless-epoch"]
    assert pastes(told)
    path.write_text(pasted(path.read_text(), told))
    told, _ = interrupted(path)
    assert told == ""
    assert ".repeat()" not in path.read_text().replace("train = data.repeat()", "")


@pytest.mark.parametrize("source", [GENERATOR, OF_A_GENERATOR], ids=["generator", "dataset"])
def test_of_a_generator_without_an_end_it_says_what_to_pass(source, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + source)
    told, _ = interrupted(path)
    assert "(line 15) loops without an end, and no steps_per_epoch" in " ".join(told.split())
    assert "Pass steps_per_epoch=..., the number of batches" in " ".join(told.split())


@pytest.mark.parametrize(
    "source",
    [
        FIT.format("data.batch(4)"),
        FIT.format("data.repeat().batch(4), steps_per_epoch=4"),
        FIT.format("some()"),
        FIT.format("x, y"),
        "class Stops(keras.callbacks.Callback):\n    def on_train_batch_end(self, batch, logs=None):\n"
        "        self.model.stop_training = batch > 100\n" + FIT.format("data.repeat().batch(4)"),
    ],
)  # fmt: skip
def test_nothing_is_said_of_what_ends(source, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + source)
    assert interrupted(path)[0] == ""


def test_it_is_known_while_it_goes_on(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD.replace("raise KeyboardInterrupt", "look()") + CHAIN)
    found = []

    def look():
        found.append(endless_epochs.going_on(sys._getframe(), lambda file, line: (file, line)))
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__", "look": look})
    assert found[0].edit.lines == ("train = data.shuffle(16).batch(4)",)


READER = """
class Stops(keras.callbacks.Callback):
    def on_predict_batch_end(self, batch, logs=None):
        if batch > 30:
            time.sleep(0.5)
            raise KeyboardInterrupt
    def on_train_batch_end(self, batch, logs=None):
        self.on_predict_batch_end(batch)
    def on_test_batch_end(self, batch, logs=None):
        self.on_predict_batch_end(batch)
class Reader:
    def __init__(self, epochs):
        self.epochs, self.rows = epochs, 400
    def __iter__(self):
        epoch = 0
        while self.epochs is None or epoch < self.epochs:
            for i in range(self.rows):
                yield np.full((2,), i, "float32"), np.ones((1,), "float32")
            epoch += 1
def rows():
    for i in range(400):
        yield np.full((2,), i, "float32"), np.ones((1,), "float32")
spec = (tf.TensorSpec((2,), tf.float32), tf.TensorSpec((1,), tf.float32))
def made(source):
    return tf.data.Dataset.from_generator(lambda: source, output_signature=spec).batch(4)
stops = [Stops()]
"""
PREDICTED = (
    "reader = Reader(None)\ndata = made(reader)\nout = model.predict(data.map(lambda x, y: x), callbacks=stops)\n"
)
EVALUATED = "model.evaluate(made(Reader(None)).prefetch(2), verbose=0, callbacks=stops)\n"
FITTED = """
def read(limit=None):
    count = 0
    while limit is None or count < limit:
        yield np.ones((2,), "float32"), np.ones((1,), "float32")
        count += 1
model.fit(tf.data.Dataset.from_generator(read, output_signature=spec).batch(4), verbose=0, callbacks=stops)
"""


@pytest.fixture
def soon(monkeypatch):
    """Says it of a pass that is young."""
    monkeypatch.setattr(unended_passes, "LEAST", dict.fromkeys(unended_passes.LEAST, (100, 0.0)))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (PREDICTED, "as no steps says after how many it is over. source (program.py:"),
        (EVALUATED, "evaluate takes batches until the data end"),
        (FITTED, "as no steps_per_epoch says after how many it is over. read (program.py:"),
    ],
    ids=["predict", "evaluate", "fit"],
)
def test_of_a_generator_that_may_never_end_it_says_what_it_gave(source, says, tmp_path, soon):
    path = tmp_path / "program.py"
    path.write_text(HEAD + READER + source)
    told, recording = interrupted(path)
    told = " ".join(told.split())
    assert says in told
    assert "s and has not ended. If it never ends" in told
    assert [one.confidence for one in recording.findings() if one.rule == "endless-epoch"] == ["likely"]


@pytest.mark.parametrize(
    "source",
    [
        "model.predict(tf.data.Dataset.from_generator(rows, output_signature=spec).batch(4), callbacks=stops)",
        "model.predict(made(Reader(None)).take(200), callbacks=stops)",
        "model.predict(made(Reader(None)), steps=200, callbacks=stops)",
        "data = made(Reader(1))\nmodel.predict(data, verbose=0)\nmodel.predict(data, verbose=0, callbacks=stops)",
        "model.predict(np.ones((400, 2)), batch_size=4, callbacks=stops)",
    ],
    ids=["loop", "take", "steps", "second", "array"],
)
def test_nothing_is_said_of_a_pass_that_is_known_to_end(source, tmp_path, soon):
    path = tmp_path / "program.py"
    path.write_text(HEAD + READER + source)
    assert interrupted(path)[0] == ""


def test_nothing_is_said_of_a_pass_that_is_young(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + READER + PREDICTED)
    assert interrupted(path)[0] == ""
