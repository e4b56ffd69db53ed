"""A program for a Session that runs eagerly is told why it fails. Each has a process: the paste switches eager off."""

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
NO_SESSION = """
import tensorflow as tf
x = tf.constant(3.0)
print(tf.gradients(x * x, x))
"""


def record(folder, program):
    (folder / "program.py").write_text(program)
    return forked.run("-m", "pyfunc_debug", "record", "--overwrite", "program.py", cwd=folder, env=ENVIRONMENT)


@pytest.mark.parametrize("program", [PLACEHOLDERS, EMPTY_GRAPH, FROM_COMPAT], ids=["placeholders", "empty", "compat"])
def test_the_paste_makes_a_program_for_a_session_run(tmp_path, program):
    failed = record(tmp_path, program)
    assert failed.returncode == 1
    told = failed.stderr[failed.stderr.index("pyfunc-debug: program.py:") :]
    assert "builds a graph for a Session" in " ".join(told.split())
    assert pastes(told)
    mended = record(
        tmp_path, pasted(program, told.partition("\nname  (times")[0].partition("\nrecorded in")[0].rstrip())
    )
    assert (mended.returncode, mended.stdout.strip()) == (0, "6.0"), mended.stderr


def test_a_program_without_a_session_is_told_nothing_of_one(tmp_path):
    failed = record(tmp_path, NO_SESSION)
    assert failed.returncode == 1
    assert "Session" not in failed.stderr.partition("pyfunc-debug")[2]
