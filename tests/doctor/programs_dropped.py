"""Programs whose bodies catch exceptions, and whose filters drop elements by what they return: all, or some."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("all-dropped", says="(its `except Exception` at programs_dropped.py:")
def a_loop_without_a_round():
    def load(path):
        try:
            return np.load(path.numpy()).astype("float32"), True
        except Exception:
            return np.zeros(3, "float32"), False

    data = tf.data.Dataset.from_tensor_slices(["no/a.npy", "no/b.npy"])
    data = data.map(lambda x: tf.py_function(load, [x], (tf.float32, tf.bool)))
    for _ in data.filter(lambda x, ok: tf.ensure_shape(ok, [])).batch(2):
        raise AssertionError


@triggers("all-dropped", says="is not there")
def a_fit_without_a_batch():
    def read(path):
        try:
            return np.load(path).astype("float32"), False
        except OSError:
            return np.zeros(3, "float32"), True

    def parsed(path):
        x, failed = tf.numpy_function(read, [path], (tf.float32, tf.bool))
        return tf.ensure_shape(x, [3]), tf.ensure_shape(failed, [])

    data = tf.data.Dataset.from_tensor_slices(["no/b.npy"]).map(parsed).filter(lambda x, failed: tf.logical_not(failed))
    assert not list(data.map(lambda x, failed: x).batch(2))


@triggers("all-dropped", says="caught an exception")
def no_row_that_is_a_number():
    def number(text):
        try:
            return np.float32(float(text)), True
        except ValueError:
            return np.float32(0), False

    data = tf.data.Dataset.from_tensor_slices(["one", "two"])
    data = data.map(lambda x: tf.numpy_function(number, [x], (tf.float32, tf.bool)))
    count = 0
    for _ in data.filter(lambda x, ok: tf.ensure_shape(ok, [])):
        count += 1
    assert not count


@near("all-dropped")
def a_loop_that_gets_some():
    def number(text):
        try:
            return np.float32(float(text.numpy())), True
        except ValueError:
            return np.float32(0), False

    data = tf.data.Dataset.from_tensor_slices(["one", "2"])
    data = data.map(lambda x: tf.py_function(number, [x], (tf.float32, tf.bool)))
    assert len(list(data.filter(lambda x, ok: tf.ensure_shape(ok, [])))) == 1


@near("all-dropped")
def a_loop_over_those_that_failed():
    def tried(text):
        try:
            return np.float32(float(text.numpy())), True
        except ValueError:
            return np.float32(0), False

    data = tf.data.Dataset.from_tensor_slices(["one", "two"])
    data = data.map(lambda x: tf.py_function(tried, [x], (tf.float32, tf.bool)))
    assert len(list(data.filter(lambda x, ok: tf.logical_not(tf.ensure_shape(ok, []))))) == 2


@near("all-dropped")
def a_flag_of_the_value():
    def judged(x):
        try:
            good = bool(x.numpy() > 3)
        except ValueError:
            return x, False
        if good:
            return x, True
        return x, False

    data = tf.data.Dataset.from_tensor_slices([1.0, 2.0])
    data = data.map(lambda x: tf.py_function(judged, [x], (tf.float32, tf.bool)))
    for _ in data.filter(lambda x, ok: tf.ensure_shape(ok, [])):
        raise AssertionError
