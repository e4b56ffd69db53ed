"""A SavedModel whose Python function is lost runs again, once that is made under the name that the file holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import forked
from tests.doctor.test_failures import apply

BODY = """
import numpy as np
import tensorflow as tf
def peak(x):
    return np.percentile(x, 95, axis=-1).astype(np.float32)
"""
SAVES = (
    BODY
    + """
class Scorer(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def score(self, x):
        return tf.ensure_shape(tf.numpy_function(peak, [x * 2.0], tf.float32), [None]) + 1.0
tf.saved_model.save(Scorer(), "model")
"""
)
LOADS = (
    BODY
    + """
model = tf.saved_model.load("model")
def predict(batch):
    return model.score(tf.constant(batch, tf.float32))
print("scores", predict([[1, 2, 3, 4], [5, 6, 7, 8]]).numpy().round(1).astype("U4").tolist())
"""
)
RECORD = ["-m", "pyfunc_debug", "record", "--overwrite", "-o", "run.pfrec"]


def ran(folder: Path, *options: str) -> tuple[str, str]:
    """What a program printed on stdout and on stderr."""
    done = forked.run(*options, cwd=folder, env={**os.environ, "COLUMNS": "80"})
    return done.stdout, done.stderr


def test_a_saved_model_runs_with_the_function_that_is_made_again_under_its_name(tmp_path):
    (tmp_path / "save.py").write_text(SAVES)
    ran(tmp_path, "save.py")
    program = tmp_path / "load.py"
    program.write_text(LOADS)
    _, said = ran(tmp_path, *RECORD, "load.py")
    told = said[said.index("pyfunc-debug: load.py") :].split("\n\n")[0]
    assert "peak is taken for" in told
    assert apply(told, program)
    out, said = ran(tmp_path, *RECORD, "load.py")
    assert "scores ['8.7', '16.7']" in out
    assert "[serialization]" not in out + said, "it is made for its name: nothing is told of that"


BOTH = """
import sys
import numpy as np
import tensorflow as tf
def peak(x):
    return np.percentile(x, 95, axis=-1).astype(np.float32)
class Scorer(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def score(self, x):
        return tf.ensure_shape(tf.NODE(peak, [x * 2.0], tf.float32), [None]) + 1.0
if sys.argv[1] == "save":
    tf.saved_model.save(Scorer(), "model")
else:
    model = tf.saved_model.load("model")
    print("scores", model.score(tf.constant([[1.0, 2, 3, 4]])).numpy().round(1).astype("U4").tolist())
"""


def test_a_file_that_saves_and_loads_is_pasted_inside_its_branch_and_names_its_own_function(tmp_path):
    program = tmp_path / "both.py"
    program.write_text(BOTH.replace("NODE", "numpy_function"))
    ran(tmp_path, "both.py", "save")
    _, said = ran(tmp_path, *RECORD, "both.py", "load")
    told = said[said.index("pyfunc-debug: both.py") :].split("\n\n")[0]
    assert "line 10 makes a node of it" in " ".join(told.split())
    assert apply(told, program)
    assert "scores ['8.7']" in ran(tmp_path, "both.py", "load")[0]


def test_a_py_function_is_not_registered_as_another_kind_and_no_name_is_pasted_that_is_not_there(tmp_path):
    program = tmp_path / "both.py"
    program.write_text(BOTH.replace("NODE", "py_function"))
    ran(tmp_path, "both.py", "save")
    _, said = ran(tmp_path, *RECORD, "both.py", "load")
    told = said[said.index("pyfunc-debug: both.py") :].split("\n\n")[0]
    assert "Where it is saved (line 10 here)" in " ".join(told.split())
    assert not apply(told, program)


FIRST = """
import numpy as np
import tensorflow as tf
v1 = tf.compat.v1
def sizes(texts):
    return np.array([len(one) for one in texts], np.float32)
with tf.Graph().as_default(), v1.Session() as session:
    texts = v1.placeholder(tf.string, [None])
    MADE
    v1.saved_model.simple_save(session, "model", {"texts": texts}, {"doubled": found * 2.0})
"""
SERVES = """
import tensorflow as tf
predict = tf.saved_model.load("model").signatures["serving_default"]
print(predict(texts=tf.constant(["aab", "bb"])))
"""


@pytest.mark.parametrize("given", ["texts", "tf.strings.lower(texts)"])
def test_what_stands_in_front_of_the_first_op_is_not_to_be_saved(given, tmp_path):
    (tmp_path / "save.py").write_text(FIRST.replace("MADE", f"found = v1.py_func(sizes, [{given}], tf.float32)"))
    ran(tmp_path, "save.py")
    (tmp_path / "serve.py").write_text(SERVES)
    _, said = ran(tmp_path, *RECORD, "serve.py")
    told = " ".join(said[said.index("pyfunc-debug: serve.py") :].split("\n\n")[0].split())
    assert ('save with what it returns as the input in the place of "texts"' in told) == (given == "texts")
    assert ("save up to its inputs" in told) == (given != "texts")
