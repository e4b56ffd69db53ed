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


@triggers("all-dropped", says="'no/a.npy', the first that it is to read, is not there")
def a_generator_that_catches_all():
    def arrays():
        for name in ["a", "b", "c"]:
            try:
                yield np.load(f"no/{name}.npy")
            except Exception:
                continue

    data = tf.data.Dataset.from_generator(arrays, output_signature=tf.TensorSpec((None,), tf.float32))
    assert len(list(data)) == 0


@triggers("all-dropped", says="numbers yielded nothing, in 2 passes, and its `except (ValueError, TypeError)` at")
def a_generator_that_yields_below_its_try():
    texts = ["1,5", "2,5"]

    def numbers():
        for text in texts:
            try:
                number = np.float32(float(text))
            except (ValueError, TypeError) as error:
                print("skipped", error)
                continue
            yield number

    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.float32))
    for _ in range(2):
        assert len(list(data.batch(2))) == 0


@triggers("all-dropped", says="; if it says nothing, the loop in line")
def a_generator_whose_loop_may_have_no_round():
    def arrays():
        for name in sorted(set("")):
            try:
                yield np.load(name)
            except Exception as error:
                print(error)

    data = tf.data.Dataset.from_generator(arrays, output_signature=tf.TensorSpec((None,), tf.float32))
    assert len(list(data)) == 0


@near("all-dropped")
def a_generator_that_leaves_some_out():
    def numbers():
        for text in ["one", "2"]:
            try:
                yield np.float32(float(text))
            except Exception:
                continue

    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.float32))
    assert len(list(data)) == 1


@near("all-dropped")
def a_generator_of_which_all_are_too_small():
    def numbers():
        for text in ["1", "2"]:
            try:
                number = np.float32(float(text))
                if number > 5:
                    yield number
            except Exception:
                continue

    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.float32))
    assert len(list(data)) == 0


@near("all-dropped")
def a_generator_that_ends_with_what_it_takes_from():
    parts = iter([])

    def numbers():
        while True:
            try:
                yield np.float32(next(parts))
            except Exception:
                return

    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.float32))
    assert len(list(data)) == 0
