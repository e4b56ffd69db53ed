"""What a failing line needs stands in another file, or in another cell; or it is written in another form."""

from __future__ import annotations

import re
import sys

import pytest

from tests.doctor.pasting import run
from tests.doctor.reshaped.engine import Task, outcome
from tests.doctor.test_failures import in_a_notebook

LOSSES = """
import tensorflow as tf

def make_loss(alpha):
    def loss(y_true, y_pred):
        return alpha * tf.reduce_mean(tf.square(y_true - y_pred), -1)
    return loss
"""
TRAINING = """
import numpy as np
from tensorflow import keras
IMPORT
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile("sgd", loss=make_loss)
model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
"""
PIPELINE = """
import numpy as np, tensorflow as tf
def load(path):
    image = tf.io.decode_png(path)
    return tf.image.resize(image, [4, 4])
"""
READING = """
tf.io.write_file(FILE, tf.io.encode_png(np.zeros((8, 8, 3), np.uint8)))
ds = tf.data.Dataset.from_tensor_slices([FILE]).map(load)
print(next(iter(ds)).shape)
"""


IMPORTS = ("from losses_of_test import make_loss", "import losses_of_test\nmake_loss = losses_of_test.make_loss")


@pytest.mark.parametrize("imported", IMPORTS)
def test_a_cause_in_another_file_is_told_with_the_names_and_lines_of_both(imported, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "losses_of_test.py").write_text(LOSSES)
    path = tmp_path / "program.py"
    text = TRAINING.replace("IMPORT", imported)
    path.write_text(text)
    try:
        told = run(path)[1]
    finally:
        del sys.modules["losses_of_test"]
    line = text.split("\n").index('model.compile("sgd", loss=make_loss)') + 1
    assert told.startswith(f"pyfunc-debug: program.py:{line}: ")
    assert "make_loss" in told
    assert set(re.findall(r"\w+\.py:\d+", told)) <= {f"program.py:{line}", "losses_of_test.py:4", "losses_of_test.py:5"}


def test_a_function_in_the_cell_above_is_read_and_its_cell_is_named(tmp_path):
    file = repr(str(tmp_path / "i.png"))
    text, _ = in_a_notebook(READING.replace("FILE", file), PIPELINE.lstrip("\n"))
    assert "Replace cell [1]:3 by:\n    image = tf.io.decode_png(tf.io.read_file(path))" in text


FORMS = (
    # positional arguments by name, and data that are made inside of the call
    ("model.fit(np.random.rand(4, 20).astype('float32'), np.random.rand(20).astype('float32'), verbose=0)", True),
    ("model.fit(x=np.random.rand(4, 20).astype('float32'), y=np.random.rand(20).astype('float32'), verbose=0)", True),
    ("model.fit(drawn(4), np.random.rand(20).astype('float32'), verbose=0)", False),
)
MODEL = """import numpy as np, tensorflow as tf
calls = []
def drawn(rows):
    calls.append(rows)
    return np.random.rand(rows, 20).astype('float32')
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile('sgd', 'mse', run_eagerly=True)
np.random.seed(3)
try:
    FIT
finally:
    after = np.random.rand(), len(calls)
    np.random.seed(3)
    np.random.rand(4, 20), np.random.rand(20)
    assert after == (np.random.rand(), len(calls))
"""


@pytest.mark.parametrize(("fit", "told"), FORMS)
def test_arrays_that_are_made_in_the_call_are_known_by_shape_and_nothing_of_the_users_runs_for_it(fit, told):
    text = MODEL.replace("FIT", fit)
    found = outcome(Task("rows", {"program.py": text}, text, "structure"))
    assert found.verdict == ("told" if told else "untold"), found
    assert "Data cardinality" in found.error
