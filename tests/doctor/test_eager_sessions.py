"""A program for a Session that runs eagerly, or the reverse, is told why. Each has a process: it switches eager off."""

from __future__ import annotations

import os
import sys

import pytest

from tests import forked
from tests.doctor.pasting import pasted, pastes
from tests.limits import LIGHT

ENVIRONMENT = {
    **os.environ,
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONPATH": os.pathsep.join([LIGHT, *filter(None, sys.path)]),
}
PLACEHOLDERS = """
import tensorflow as tf
x = tf.compat.v1.placeholder(tf.float32)
y = tf.py_function(func=lambda v: v ** 2, inp=[x], Tout=tf.float32)
slope = tf.gradients(y, x)[0]
with tf.compat.v1.Session() as sess:
    print(sess.run(slope, feed_dict={x: 3.0}))
"""
EMPTY_GRAPH = """
import tensorflow.compat.v1 as tf
a = tf.constant(3.0)
b = tf.py_func(lambda v: v * 2, [a], tf.float32)
with tf.Session() as sess:
    print(sess.run(b))
"""
FROM_COMPAT = """
from tensorflow.compat import v1
x = v1.placeholder_with_default(3.0, [])
y = v1.placeholder(v1.float32, [])
with v1.Session() as sess:
    print(sess.run(x * y, {y: 2.0}))
"""
OF_VERSION_1 = """
import tensorflow as tf
x = tf.placeholder(tf.float32, [])
w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
y = tf.py_func(lambda v: v * 1, [x * w], tf.float32)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(y, {x: 3.0}))
"""
NO_SESSION = """
import tensorflow as tf
x = tf.constant(3.0)
print(tf.gradients(x * x, x))
"""
OPS = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
def quantization(x):
    power = tf.pow(2.0, 5.0)
    return tf.divide(tf.ceil(tf.scalar_mul(power, x)), power)
def identity(op, grad):
    return grad
tf.RegisterGradient("QuantizationGrad")(identity)
x = tf.constant([[0.11, 0.52], [0.73, 0.94]])
w = tf.Variable([[1.0], [2.0]])
with tf.get_default_graph().gradient_override_map({"PyFunc": "QuantizationGrad"}):
    y = tf.py_func(quantization, [x], [tf.float32])[0]
y.set_shape([2, 2])
loss = tf.reduce_sum(tf.matmul(y, w))
grads = tf.gradients(loss, [x, w])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run([loss] + grads)[0] == 3.875
"""
OPS_BESIDE_NUMPY = """
import numpy as np
import tensorflow as tf
tf.compat.v1.disable_eager_execution()
def centered(x):
    m = tf.reduce_mean(x, axis=0, keepdims=True)
    if tf.reduce_max(x).numpy() > 2.0:
        m = m + 1
    return np.subtract(x, m)
out = tf.numpy_function(centered, [tf.constant([[1.0, 2.0], [3.0, 4.0]])], tf.float32)
with tf.compat.v1.Session() as sess:
    assert sess.run(out).tolist() == [[-2.0, -2.0], [0.0, 0.0]]
"""
TENSOR_AROUND = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
scale = tf.constant(2.0)
def scaled(x):
    return x * scale
out = tf.py_func(scaled, [tf.constant([1.0, 2.0])], tf.float32)
with tf.Session() as sess:
    print(sess.run(out))
"""
KERAS_WITHOUT_EAGER = """
import numpy as np
from tensorflow.python.framework.ops import disable_eager_execution
disable_eager_execution()
import keras
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
print(model.predict(np.ones((1, 4)), verbose=0).shape)
"""


def record(folder, program):
    (folder / "program.py").write_text(program)
    return forked.run("-m", "pyfunc_debug", "record", "--overwrite", "program.py", cwd=folder, env=ENVIRONMENT)


def mended(folder, program, told):
    """What a program does with what is printed pasted; behind an empty line stands the ledger, and what it cost."""
    return record(folder, pasted(program, told.partition("\n\n")[0].rstrip()))


@pytest.mark.parametrize("program", [PLACEHOLDERS, EMPTY_GRAPH, FROM_COMPAT], ids=["placeholders", "empty", "compat"])
def test_the_paste_makes_a_program_for_a_session_run(tmp_path, program):
    failed = record(tmp_path, program)
    assert failed.returncode == 1
    told = failed.stderr[failed.stderr.index("pyfunc-debug: program.py:") :]
    assert "builds a graph for a Session" in " ".join(told.split())
    assert pastes(told)
    ran = mended(tmp_path, program, told)
    assert (ran.returncode, ran.stdout.strip()) == (0, "6.0"), ran.stderr


def test_keras_without_eager_execution_is_told_which_line_switches_it_off(tmp_path):
    failed = record(tmp_path, KERAS_WITHOUT_EAGER)
    told = failed.stderr[failed.stderr.index("pyfunc-debug: program.py:4:") :]
    assert "Replace program.py:4 by:\n# disable_eager_execution()" in told
    ran = mended(tmp_path, KERAS_WITHOUT_EAGER, told)
    assert (ran.returncode, ran.stdout.strip()) == (0, "(1, 2)"), ran.stderr


def test_a_program_of_version_1_gets_its_import(tmp_path):
    told = record(tmp_path, OF_VERSION_1).stderr.partition("pyfunc-debug: ")[2]
    assert "written for TensorFlow 1" in " ".join(told.split())
    ran = mended(tmp_path, OF_VERSION_1, f"pyfunc-debug: {told}")
    assert (ran.returncode, ran.stdout.strip()) == (0, "6.0"), ran.stderr


def test_a_program_without_a_session_is_told_nothing_of_one(tmp_path):
    failed = record(tmp_path, NO_SESSION)
    assert failed.returncode == 1
    assert "Session" not in failed.stderr.partition("pyfunc-debug")[2]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (OPS, "tf.pow, tf.divide and others (lines 6 and 7) only add to a graph"),
        (OPS_BESIDE_NUMPY, "tf.reduce_mean and tf.reduce_max (lines 6 and 7) only add to a graph"),
    ],
    ids=["gradient", "numpy"],
)
def test_ops_in_a_body_that_a_session_runs_are_written_in_numpy(tmp_path, program, says):
    failed = record(tmp_path, program)
    told = failed.stderr[failed.stderr.index("pyfunc-debug: program.py:") :].partition("\nname  (times")[0].rstrip()
    assert says in " ".join(told.split())
    assert record(tmp_path, pasted(program, told)).returncode == 0


def test_what_a_body_reads_around_it_is_no_name_of_the_line_that_runs_the_session(tmp_path):
    told = record(tmp_path, TENSOR_AROUND).stderr
    assert "scale is a tensor of the graph around scaled" in " ".join(told.split())
