"""Small programs as users write them: those that must lead to a finding, and those that come near and must not.

One process runs them all, each in a recording of its own. A program may fail: what it raises is caught outside of its
recording, as a terminal would.
"""
# ruff: noqa: B023, N803

from __future__ import annotations

import datetime
import functools
import os
import random
import tempfile
import threading
import time
import uuid

import keras
import numpy as np
import tensorflow as tf

import pyfunc_debug as pfd
from tests.limits import HANG_S

TRIGGERS: list[tuple[str, object, dict]] = []
NEAR: list[tuple[str, object, dict]] = []


def triggers(rule, **options):
    """The program must lead to this finding."""

    def keep(program):
        TRIGGERS.append((rule, program, options))
        return program

    return keep


def near(rule, **options):
    """The program must not."""

    def keep(program):
        NEAR.append((rule, program, options))
        return program

    return keep


def tried(call, *args):
    try:
        return call(*args)
    except (tf.errors.OpError, ValueError, TypeError, AttributeError):
        return None


def mapped(body, data, Tout=tf.float32, **options):
    dataset = tf.data.Dataset.from_tensor_slices(data)
    return dataset.map(lambda x: tf.numpy_function(body, [x], Tout), **options)


def mapped_eager(body, data, Tout=tf.float32, **options):
    dataset = tf.data.Dataset.from_tensor_slices(data)
    return dataset.map(lambda x: tf.py_function(body, [x], Tout), **options)


# -- nan-born, inf-born -----------------------------------------------------------------------------------------------


@triggers("nan-born", pastes=True)
def entropy_of_a_zero():
    def entropy(p):
        return -np.sum(p * np.log(p)).astype("float32")

    with np.errstate(all="ignore"):
        list(mapped(entropy, np.array([[0.5, 0.5], [0.0, 1.0], [0.2, 0.8]], np.float32)))


@triggers("nan-born")
def normalize_a_constant_row():
    def normalize(x):
        return (x - tf.reduce_mean(x)) / tf.math.reduce_std(x)

    @tf.function
    def step(x):
        return tf.py_function(normalize, [x], tf.float32)

    for row in ([1.0, 2.0], [3.0, 3.0], [0.0, 5.0]):
        step(tf.constant(row))


@triggers("nan-born")
def root_of_a_negative():
    def distance(x):
        return np.sqrt(1.0 - x * x).astype("float32")

    with np.errstate(all="ignore"):
        for x in (0.1, 0.9, 1.1):
            tf.numpy_function(distance, [tf.constant(x)], tf.float32)


@triggers("inf-born")
def ratio_of_a_zero():
    def ratio(a, b):
        return (a / b).astype("float32")

    with np.errstate(all="ignore"):
        for b in (1.0, 2.0, 0.0):
            tf.numpy_function(ratio, [tf.constant([1.0]), tf.constant([b])], tf.float32)


@triggers("inf-born", pastes=True)
def exponential_overflow():
    @tf.function
    def step(x):
        return tf.py_function(lambda x: tf.exp(x), [x], tf.float32)

    for x in (1.0, 50.0, 100.0):
        step(tf.constant(x))


@triggers("inf-born")
def logarithm_of_an_empty_bin():
    def histogram(x):
        return np.log(np.bincount(x, minlength=4).astype(np.float32))

    with np.errstate(all="ignore"):
        list(mapped(histogram, np.array([[0, 1, 2, 3], [0, 0, 1, 2]], np.int64)))


@near("nan-born")
def padding_with_nan():
    def pad(x):
        out = np.full(5, np.nan, np.float32)
        out[: len(x)] = x
        return out

    list(mapped(pad, np.ones((20, 3), np.float32)))


@near("nan-born")
def padding_by_a_helper():
    missing = float("nan")

    def pad(x):
        return np.concatenate([x, np.full(2, missing, np.float32)])

    list(mapped(pad, np.ones((20, 3), np.float32)))


@near("nan-born")
def nan_that_came_in():
    def double(x):
        return x * 2

    list(mapped(double, np.array([[1.0], [np.nan]], np.float32)))


def quotient(a, b):
    with np.errstate(all="ignore"):
        return (a / b).astype(np.float32)


@near("nan-born")
def nan_that_is_masked_after_the_node():
    def clean(a, b):
        ratio = tf.numpy_function(quotient, [a, b], tf.float32)
        return tf.where(tf.math.is_finite(ratio), ratio, 0.0)

    zeros = np.zeros((3, 2), np.float32)
    list(tf.data.Dataset.from_tensor_slices((zeros, zeros)).map(clean))


@near("inf-born")
def infinity_that_is_masked():
    @tf.function
    def total(a, b):
        ratio = tf.ensure_shape(tf.numpy_function(quotient, [a, b], tf.float32), [3])
        return tf.reduce_sum(tf.boolean_mask(ratio, tf.math.is_finite(ratio)))

    total(tf.ones([3]), tf.constant([1.0, 0.0, 2.0]))


@triggers("inf-born", says="Inf")
def infinity_that_drops_an_element():
    data = tf.data.Dataset.from_tensor_slices(np.array([1.0, 0.0, 2.0], np.float32))
    data = data.map(lambda x: tf.numpy_function(quotient, [1.0, x], tf.float32))
    list(data.filter(lambda x: tf.math.is_finite(x)))


@triggers("nan-born", says="NaN")
def nan_beside_a_test_that_replaces_nothing():
    zeros = np.zeros((3, 2), np.float32)
    for row in tf.data.Dataset.from_tensor_slices((zeros[:1], zeros[:1])).map(
        lambda a, b: tf.numpy_function(quotient, [a, b], tf.float32)
    ):
        tried(tf.debugging.check_numerics, row, "the ratio")


@near("inf-born")
def mask_with_infinity():
    def mask(x):
        return np.where(x > 0.5, x, -np.inf).astype(np.float32)

    list(mapped(mask, np.random.rand(20, 4).astype(np.float32)))


@near("inf-born")
def infinity_that_came_in():
    list(mapped(lambda x: x + np.float32(1), np.array([[1.0], [np.inf]], np.float32)))


@near("inf-born")
def bounded_ratio():
    def ratio(a, b):
        return (a / np.maximum(b, 1e-6)).astype("float32")

    for b in (1.0, 0.0):
        tf.numpy_function(ratio, [tf.constant([1.0]), tf.constant([b])], tf.float32)


# -- none-gradient ----------------------------------------------------------------------------------------------------


@triggers("none-gradient", pastes=True)
def loss_in_numpy():
    def loss(y):
        return tf.constant(np.sum(y.numpy() ** 2))

    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = tf.py_function(loss, [x * w], tf.float32)
        return tape.gradient(value, w)

    step(tf.constant([1.0, 2.0]))


@triggers("none-gradient", pastes=True)
def prediction_through_numpy_beside_a_weight():
    def layer(x, w):
        return tf.constant(x.numpy()) * w

    v, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = tf.py_function(layer, [x * v, w * 1.0], tf.float32)
        return tape.gradient(value, [v, w])

    step(tf.constant([1.0, 2.0]))


@triggers("none-gradient")
def a_python_float():
    def scale(x):
        return tf.constant(float(tf.reduce_sum(x)) * 2)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.py_function(scale, [x], tf.float32)
        return tape.gradient(value, x)

    step(tf.constant([1.0, 2.0]))


@near("none-gradient")
def a_body_of_drawn_data():
    w = tf.Variable(tf.ones([4, 1]))

    def clipped(x):
        return np.clip(x.numpy(), -1, 1)

    @tf.function
    def score(x):
        y = tf.ensure_shape(tf.py_function(clipped, [x], tf.float32), [None, 4])
        return tf.matmul(y, w)

    for _ in range(3):
        x = tf.random.normal([8, 4], seed=1)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(score(x) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))


@near("none-gradient")
def labels_are_not_differentiated():
    def loss(labels, predictions):
        return tf.reduce_mean((labels.numpy() - predictions) ** 2)

    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x, labels):
        with tf.GradientTape() as tape:
            value = tf.py_function(loss, [labels, x * w], tf.float32)
        return tape.gradient(value, w)

    step(tf.constant([1.0, 2.0]), tf.constant([1.0, 3.0]))


@near("none-gradient")
def a_hyperparameter_is_not_differentiated():
    def smooth(x, alpha):
        return x * float(alpha)

    w = tf.Variable(2.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = tf.py_function(smooth, [x * w, tf.constant(0.9)], tf.float32)
        return tape.gradient(value, w)

    step(tf.constant(1.0))


@near("none-gradient")
def everything_is_differentiable():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tf.py_function(lambda x: tf.reduce_sum(x * x), [x], tf.float32)
    tape.gradient(value, x)


# -- leaked-tapes -----------------------------------------------------------------------------------------------------


def forward_under_a_tape(elements, steps=1, gradient=False):
    @tf.function
    def forward(x):
        return tf.py_function(lambda x: x * 2, [x], tf.float32)

    x = tf.ones([elements])
    for _ in range(steps):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = forward(x)
        if gradient:
            tape.gradient(y, x)


@near("leaked-tapes")
def one_small_tape_at_the_end():
    forward_under_a_tape(2)


@near("leaked-tapes")
def every_tape_is_used():
    forward_under_a_tape(5_000_000, 2, gradient=True)


@near("leaked-tapes")
def inference_without_a_tape():
    for _ in range(3):
        tf.py_function(lambda x: x * 2, [tf.ones([2_000_000])], tf.float32)


@triggers("leaked-tapes", pastes=True)
def one_large_tape():
    forward_under_a_tape(5_000_000)


@triggers("leaked-tapes")
def inference_under_the_training_tape():
    for _ in range(4):
        forward_under_a_tape(500_000)


@triggers("leaked-tapes")
def eager_forward_under_a_tape():
    x = tf.ones([3_000_000])
    with tf.GradientTape() as tape:
        tape.watch(x)
        tf.py_function(lambda x: x + 1, [x], tf.float32)


# -- body-raised ------------------------------------------------------------------------------------------------------


@triggers("body-raised", severity="error", ends_with=tf.errors.InvalidArgumentError, says="ignore_errors(log_warning=")
def a_bad_record_ends_the_program():
    def parse(x):
        if x == 7:
            raise ValueError("bad record")
        return x

    list(tf.data.Dataset.range(10).map(lambda x: tf.numpy_function(parse, [x], tf.int64)))


@triggers("body-raised", severity="error", ends_with=tf.errors.InvalidArgumentError, says="by a filter before batch")
def a_bad_row_in_a_batch():
    def parse(rows):
        if 7 in rows:
            raise ValueError("bad record")
        return rows

    list(tf.data.Dataset.range(10).batch(2).map(lambda x: tf.numpy_function(parse, [x], tf.int64)).prefetch(1))


@triggers("body-raised", severity="error", ends_with=tf.errors.InvalidArgumentError, says="is a batch of size there")
def a_bad_row_in_a_batch_of_statements():
    def parse(rows):
        if (rows == 7).any():
            raise ValueError("bad record")
        return rows

    size = 4
    rows = tf.data.Dataset.range(10)
    batches = rows.padded_batch(size)
    if size > 2:
        batches = batches.prefetch(1)
    list(batches.map(lambda x: tf.numpy_function(parse, [x], tf.int64)))


@triggers("body-raised", severity="error", ends_with=tf.errors.InvalidArgumentError, says="ignore_errors(log_warning=")
def a_bad_row_of_batches_that_were_taken_apart():
    def parse(x):
        if x == 7:
            raise ValueError("bad record")
        return x

    rows = tf.data.Dataset.range(10).batch(2).unbatch()
    list(rows.map(lambda x: tf.numpy_function(parse, [x], tf.int64)).batch(2))


@triggers("body-raised", ends_with=tf.errors.InvalidArgumentError, says=": img is int64[4, 4], scale is 2")
def a_picture_without_channels():
    def load(i):
        img, scale = np.ones((4, 4) if i == 2 else (4, 4, 3), np.int64), 2
        img = img.transpose(1, 0, 2) * scale
        return img

    list(tf.data.Dataset.range(5).map(lambda i: tf.numpy_function(load, [i], tf.int64)))


@triggers(
    "body-raised", ends_with=tf.errors.InvalidArgumentError, says="float32[2, 5], and float32[2, 3] in the 3 calls"
)
def an_input_of_another_size():
    def times(x):
        return x @ np.ones((3, 1), np.float32)

    step = tf.function(lambda x: tf.numpy_function(times, [x], tf.float32), input_signature=[tf.TensorSpec((2, None))])
    for size in (3, 3, 3, 5):
        step(tf.ones((2, size)))


@triggers("body-raised", ends_with=tf.errors.InvalidArgumentError, says="refuses.read: once")
def a_library_that_refuses():
    def read(x):
        return np.linalg.inv(np.zeros((2, 2)) * x)

    list(tf.data.Dataset.from_tensors(3).map(lambda x: tf.numpy_function(read, [x], tf.float64)))


@triggers(
    "body-raised", pastes=True, ends_with=tf.errors.InvalidArgumentError,
    says="The body was given cost with NaN in 1 of its numbers, which line",
)  # fmt: skip
def a_cost_that_a_logarithm_made_nan():
    def assign(cost):
        if np.isnan(cost).any():
            raise ValueError("matrix contains invalid numeric entries")
        return cost.argmin(axis=-1)

    @tf.function
    def match(targets, scores):
        cost = -targets * tf.math.log(scores)
        return tf.numpy_function(assign, [cost], tf.int64)

    match(tf.constant([[0.0, 1.0]]), tf.constant([[0.0, 0.5]]))


@triggers(
    "body-raised", ends_with=tf.errors.InvalidArgumentError,
    says="infinity in 1 of its numbers, made in front of it",
)  # fmt: skip
def an_infinity_of_a_division():
    def checked(x):
        if not np.isfinite(x).all():
            raise ValueError("not finite")
        return x

    @tf.function
    def ratio(a, b):
        return tf.numpy_function(checked, [a / b], tf.float32)

    ratio(tf.constant([1.0, 2.0]), tf.constant([0.0, 1.0]))


@triggers("body-raised", severity="note")
def a_retry():
    calls = iter(range(100))

    def flaky(x):
        if next(calls) % 3 == 2:
            raise OSError("temporary")
        return x

    @tf.function
    def fetch(x):
        return tf.py_function(flaky, [x], tf.float32)

    for _ in range(6):
        if tried(fetch, tf.constant(1.0)) is None:
            fetch(tf.constant(1.0))


@triggers("body-raised", severity="note")
def elements_that_are_skipped():
    def parse(x):
        if x % 4 == 0:
            raise ValueError("bad record")
        return x

    list(tf.data.Dataset.range(20).map(lambda x: tf.numpy_function(parse, [x], tf.int64)).ignore_errors())


# -- stop-iteration ---------------------------------------------------------------------------------------------------


@triggers("stop-iteration", says="`names = itertools.cycle(...)` in line", pastes=True)
def an_iterator_without_a_default():
    names = iter(["a", "b"])
    tried(list, tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(lambda _: next(names), [x], tf.string)))


@near("stop-iteration")
def a_generator_that_ends():
    def numbers():
        yield from range(3)

    list(tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64)))


# -- trace-failed -----------------------------------------------------------------------------------------------------


@triggers("trace-failed", severity="note")
def numpy_of_a_symbolic_tensor_in_map():
    def parse(x):
        return x.numpy() * 2

    tried(tf.data.Dataset.range(3).map, parse)


@triggers("trace-failed", severity="error", ends_with=KeyError)
def a_key_that_is_missing():
    rates = {"low": 0.1}

    @tf.function
    def step(x):
        y = x + 1
        return y * rates["high"]

    step(tf.constant(1.0))


@triggers("trace-failed", severity="error", ends_with=NameError)
def a_name_that_does_not_exist():
    @tf.function
    def step(x):
        if x > 0:
            return x * scale  # noqa: F821 - that is the point
        return x

    step(tf.constant(1.0))


@near("trace-failed")
def a_function_that_works_with_what_it_is_for():
    @tf.function
    def mean(x):
        return tf.reduce_mean(x)

    mean(tf.constant([1.0, 2.0]))
    tried(mean, "not an image")


@near("trace-failed")
def a_run_that_fails():
    @tf.function
    def step(x):
        tf.debugging.assert_positive(x)
        return x

    tried(step, tf.constant(-1.0))


# -- retrace ----------------------------------------------------------------------------------------------------------


@triggers("retrace", pastes=True)
def a_python_number_changes():
    @tf.function
    def step(x, rate):
        return x * rate

    for i in range(6):
        step(tf.constant(1.0), 0.1 * i)


@triggers("retrace", says="tf.int64", pastes=True)
def the_step_of_a_summary_changes():
    writer = tf.summary.create_noop_writer()

    @tf.function
    def train(x, step):
        with writer.as_default():
            tf.summary.write("loss", tf.reduce_sum(x), step=step)
        return x * 2

    for i in range(12):
        train(tf.ones([3]), i)


@triggers("retrace", pastes=True)
def a_shape_changes():
    @tf.function
    def total(x):
        return tf.reduce_sum(x)

    for n in range(1, 8):
        total(tf.ones([n]))


@triggers("retrace")
def a_python_string_changes():
    @tf.function
    def log(x, name):
        return tf.py_function(lambda x: x, [x], tf.float32)

    for name in "abcdef":
        log(tf.constant(1.0), name)


@triggers("retrace", pastes=True)
def two_python_numbers_change():
    @tf.function
    def step(x, rate, decay):
        return x * rate - decay

    for i in range(6):
        step(tf.constant(1.0), 0.1 * i, decay=i / 7)


@triggers("retrace", pastes=True)
def a_python_number_and_a_shape_change():
    @tf.function
    def step(x, rate):
        return tf.reduce_sum(x) * rate

    for i in range(1, 8):
        step(tf.ones([i]), 0.5 * i)


@triggers("retrace", pastes=True, says="is not proven")
def a_model_for_images_of_all_sizes():
    class Detector:
        def __init__(self):
            self.model = keras.Sequential([keras.Input((None, None, 3)), keras.layers.GlobalAveragePooling2D()])

        @tf.function
        def find(self, image):
            return self.model(image)

    detector = Detector()
    for step in range(5):
        detector.find(np.zeros((1, 4 + step, 4 + step, 3), np.float32))


@triggers("retrace", says="tf.constant(t, tf.float32)", pastes=True)
def a_number_of_the_step_beside_floats():
    w = tf.Variable(1.0)

    @tf.function
    def learn(batch, t):
        return tf.reduce_sum(batch) * w + t

    for t in range(8):
        learn(tf.ones([4]), t)


@triggers("retrace", says="pick(x, tf.constant(i, tf.int32))", pastes=True)
def an_index_of_a_tensor():
    @tf.function
    def pick(x, i):
        return x[i]

    x = tf.constant(np.arange(12.0))
    for i in range(8):
        pick(x, i)


@triggers("retrace", says="{'rate': tf.constant(n * 0.1, tf.float32)}".replace("'", '"'), pastes=True)
def a_number_in_a_dict():
    @tf.function
    def step(x, config):
        return x * config["rate"]

    for n in range(8):
        step(tf.constant([1.0]), {"rate": n * 0.1})


@triggers("retrace", says='tf.constant(f"step {n}", tf.string)', pastes=True)
def a_text_that_is_printed():
    @tf.function
    def step(x, name):
        tf.print(name, output_stream="file://" + os.devnull)
        return x

    for n in range(8):
        step(tf.constant([1.0]), f"step {n}")


@triggers("retrace", says="as tensor")
def an_index_of_a_list():
    rates = [0.1 * n for n in range(8)]

    @tf.function
    def step(x, n):
        return x * rates[n]

    for n in range(8):
        step(tf.constant([1.0]), n)


@near("retrace")
def training_and_evaluation():
    @tf.function
    def step(x, training):
        return x * 2 if training else x

    for training in (True, False):
        for n in (4, 3):
            step(tf.ones([n]), training) if n == 4 else step(tf.ones([4]), training)


@near("retrace")
def a_relaxed_signature():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def total(x):
        return tf.reduce_sum(x)

    for n in range(1, 8):
        total(tf.ones([n]))


@near("retrace")
def buckets_with_many_runs():
    @tf.function
    def total(x):
        return tf.reduce_sum(x)

    for _ in range(20):
        for n in (2, 4, 8, 16, 32):
            total(tf.ones([n]))


@triggers("function-in-loop")
def a_function_made_in_a_loop():
    for i in range(8):

        @tf.function
        def step(x):
            return x + i

        step(tf.constant(1.0))


@triggers("function-in-loop", pastes=True)
def a_lambda_made_in_a_loop():
    for _ in range(8):
        tf.function(lambda x: x * 2)(tf.constant(1.0))


@triggers("function-in-loop", pastes=True)
def a_function_made_by_each_call():
    def predict(x):
        @tf.function
        def run(x):
            return tf.py_function(lambda x: x + 1, [x], tf.float32)

        return run(x)

    for _ in range(7):
        predict(tf.constant(1.0))


@near("function-in-loop")
def one_function_for_each_model():
    def make(scale):
        @tf.function
        def step(x):
            return x * scale

        return step

    for step in [make(scale) for scale in range(3)]:
        for _ in range(20):
            step(tf.constant(1.0))


@near("function-in-loop")
def one_function_called_in_a_loop():
    @tf.function
    def step(x):
        return x + 1

    for _ in range(10):
        step(tf.constant(1.0))


@near("function-in-loop")
def methods_of_a_few_objects():
    class Model:
        @tf.function
        def call(self, x):
            return x + 1

    for model in [Model() for _ in range(6)]:
        model.call(tf.constant(1.0))


@triggers("dataset-in-loop", pastes=True)
def a_dataset_for_each_epoch():
    for _ in range(7):
        list(tf.data.Dataset.range(3).map(lambda x: x + 1))


@near("dataset-in-loop")
def one_dataset_iterated_again():
    dataset = tf.data.Dataset.range(3).map(lambda x: x + 1)
    for _ in range(7):
        list(dataset)


# -- empty-recording --------------------------------------------------------------------------------------------------


@triggers("empty-recording")
def a_dataset_that_nobody_iterates():
    tf.data.Dataset.range(3).map(lambda x: tf.py_function(lambda x: x, [x], tf.int64))


@triggers("empty-recording", says="for element in images: ...")
def a_dataset_with_a_name_that_nobody_iterates():
    images = tf.data.Dataset.range(3).map(lambda x: tf.py_function(lambda x: x, [x], tf.int64))
    assert images is not None


@triggers("empty-recording", says="step(...)  # a tf.function runs when it is called")
def a_function_that_is_only_traced():
    @tf.function
    def step(x):
        return tf.py_function(lambda x: x, [x], tf.float32)

    step.get_concrete_function(tf.TensorSpec([]))


@triggers("empty-recording")
def a_stateless_node_without_a_consumer():
    @tf.function
    def step(x):
        tf.numpy_function(lambda x: x, [x], tf.float32, stateful=False)
        return x + 1

    step(tf.constant(1.0))


@triggers("empty-recording", says="for element in numbers: ...")
def a_generator_that_nobody_iterates():
    def count():
        yield from range(5)

    numbers = tf.data.Dataset.from_generator(count, tf.int64, ())
    print(numbers)


@near("empty-recording")
def one_generator_of_two_that_is_iterated():
    def count():
        yield from range(5)

    numbers = tf.data.Dataset.from_generator(count, tf.int64, ())
    others = tf.data.Dataset.from_generator(lambda: iter(range(3)), tf.int64, ())
    print(numbers)
    assert len(list(others)) == 3


@near("empty-recording")
def a_generator_whose_elements_are_kept_in_a_file():
    def count():
        yield from range(5)

    folder = tempfile.mkdtemp()
    kept = tf.data.Dataset.from_generator(count, tf.int64, ()).cache(os.path.join(folder, "kept"))
    print(kept)


@near("empty-recording")
def a_branch_that_is_not_taken():
    @tf.function
    def step(x):
        if x > 0:
            return tf.py_function(lambda x: x, [x], tf.float32)
        return tf.py_function(lambda x: -x, [x], tf.float32)

    step(tf.constant(1.0))


@near("empty-recording")
def what_xla_cannot_compile():
    @tf.function(jit_compile=True)
    def step(x):
        return tf.py_function(lambda x: x, [x], tf.float32)

    tried(step, tf.constant(1.0))


@near("empty-recording")
def no_python_at_all():
    tf.reduce_sum(tf.ones([3]))


# -- wrong-tape, missing-tape -----------------------------------------------------------------------------------------


def square_node():
    return tf.function(lambda x: tf.py_function(lambda x: x * x, [x], tf.float32))


@triggers("wrong-tape", ends_with=tf.errors.UnknownError, pastes=True)
def one_node_called_twice():
    square, a, b = square_node(), tf.constant(2.0), tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = square(a) + square(b)
    tape.gradient(y, [a, b])


@triggers("missing-tape", ends_with=tf.errors.UnknownError, pastes=True)
def a_jacobian():
    @tf.function
    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.ensure_shape(tf.py_function(lambda x: x * x, [x], tf.float32), [3])
        return tape.jacobian(y, x)

    jacobian(tf.constant([1.0, 2.0, 3.0]))


@near("missing-tape")
def one_gradient_after_each_call():
    square = square_node()
    for value in (2.0, 5.0):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = square(x)
        tape.gradient(y, x)


@triggers("variable-no-input", pastes=True)
def a_variable_by_closure():
    w = tf.Variable(2.0, name="kernel")

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda x: x * w, [x], tf.float32)
        return tape.gradient(y, x)

    step(tf.constant(1.0))


@near("variable-no-input")
def a_variable_as_an_input():
    w = tf.Variable(2.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.py_function(lambda x, w: x * w, [x, w], tf.float32)
        return tape.gradient(y, w)

    step(tf.constant(1.0))


# -- writes-input, reused-memory --------------------------------------------------------------------------------------


@triggers("writes-input", says="x = x.copy()", pastes=True)
def adds_in_place():
    def shift(x):
        x += 1
        return x

    tf.numpy_function(shift, [tf.constant([1.0, 2.0])], tf.float32)


@triggers("writes-input")
def writes_an_element():
    def blank(image):
        image[0] = 0
        return image

    list(mapped(blank, np.ones((3, 4), np.float32)))


@triggers("writes-input")
def sorts_or_shuffles():
    def shuffled(x):
        np.random.shuffle(x)
        return x

    @tf.function
    def step(x):
        return tf.numpy_function(shuffled, [x], tf.float32)

    step(tf.constant([1.0, 2.0, 3.0]))


@triggers("writes-input", pastes=True)
def writes_by_out():
    def scale(x):
        np.multiply(x, 2, out=x)
        return x

    tf.numpy_function(scale, [tf.constant([1.0, 2.0])], tf.float32)


@near("writes-input")
def copies_first():
    def shift(x):
        x = x.copy()
        x += 1
        return x

    tf.numpy_function(shift, [tf.constant([1.0, 2.0])], tf.float32)


@near("writes-input")
def adds_to_a_number():
    def shift(x):
        x += 1
        return x

    tf.numpy_function(shift, [tf.constant(1.0)], tf.float32)


@near("writes-input")
def writes_into_a_new_array():
    def pad(x):
        out = np.zeros(5, np.float32)
        out[: len(x)] = x
        out.sort()
        return out

    tf.numpy_function(pad, [tf.constant([1.0, 2.0])], tf.float32)


@near("writes-input")
def an_eager_tensor_is_bound_anew():
    def shift(x):
        x += 1
        return x

    tf.py_function(shift, [tf.constant([1.0, 2.0])], tf.float32)


BUFFER = np.zeros(2, np.float32)


@triggers("reused-memory", says="return BUFFER.copy()")
def a_global_buffer():
    def fill(x):
        BUFFER[:] = x
        return BUFFER

    list(mapped(fill, np.ones((3, 2), np.float32)))


@triggers("reused-memory")
def a_buffer_by_closure():
    frame = np.zeros((2, 2), np.float32)

    def render(x):
        frame.fill(x)
        return frame

    for x in (1.0, 2.0):
        tf.numpy_function(render, [tf.constant(x)], tf.float32)


@triggers("reused-memory", pastes=True)
def one_of_several_results():
    stack = np.zeros(3, np.float32)

    def push(x):
        stack[1:] = stack[:-1]
        stack[0] = x
        return x, stack

    @tf.function
    def step(x):
        return tf.numpy_function(push, [x], [tf.float32, tf.float32])

    for x in (1.0, 2.0):
        step(tf.constant(x))


@near("reused-memory")
def a_copy_of_the_buffer():
    def fill(x):
        BUFFER[:] = x
        return BUFFER.copy()

    list(mapped(fill, np.ones((3, 2), np.float32)))


@near("reused-memory")
def a_table_that_stays_as_it_is():
    table = np.arange(4, dtype=np.float32)

    def look_up(x):
        return table

    list(mapped(look_up, np.ones((3, 2), np.float32)))


@near("reused-memory")
def a_new_array_each_time():
    def fill(x):
        out = np.empty(2, np.float32)
        out[:] = x
        return out

    list(mapped(fill, np.ones((3, 2), np.float32)))


# -- constant-output, saturated, range-jump ---------------------------------------------------------------------------


def different(rows, *shape):
    return np.random.default_rng(0).random((rows, *shape)).astype(np.float32)


@triggers("constant-output")
def an_input_that_is_not_used():
    def encode(x):
        return np.sin(np.arange(6, dtype=np.float32))

    list(mapped(encode, different(20, 6)))


@triggers("constant-output")
def a_result_multiplied_by_zero():
    def features(x):
        return x * np.float32(0)

    list(mapped(features, different(20, 6)))


@triggers("constant-output")
def a_model_that_always_says_the_same():
    bias = tf.constant([0.1, 0.9])

    @tf.function
    def predict(x):
        return tf.py_function(lambda x: bias + 0 * tf.reduce_sum(x), [x], tf.float32)

    for x in different(15, 4):
        predict(tf.constant(x))


@near("constant-output")
def a_reward_of_zero():
    list(mapped(lambda x: np.float32(0), different(20, 6)))


@near("constant-output")
def the_same_for_the_same_input():
    list(mapped(lambda x: x * 2, np.ones((20, 6), np.float32)))


@near("constant-output")
def a_few_calls():
    list(mapped(lambda x: np.ones(3, np.float32), different(5, 6)))


@triggers("saturated", pastes=True)
def a_sigmoid_of_pixels():
    def squash(x):
        return tf.sigmoid(x)

    list(mapped_eager(squash, (different(20, 50) - 0.5) * 2000))


@triggers("saturated", pastes=True)
def a_hyperbolic_tangent_of_pixels():
    def squash(x):
        return np.tanh(x)

    list(mapped(squash, (different(20, 50) - 0.5) * 2000))


@triggers("saturated")
def clipped_pixels():
    def brighten(x):
        return np.clip(x * 40000 - 20000, 0, 255).astype(np.float32)

    list(mapped(brighten, different(20, 50)))


@near("saturated")
def a_position_that_is_cut_to_whole_numbers():
    place = [0]

    def step(action):
        place[0] = int(np.clip(place[0] + (1 if action > 0 else -1), 0, 4))
        return np.eye(5, dtype=np.float32)[place[0]]

    for action in range(20):
        tf.numpy_function(step, [tf.constant(action % 3 - 1)], tf.float32)


@near("saturated")
def a_one_hot_label():
    list(mapped(lambda x: (x == x.max()).astype(np.float32), different(20, 50)))


@near("saturated")
def a_sigmoid_of_small_numbers():
    list(mapped_eager(lambda x: tf.sigmoid(x), different(20, 50)))


@near("saturated")
def clipped_but_rarely():
    list(mapped(lambda x: np.clip(x, 0, 1), different(20, 50) * 1.05))


@triggers("range-jump", says="It came in: x is up to ")
def one_image_that_was_not_scaled():
    data = different(30, 5)
    data[17] *= 1e5
    list(mapped(lambda x: x * 2, data))


@triggers("range-jump", says="It was made here: no input of that call is much larger")
def a_division_by_almost_nothing():
    def ratio(x):
        return (x / max(float(x[0]) - 0.5, 1e-7)).astype(np.float32) if x[0] > 0.49 else x

    data = np.full((40, 3), 0.2, np.float32)
    data[20] = 0.5
    list(mapped(ratio, data))


@triggers("range-jump", says="like it). x is up to 20 in that call, and 0.15 otherwise")
def a_loss_that_explodes_once():
    @tf.function
    def step(x):
        return tf.py_function(lambda x: tf.exp(x), [x], tf.float32)

    for x in (0.1, 0.2, 0.1, 0.3, 0.2, 0.1, 0.1, 0.2, 0.1, 0.3, 20.0):
        step(tf.constant(x))


@near("range-jump")
def values_of_two_sizes():
    data = different(30, 5)
    data[::2] *= 1e5
    list(mapped(lambda x: x * 2, data))


@near("range-jump")
def a_spread_within_reason():
    list(mapped(lambda x: x * 2, np.geomspace(1, 500, 40, dtype=np.float32)[:, None]))


@near("range-jump")
def zeros_and_then_numbers():
    data = np.zeros((30, 3), np.float32)
    data[15:] = 1.0
    list(mapped(lambda x: x * 2, data))


# -- shared-state, parallel-random, trace-only ------------------------------------------------------------------------


def together(body, Tout=tf.float32):
    """Two calls of a body that run at once: each waits until the other has begun."""
    return (
        tf.data.Dataset.from_tensor_slices(different(2, 3))
        .map(lambda x: tf.numpy_function(body, [x], Tout), num_parallel_calls=2, deterministic=False)
        .with_options(_pool())
    )


def _pool():
    options = tf.data.Options()
    options.threading.private_threadpool_size = 4
    return options


@triggers("shared-state", pastes=True)
def a_nonlocal_counter():
    both = threading.Barrier(2)
    seen = 0

    def count(x):
        nonlocal seen
        both.wait(HANG_S)
        seen += 1
        return x

    list(together(count))


@triggers("shared-state")
def a_counter_in_a_dictionary():
    both, state = threading.Barrier(2), {"n": 0}

    def count(x):
        both.wait(HANG_S)
        state["n"] += 1
        return x

    list(together(count))


@triggers("shared-state", pastes=True)
def a_counter_of_an_object():
    class Augment:
        def __init__(self):
            self.n, self.both = 0, threading.Barrier(2)

        def count(self, x):
            self.both.wait(HANG_S)
            self.n += 1
            return x

    list(together(Augment().count))


@near("shared-state")
def a_counter_behind_a_lock():
    both, lock, state = threading.Barrier(2), threading.Lock(), {"n": 0}

    def count(x):
        both.wait(HANG_S)
        with lock:
            state["n"] += 1
        return x

    list(together(count))


@near("shared-state")
def a_counter_of_one_call_at_a_time():
    state = {"n": 0}

    def count(x):
        state["n"] += 1
        return x

    list(mapped(count, different(5, 3)))


@near("shared-state")
def a_local_sum():
    both = threading.Barrier(2)

    def total(x):
        both.wait(HANG_S)
        n = 0
        for value in x:
            n += value
        return np.float32(n)

    list(together(total))


@triggers("parallel-random")
def noise_from_the_global_generator():
    both = threading.Barrier(2)
    np.random.seed(7)

    def noisy(x):
        both.wait(HANG_S)
        return x + np.random.normal(size=x.shape).astype(np.float32)

    list(together(noisy))


@triggers("parallel-random", says="default_rng([seed, index])  # in the body")
def a_shift_of_many_numbers():
    both = threading.Barrier(2)
    np.random.seed(7)

    def moved(x):
        both.wait(HANG_S)
        return np.roll(x, np.random.randint(1, 4))

    list(together(moved))


@near("parallel-random")
def noise_from_a_generator_of_its_own():
    both = threading.Barrier(2)

    def noisy(x):
        both.wait(HANG_S)
        return x + np.random.default_rng(3).normal(size=x.shape).astype(np.float32)

    list(together(noisy))


@near("parallel-random")
def a_generator_of_its_own_that_is_called_random():
    both = threading.Barrier(2)
    np.random.seed(7)

    def noisy(x):
        both.wait(HANG_S)
        random = np.random.default_rng([7, int(x.sum())])
        return x + random.normal(size=x.shape).astype(np.float32)

    list(together(noisy))


@near("parallel-random")
def noise_in_one_call_at_a_time():
    np.random.seed(7)
    list(mapped(lambda x: x + np.random.normal(size=x.shape).astype(np.float32), different(5, 3)))


@triggers("trace-only", says="once", pastes=True)
def a_counter_in_a_tf_function():
    steps = {"n": 0}

    @tf.function
    def step(x):
        steps["n"] += 1
        return x + 1

    for _ in range(5):
        step(tf.constant(1.0))


@triggers("trace-only", pastes=True)
def a_history_in_a_tf_function():
    history = []

    @tf.function
    def step(x):
        loss = x * 2
        history.append(loss)
        return loss

    for _ in range(5):
        step(tf.constant(1.0))


@triggers("trace-only")
def a_nonlocal_in_a_tf_function():
    best = None

    @tf.function
    def step(x):
        nonlocal best
        best = x
        return x + 1

    for _ in range(5):
        step(tf.constant(1.0))


@near("trace-only")
def a_variable_in_a_tf_function():
    steps = tf.Variable(0)

    @tf.function
    def step(x):
        steps.assign_add(1)
        return x + 1

    for _ in range(5):
        step(tf.constant(1.0))


@near("trace-only")
def a_local_list_in_a_tf_function():
    @tf.function
    def step(x):
        parts = []
        for i in range(3):
            parts.append(x + i)  # noqa: PERF401 - as users write
        return tf.add_n(parts)

    for _ in range(5):
        step(tf.constant(1.0))


@near("trace-only")
def a_history_in_a_body():
    history = []

    @tf.function
    def step(x):
        return tf.py_function(lambda x: history.append(float(x)) or x, [x], tf.float32)

    for _ in range(5):
        step(tf.constant(1.0))


@near("trace-only")
def a_helper_that_a_body_calls():
    kept = []

    def keep_for_later(x):
        kept.append(float(x))

    @tf.function
    def step(x):
        tf.py_function(lambda x: keep_for_later(x), [x], [])
        return x + 1

    for _ in range(5):
        step(tf.constant(1.0))


# -- stale-closure ----------------------------------------------------------------------------------------------------

RATE = 0.1


@triggers("stale-closure", says="`rate` was 0.1 when TensorFlow traced", pastes=True)
def a_learning_rate_that_decays_outside_of_the_graph():
    rate = 0.1

    @tf.function
    def decay(x):
        return x * rate

    for _ in range(3):
        decay(tf.constant(1.0))
        rate *= 0.5


@triggers("stale-closure", says="`RATE` was 0.1 when")
def a_global_read_by_a_helper():
    global RATE

    def scaled(x):
        return x * RATE

    @tf.function
    def step(x):
        return scaled(x)

    step(tf.constant(1.0))
    RATE = 0.2
    step(tf.constant(1.0))
    RATE = 0.1


@triggers("stale-closure", says="`self.scale` was a tensor of 1. when TensorFlow traced", pastes=True)
def a_tensor_of_an_object_that_changes():
    class Scaler:
        def __init__(self):
            self.scale = tf.constant(1.0)

        @tf.function
        def step(self, x):
            return x * self.scale

    scaler = Scaler()
    for _ in range(3):
        scaler.step(tf.constant(2.0))
        scaler.scale = scaler.scale * 0.5


@triggers("stale-closure", says="`layer.bias` was a tensor of 0. when")
def a_tensor_that_a_helper_reads():
    class Holder:
        bias = tf.constant(0.0)

    layer = Holder()

    def biased(x):
        return x + layer.bias

    @tf.function
    def step(x):
        return biased(x)

    step(tf.constant(1.0))
    layer.bias = tf.constant(2.0)
    step(tf.constant(1.0))


@triggers("stale-closure", says="`self.amount` was a tensor of 0. when Keras traced")
def a_tensor_of_a_layer_that_changes_between_fits():
    class Shift(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.amount = tf.constant(0.0)

        def call(self, x):
            return x + self.amount

    layer = Shift()
    model = keras.Sequential([keras.Input((2,)), layer, keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
    x, y = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)
    model.fit(x, y, verbose=0)
    layer.amount = tf.constant(5.0)
    model.fit(x, y, verbose=0)


@triggers("stale-closure", says="`mask` was a tensor of [1., 0., 1.] when", pastes=True)
def a_mask_that_is_made_again():
    mask = tf.constant([1.0, 0.0, 1.0])

    @tf.function
    def masked(x):
        return x * mask

    for number in range(3):
        masked(tf.ones([3]))
        mask = tf.constant([0.0, 1.0, float(number)])


@near("stale-closure")
def tensors_that_are_made_again_alike_or_asked_for_their_shape():
    ones, big = tf.ones([3]), tf.zeros([100, 100])

    @tf.function
    def scaled(x):
        return x * ones if big.shape[0] > 10 else x

    for _ in range(3):
        scaled(tf.ones([3]))
        ones, big = tf.ones([3]), tf.ones([200, 2])


@triggers("stale-closure", says="self.scaled(x, rate=self.rate)", pastes=True)
def a_number_of_a_module_that_is_trained():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.rate, self.weight = 0.5, tf.Variable(1.0)

        @tf.function
        def scaled(self, x):
            return x * self.weight * tf.constant(self.rate)

        def loss(self, x):
            return tf.square(self.scaled(x) - 1.0)

    model = Model()
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = model.loss(tf.constant(1.0))
        model.weight.assign_sub(0.1 * tape.gradient(loss, model.weight))
    model.rate = 0.0
    model.loss(tf.constant(1.0))


@triggers("stale-closure", says="`self.training` was True", pastes=True)
def a_flag_of_a_module():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.training = True

        @tf.function
        def call(self, x):
            return x * 0.5 if self.training else x

    model = Model()
    model.call(tf.constant(1.0))
    model.training = False
    model.call(tf.constant(1.0))


@near("stale-closure")
def a_value_that_changes_before_another_function_is_traced():
    for scale in (1.0, 2.0, 3.0):
        tf.function(lambda x: x * scale)(tf.constant(1.0))


@near("stale-closure")
def a_counter_of_traces():
    traces = 0

    @tf.function
    def step(x):
        nonlocal traces
        traces += 1
        return x + 1.0

    step(tf.constant(1.0))
    step(tf.constant([1.0]))
    step(tf.constant(1.0))
    assert traces == 2


@near("stale-closure")
def a_value_that_the_body_reads_at_each_call():
    scale = 1.0

    @tf.function
    def step(x):
        def body(v):
            return v * np.float32(scale)

        return tf.numpy_function(body, [x], tf.float32)

    for _ in range(3):
        step(tf.constant(1.0))
        scale += 1.0
    assert step(tf.constant(1.0)) == 4.0


@near("stale-closure")
def a_value_that_changes_after_the_last_run():
    k = 2

    @tf.function
    def step(x):
        return x * k

    step(tf.constant(1.0))
    k = 3
    assert k == 3


ROWS_OF_FOUR = (np.ones((8, 4), np.float32), np.ones((8, 1), np.float32))


def dense_of_four():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])


@triggers("stale-closure", pastes=True)
def a_weight_that_a_callback_raises():
    class Regular(keras.Model):
        def __init__(self):
            super().__init__()
            self.weight = 0.0
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                z = self(x)
                loss = tf.reduce_mean((z - y) ** 2) + self.weight * tf.reduce_mean(z**2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    class Anneal(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.weight = min(1.0, epoch / 2)
            print(f"weight {self.model.weight:.1f}")

    model = Regular()
    model.compile("sgd")
    model.fit(*ROWS_OF_FOUR, epochs=3, verbose=0, callbacks=[Anneal()])


@triggers("stale-closure", pastes=True)
def a_loss_whose_share_fades():
    alpha = 1.0

    def faded(y_true, y_pred):
        return alpha * tf.reduce_mean(tf.square(y_true - y_pred)) + (1.0 - alpha) * tf.reduce_mean(tf.abs(y_pred))

    class Fade(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            nonlocal alpha
            alpha *= 0.5

    model = dense_of_four()
    model.compile("sgd", loss=faded)
    model.fit(*ROWS_OF_FOUR, epochs=3, verbose=0, callbacks=[Fade()])


@triggers("stale-closure", pastes=True)
def a_layers_scale_that_a_loop_sets():
    class Noise(keras.layers.Layer):
        def __init__(self, scale):
            super().__init__()
            self.scale = scale

        def call(self, x, training=False):
            if training:
                return x + self.scale * tf.random.normal(tf.shape(x))
            return x

    noise = Noise(2.0)
    model = keras.Sequential([keras.Input((4,)), noise, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    for epoch in range(3):
        noise.scale = 2.0 / (epoch + 1)
        model.fit(*ROWS_OF_FOUR, verbose=0)


@triggers("stale-closure")
def a_number_of_rounds_in_a_layer():
    class Repeated(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.steps = 1

        def call(self, x):
            for _ in range(self.steps):
                x = x * 0.5
            return x

    repeated = Repeated()
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1), repeated])
    model.compile("sgd", "mse")
    model.fit(*ROWS_OF_FOUR, verbose=0)
    repeated.steps = 3
    model.fit(*ROWS_OF_FOUR, verbose=0)


@near("stale-closure")
def numbers_of_a_model_that_its_steps_do_not_read():
    class Counted(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense, self.epoch_now, self.seen = keras.layers.Dense(1), 0, 0

        def call(self, x):
            return self.dense(x)

        def report(self):
            return self.epoch_now + self.seen

    class Count(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.epoch_now = epoch
            self.model.seen += 1
            self.model.optimizer.learning_rate = 0.1 / (epoch + 1)

    model = Counted()
    model.compile("sgd", "mse")
    model.fit(*ROWS_OF_FOUR, epochs=3, verbose=0, callbacks=[Count()])
    assert model.report() == 5


@near("stale-closure")
def a_weight_in_a_model_that_runs_eagerly():
    weight = 1.0

    def weighted(y_true, y_pred):
        return weight * tf.reduce_mean(tf.square(y_true - y_pred))

    model = dense_of_four()
    model.compile("sgd", loss=weighted, run_eagerly=True)
    for _ in range(2):
        model.fit(*ROWS_OF_FOUR, verbose=0)
        weight *= 0.5


@near("stale-closure")
def a_weight_that_each_compile_traces():
    weight = 1.0

    def weighted(y_true, y_pred):
        return weight * tf.reduce_mean(tf.square(y_true - y_pred))

    model = dense_of_four()
    for _ in range(2):
        model.compile("sgd", loss=weighted)
        model.fit(*ROWS_OF_FOUR, verbose=0)
        weight *= 0.5


# -- output-contract, slow-conversion ---------------------------------------------------------------------------------


@triggers("output-contract", severity="error", says="np.asarray([1.0, 2.0, 3.0], np.float32)", pastes=True)
def a_list_where_one_tensor_is_declared():
    list(mapped_eager(lambda x: [1.0, 2.0, 3.0], np.ones(4, np.float32)))


@triggers("output-contract", severity="error", says="tf.py_function(body, [x], [tf.float32, tf.int64])", pastes=True)
def a_tuple_where_one_tensor_is_declared():
    def split(x):
        return np.float32(x.numpy()), np.int64(1)

    list(mapped_eager(split, np.ones(4, np.float32)))


@triggers("output-contract", severity="error", says="lambda *given: step(*given)[:2], [x]", pastes=True)
def the_info_of_an_environment_is_dropped():
    def step(action):
        return [np.zeros(2, np.float32), np.float32(1), {"steps": 1}]

    x = tf.constant(1)
    return tf.py_function(step, [x], [tf.float32, tf.float32])


@triggers("output-contract", severity="error", says="lambda action: step(action)[:1]", pastes=True)
def a_lambda_whose_none_is_dropped():
    def step(action):
        return [np.float32(1), None]

    return tf.py_function(lambda action: step(action), [tf.constant(1)], [tf.float32])


@triggers("output-contract", severity="error", says=".split(), tf.string)", pastes=True)
def a_list_of_words_for_one_text():
    def words(line):
        return line.numpy().decode().split()

    list(mapped_eager(words, ["a b", "c d e"], tf.string))


@triggers("output-contract", severity="error", says="1099511627776 became 0")
def a_large_number_for_int32():
    list(mapped_eager(lambda x: np.array([2**40, 1]), np.ones(4, np.float32), tf.int32))


@triggers("output-contract", severity="error", says="1099511627776 became 0")
def a_large_python_number_for_int32():
    list(mapped_eager(lambda x: 2**40, np.ones(4, np.float32), tf.int32))


@triggers("output-contract", severity="error", says="lost their fraction", pastes=True)
def fractions_for_int32():
    list(mapped_eager(lambda x: np.array([0.5, 1.25]), np.ones(4, np.float32), tf.int32))


@triggers("output-contract", severity="warning", says="tf.py_function(body, [x], tf.float64)")
def times_for_float32():
    def times(x):
        return 1.7e9 + np.arange(8) * 0.5

    list(mapped_eager(times, np.ones(4, np.float32)))


@triggers("output-contract", severity="warning", says="np.asarray(x * 2.5, np.float32)", pastes=True)
def an_eager_numpy_function_with_another_dtype():
    tf.numpy_function(lambda x: x * 2.5, [tf.constant([1, 2])], tf.float32)


@triggers("output-contract", severity="note", says="The program went on")
def a_string_for_a_number_that_is_caught():
    tried(list, mapped_eager(lambda x: "a", np.ones(2, np.float32)))


@triggers("output-contract", severity="note", says="None")
def none_that_is_caught():
    tried(list, mapped_eager(lambda x: None, np.ones(2, np.float32)))


@triggers(
    "output-contract",
    severity="note",
    says="returned float64, but Tout declares float32: TensorFlow did not take it",
    pastes=True,
)
def a_numpy_function_with_another_dtype_that_is_caught():
    tried(list, mapped(lambda x: x * np.float64(2.5), np.ones(2, np.float32)))


@near("output-contract")
def rounding_to_float32():
    list(mapped_eager(lambda x: np.random.rand(8), np.ones(4, np.float32)))


@near("output-contract")
def large_losses_in_float32():
    list(mapped_eager(lambda x: 1.23e12 * np.random.rand(), np.ones(4, np.float32)))


@near("output-contract")
def small_numbers_for_int32():
    list(mapped_eager(lambda x: np.arange(5), np.ones(4, np.float32), tf.int32))


@near("output-contract")
def pixels_for_float32():
    list(mapped_eager(lambda x: np.array([0, 255], np.uint8), np.ones(4, np.float32)))


@near("output-contract")
def as_many_as_declared():
    data = tf.data.Dataset.from_tensor_slices(np.ones(4, np.float32))
    list(data.map(lambda x: tf.py_function(lambda x: (x, 1), [x], [tf.float32, tf.int32])))


@near("output-contract")
def nan_and_infinity_for_float32():
    list(mapped_eager(lambda x: np.array([np.nan, np.inf, 1.0]), np.ones(4, np.float32)))


# On a busy machine a call may wait so long for a core that the conversion is a small part of it.
SIX_OF_TEN_MS = """UPDATE call SET end_ns = start_ns + 10000000;
UPDATE returned SET convert_ns = 6000000 * sampled WHERE convert_ns > 0"""


@triggers("slow-conversion", says="np.asarray(", clock=SIX_OF_TEN_MS)
def nested_python_numbers():
    rows = [[float(column) for column in range(200_000)]]

    list(mapped(lambda x: rows, np.ones(6, np.float32), tf.float64))


@triggers("slow-conversion", pastes=True, says="6.00 ms of the 10.00 ms", clock=SIX_OF_TEN_MS)
def one_list_for_each_output():
    def pair(x):
        return [0.5] * 200_000, [1.5] * 200_000

    data = tf.data.Dataset.from_tensor_slices(np.ones(6, np.float32))
    list(data.map(lambda x: tf.py_function(pair, [x], [tf.float32, tf.float32])))


@triggers("slow-conversion", pastes=True, clock=SIX_OF_TEN_MS)
def a_list_of_lists():
    table = [[1.0] * 300 for _ in range(300)]

    list(mapped_eager(lambda x: [table], np.ones(6, np.float32)))


@near("slow-conversion")
def an_array_of_many_numbers():
    list(mapped_eager(lambda x: np.zeros(200_000, np.float32), np.ones(6, np.float32)))


@near("slow-conversion")
def short_lists():
    list(mapped_eager(lambda x: [[1.0, 2.0, 3.0]], np.ones(300, np.float32)))


@near("slow-conversion")
def a_list_of_arrays():
    def pair(x):
        return [np.zeros(100_000, np.float32), np.ones(100_000, np.float32)]

    data = tf.data.Dataset.from_tensor_slices(np.ones(6, np.float32))
    list(data.map(lambda x: tf.py_function(pair, [x], [tf.float32, tf.float32])))


# -- unknown-shape, in programs that did not fail ----------------------------------------------------------------------


def shaped(body, shape, data, Tout=tf.float32):
    def wrapped(x):
        out = tf.numpy_function(body, [x], Tout)
        out.set_shape(shape)
        return out

    return tf.data.Dataset.from_tensor_slices(data).map(wrapped)


@triggers("unknown-shape", severity="error", says="out = tf.ensure_shape(out, [2, 3])")
def set_shape_with_another_order():
    tried(list, shaped(lambda x: np.zeros((2, 3), np.float32), [3, 2], np.ones(4)))


@triggers("unknown-shape", severity="error", says="out = tf.ensure_shape(out, [None])", pastes=True)
def set_shape_that_some_calls_do_not_have():
    tried(list, shaped(lambda x: np.zeros(int(x), np.float32), [3], np.array([3, 3, 4])))


@triggers("unknown-shape", severity="error", says="x.sum(axis=-1, keepdims=True)", pastes=True)
def a_sum_over_the_batch_for_one_number_a_sample():
    tried(list, shaped(lambda x: x.sum(axis=0), [None, 1], np.ones((2, 8, 4), np.float32)))


@triggers("unknown-shape", severity="error")
def set_shape_in_a_function():
    @tf.function
    def step(x):
        y = tf.py_function(lambda x: tf.stack([x, x]), [x], tf.float32)
        y.set_shape([3])
        return y + 1.0

    step(tf.constant(1.0))


@triggers("unknown-shape", severity="note", says="All 4 calls returned [3]", pastes=True)
def an_unknown_rank_in_a_training_step():
    data = mapped(lambda x: x * 2, np.ones((4, 3), np.float32))

    @tf.function
    def train(iterator):
        return tf.reduce_sum(next(iterator))

    iterator = iter(data)
    for _ in range(4):
        train(iterator)


def read_image(x):
    return np.full((4, 4, 3), x, np.float32)


def read_pair(x):
    return np.full((4, 4, 3), x, np.float32), int(x)


@triggers("unknown-shape", severity="note", says="its 4 calls returned [4, 4, 3]", pastes=True)
def a_printed_element_spec():
    ds = tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(read_image, [x], tf.float32))
    ds = ds.batch(2)
    print(ds.element_spec)
    list(ds)


@triggers("unknown-shape", severity="note", says="its 4 calls returned [4, 4, 3] and []", pastes=True)
def printed_shapes_in_a_map():
    def parse(x):
        image, label = tf.py_function(read_pair, [x], [tf.float32, tf.int64])
        print("shapes", image.shape, label.shape)
        return image, label

    list(tf.data.Dataset.range(4).map(parse))


@triggers("unknown-shape", severity="note", says="for y, s in zip(", pastes=True)
def a_printed_dataset_of_pairs():
    ds = tf.data.Dataset.range(4)
    ds = ds.map(lambda x: tf.py_function(read_pair, [x], [tf.float32, tf.int64])).repeat(2)
    print("the data:", ds)
    list(ds)


@triggers("unknown-shape", severity="note", says="nothing iterated it here")
def a_printed_element_spec_of_a_dataset_that_never_runs():
    ds = tf.data.Dataset.range(4).map(lambda x: tf.py_function(read_pair, [x], [tf.float32, tf.int64]))
    print(ds.element_spec)


@near("unknown-shape")
def a_printed_element_spec_behind_another_map():
    ds = tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(read_image, [x], tf.float32))
    ds = ds.map(lambda image: tf.image.resize_with_crop_or_pad(tf.slice(image, [0, 0, 0], [4, 4, 3]), 2, 2))
    print(ds.element_spec)
    list(ds)


@near("unknown-shape")
def a_printed_element_spec_of_another_dataset():
    ds = tf.data.Dataset.range(4)
    print(ds.element_spec)
    images = ds.map(lambda x: tf.numpy_function(read_image, [x], tf.float32))
    list(images)


@near("unknown-shape")
def printed_shapes_of_elements():
    ds = tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(read_image, [x], tf.float32))
    for image in ds:
        print(image.shape)


@near("unknown-shape")
def set_shape_that_is_right():
    list(shaped(lambda x: np.zeros((2, 3), np.float32), [2, None], np.ones(4)))


@near("unknown-shape")
def an_unknown_rank_that_nobody_needs():
    list(mapped(lambda x: x * 2, np.ones((4, 3), np.float32)))


@near("unknown-shape")
def a_training_step_with_shapes():
    data = shaped(lambda x: x * 2, [3], np.ones((4, 3), np.float32))

    @tf.function
    def train(iterator):
        return tf.reduce_sum(next(iterator))

    iterator = iter(data)
    for _ in range(4):
        train(iterator)


# -- nondeterministic, cached-random, empty-epochs, random numbers at trace --------------------------------------------


def twice(body, *shape):
    """Each input twice, one call after the other."""
    data = np.repeat(np.arange(1, 7, dtype=np.float32), 2).reshape(12, *shape)
    list(mapped(body, data))


@triggers("nondeterministic", says="time.monotonic_ns()")
def a_clock():
    twice(lambda x: np.float32(x + time.monotonic_ns() % 1_000_003))


@triggers("nondeterministic", says="datetime")
def a_date():
    def now(x):
        return np.float32(x + datetime.datetime.now().timestamp() % 1e-3)

    twice(now)


@triggers("nondeterministic", says="uuid")
def a_name_that_is_made_up():
    def name(x):
        return str(uuid.uuid4())

    list(mapped(name, np.ones(6, np.float32), tf.string))


@near("nondeterministic")
def an_augmentation():
    twice(lambda x: x[::-1].copy() if np.random.rand() < 0.5 else x, 1)


@near("nondeterministic")
def an_environment():
    class Walk:
        def __init__(self):
            self.place = np.float32(0)

        def step(self, action):
            self.place += action
            return self.place

    walk = Walk()
    twice(lambda x: walk.step(x))


@near("nondeterministic")
def a_body_for_each_scale():
    @tf.function
    def scaled(x, factor):
        return tf.numpy_function(lambda x: x * np.float32(2.0), [x], tf.float32) * factor

    for factor in (1.0, 2.0, 1.0):
        scaled(tf.constant(1.0), tf.constant(factor))


@near("nondeterministic")
def a_variable_that_is_trained():
    w = tf.Variable(1.0)

    def predict(x):
        return x * w

    for _ in range(3):
        tf.py_function(predict, [tf.constant(2.0)], tf.float32)
        w.assign_add(1.0)


def epochs(dataset, count=3):
    for _ in range(count):
        for _ in dataset:
            pass


def flip(x):
    return x[::-1].copy() if np.random.rand() < 0.5 else x


@triggers("cached-random", says="dataset.cache().map(flip")
def an_augmentation_before_the_cache():
    epochs(mapped(flip, np.random.rand(4, 3).astype(np.float32)).cache().batch(2))


@triggers("cached-random")
def noise_before_the_cache():
    def noisy(x):
        return x + tf.random.normal([3])

    epochs(mapped_eager(noisy, np.zeros((4, 3), np.float32)).batch(2).cache())


@triggers("cached-random")
def a_helper_that_draws_before_the_cache():
    def augment(x):
        return flip(x) * np.float32(2)

    epochs(mapped(augment, np.random.rand(4, 3).astype(np.float32)).cache().shuffle(4))


@triggers("cached-random", says="range(4).cache().map(lambda x: tf.py_function(noisy", pastes=True)
def noise_before_the_cache_of_one_chain():
    def noisy(x):
        return tf.cast(x, tf.float32) + tf.random.normal([3])

    epochs(tf.data.Dataset.range(4).map(lambda x: tf.py_function(noisy, [x], tf.float32)).cache().batch(2))


@triggers("cached-random", says="data = data.cache().map(", pastes=True)
def a_cache_in_a_line_of_its_own():
    def load(x):
        return np.float32(x) + np.random.rand(3).astype(np.float32)

    data = tf.data.Dataset.range(4)
    data = data.map(lambda x: tf.numpy_function(load, [x], tf.float32), num_parallel_calls=2)
    data = data.cache().batch(2)
    data = data.prefetch(1)
    for _ in range(2):
        for _ in data:
            pass


@near("cached-random")
def an_augmentation_behind_the_cache():
    dataset = tf.data.Dataset.from_tensor_slices(np.random.rand(4, 3).astype(np.float32)).cache()
    epochs(dataset.map(lambda x: tf.numpy_function(flip, [x], tf.float32)))


@near("cached-random")
def a_cache_of_what_is_always_the_same():
    epochs(mapped(lambda x: x * np.float32(2), np.random.rand(4, 3).astype(np.float32)).cache())


@near("cached-random")
def one_epoch_over_a_cache():
    epochs(mapped(flip, np.random.rand(4, 3).astype(np.float32)).cache(), 1)


def counting():
    for number in range(4):
        yield np.float32(number)


def generated(function):
    return tf.data.Dataset.from_generator(function, output_signature=tf.TensorSpec((), tf.float32))


@triggers("empty-epochs", severity="error", says="from_generator(")
def a_generator_that_is_used_up():
    source = counting()
    epochs(generated(lambda: source))


@triggers("empty-epochs", says="from_generator(lambda: iter([1.0, 2.0])", pastes=True)
def an_iterator_that_is_made_once():
    rows = iter([1.0, 2.0])
    data = tf.data.Dataset.from_generator(lambda: rows, output_signature=tf.TensorSpec((), tf.float32))
    for _ in range(2):
        for _ in data:
            pass


@triggers("empty-epochs")
def an_iterator_over_a_list():
    source = iter([1.0, 2.0])
    epochs(generated(lambda: source).batch(2))


@triggers("empty-epochs")
def a_map_that_is_used_up():
    source = map(float, range(3))
    epochs(generated(lambda: source).map(lambda x: x * 2).prefetch(1), 2)


@near("empty-epochs")
def a_generator_for_each_epoch():
    epochs(generated(counting))


@near("empty-epochs")
def a_list_for_each_epoch():
    source = [1.0, 2.0]
    epochs(generated(lambda: source))


@near("empty-epochs")
def an_empty_dataset():
    epochs(tf.data.Dataset.from_tensor_slices(np.zeros((0, 3), np.float32)))


@triggers("trace-only", says="noise = tf.random.normal((3,), 0.0, 0.1)", pastes=True)
def noise_in_a_map():
    def jitter(x):
        noise = np.random.normal(0.0, 0.1, size=(3,)).astype(np.float32)
        return x + noise

    list(tf.data.Dataset.from_tensor_slices(np.zeros((4, 3), np.float32)).map(jitter))


@triggers("trace-only", says="stddev=tf.random.uniform([], 0.0, 2.0),", pastes=True)
def a_draw_in_a_call_of_several_lines():
    def noisy(x):
        return x + tf.random.normal(
            [3],
            stddev=np.random.uniform(0.0, 2.0),
        )

    list(tf.data.Dataset.from_tensor_slices(tf.zeros([20, 3])).map(noisy))


@triggers("trace-only", says="if tf.random.uniform([]) < 0.5:", pastes=True)
def a_coin_in_a_map():
    def augment(x):
        if random.random() < 0.5:
            x = x[::-1]
        return x

    list(tf.data.Dataset.from_tensor_slices(np.zeros((4, 3), np.float32)).map(augment))


@triggers("trace-only", says="return x + tf.random.normal(x.shape, 0, 0.1, x.dtype)", pastes=True)
def noise_of_the_dtype_of_a_wide_tensor():
    def noisy(x):
        return x + np.random.normal(0, 0.1, x.shape)

    found = list(tf.data.Dataset.from_tensor_slices(np.zeros((4, 3))).map(noisy))
    assert found[0].dtype == tf.float64


@triggers("trace-only", says="if tf.gather([True, False], tf.random.uniform([], 0, len([True, False])", pastes=True)
def a_choice_of_true_and_false_in_a_map():
    def augment(x):
        if np.random.choice([True, False]):
            x = x[::-1]
        return x

    list(tf.data.Dataset.from_tensor_slices(np.zeros((4, 3), np.float32)).map(augment))


@triggers("trace-only", says="tf.gather(x, tf.random.shuffle(tf.range(3))[:2])", pastes=True)
def a_sample_of_rows_in_a_map():
    def pick(x):
        return tf.gather(x, random.sample(range(3), 2))

    list(tf.data.Dataset.from_tensor_slices(np.zeros((4, 3), np.float32)).map(pick))


@triggers("trace-only", says="# no tf.function: mean goes on with what Python keeps", pastes=True)
def a_list_that_the_graph_goes_on_with():
    recent = [1.0]

    @tf.function
    def mean(x):
        recent.append(x)
        return sum(recent) / len(recent)

    for n in range(3):
        mean(tf.constant(float(n)))


@near("trace-only")
def made_once_on_purpose():
    made = {}

    @tf.function
    def scaled(x, name):
        if name not in made:
            made[name] = x.shape.rank
        return x * made[name]

    for n in range(3):
        scaled(tf.constant([float(n)]), "a")


@triggers("trace-only", says="draw random numbers in Python. They ran once", pastes=True)
def several_draws_in_a_map():
    def turned(x):
        k = random.randint(0, 3)
        return tf.roll(x, k, axis=0)

    def augment(x):
        if random.random() < 0.5:
            x = x[::-1]
        x = x + np.random.uniform(-0.1, 0.1)
        return turned(x)

    list(tf.data.Dataset.from_tensor_slices(np.zeros((4, 3), np.float32)).map(augment))


@near("trace-only")
def draws_of_a_helper_in_a_body():
    def drawn(x):
        return x + np.float32(np.random.uniform(-0.1, 0.1))

    def augment(x):
        return tf.numpy_function(lambda x: drawn(x), [x], tf.float32)

    list(tf.data.Dataset.from_tensor_slices(np.zeros((4, 3), np.float32)).map(augment))


@triggers("trace-only", says="all 5 runs got what was drawn then")
def exploration_in_a_function():
    rng = np.random.default_rng()

    @tf.function
    def act(x):
        return x + rng.integers(0, 5)

    for _ in range(5):
        act(tf.constant(1))


@triggers("trace-only", says="set_seed(7)) in Python. It ran once, when TensorFlow traced the function", pastes=True)
def a_seed_of_tensorflow_in_a_step():
    @tf.function
    def step(x):
        tf.random.set_seed(7)
        return x + tf.random.normal([3])

    for _ in range(5):
        step(tf.ones(3))


@triggers("trace-only", says="np.random.seed(3): once, above", pastes=True)
def a_seed_of_numpy_in_a_mapped_function():
    def noisy(x):
        np.random.seed(3)
        return x + tf.numpy_function(lambda: np.float32(np.random.rand()), [], tf.float32)

    for _ in tf.data.Dataset.from_tensor_slices(tf.ones(5)).map(noisy):
        pass


@near("trace-only")
def a_seed_before_a_step():
    tf.random.set_seed(7)
    np.random.seed(7)

    @tf.function
    def step(x):
        return x + tf.random.normal([3])

    for _ in range(5):
        step(tf.ones(3))


@near("trace-only")
def a_step_with_a_seed_that_runs_once():
    @tf.function
    def first(x):
        tf.random.set_seed(7)
        return x + tf.random.normal([3])

    first(tf.ones(3))


@triggers("trace-only", says="return x + tf.cast(tf.timestamp(), x.dtype)", pastes=True)
def a_clock_in_a_function():
    @tf.function
    def stamp(x):
        return x + time.time()

    for _ in range(3):
        stamp(tf.constant(0.0, tf.float64))


@triggers("trace-only", says="of bump_steps changes Python's 'self.steps'", pastes=True)
def a_counter_in_a_method_that_a_step_calls():
    class Stats:
        def __init__(self):
            self.steps = 0

        def bump_steps(self):
            self.steps += 1

    stats = Stats()

    @tf.function
    def step(x):
        stats.bump_steps()
        return x * 2.0

    for number in range(4):
        step(tf.constant(float(number)))


@triggers("trace-only", says="of keep_seen changes Python's 'seen'", pastes=True)
def a_list_in_a_function_that_a_step_calls():
    seen = []

    def keep_seen(x):
        seen.append(x)

    @tf.function
    def step(x):
        keep_seen(x)
        return x * 2.0

    for number in range(4):
        step(tf.constant(float(number)))


@near("trace-only")
def a_helper_that_counts_under_a_condition_or_for_python_only():
    counts = {"first": 0}

    def count_first():
        counts["first"] += 1

    def count_once():
        if not counts["first"]:
            counts["first"] += 1

    @tf.function
    def step(x, first=False):
        if first:
            count_first()
        count_once()
        return x * 2.0

    for number in range(4):
        step(tf.constant(float(number)))
    count_first()


@triggers("trace-only", says="a draw of the graph would leave a symbol in self.state")
def an_environment_that_keeps_what_it_draws():
    class Agent:
        def advance_state(self):
            self.state = np.random.normal(size=2).astype(np.float32)
            return self.state

        @tf.function
        def step(self, x):
            return x + self.advance_state()

    agent = Agent()
    for _ in range(3):
        agent.step(tf.ones([2]))


@triggers("trace-only", says="where timed is called, with both times taken there")
@triggers("printed-symbol", says="tf.print(...) with the tensors themselves")
def a_duration_in_a_function():
    @tf.function
    def timed(x):
        start = time.perf_counter()
        y = tf.reduce_sum(x)
        took = time.perf_counter() - start
        print(f"loss {y} took {took:.3f} s")
        return y

    for _ in range(3):
        timed(tf.constant([1.0, 2.0]))


@triggers("trace-only", says="not for each element", pastes=True)
def a_list_that_a_map_appends_to():
    names = []

    def collect(x):
        names.append(x)
        return x * 2

    list(tf.data.Dataset.range(4).map(collect))


@triggers("trace-only", says="\n    read = tf.Variable(read)", pastes=True)
def a_number_that_a_method_counts_outside_of_its_class():
    read = 0

    class Loader:
        def prepare(self, x):
            nonlocal read
            read += 1
            return x * 2

        def dataset(self):
            return tf.data.Dataset.range(4).map(self.prepare)

    list(Loader().dataset())


@triggers("trace-only", says="return t * tf.random.uniform([])", pastes=True)
def noise_that_a_layer_draws_in_numpy():
    class Noise(keras.layers.Layer):
        def call(self, t):
            return t * np.random.rand()

    model = keras.Sequential([keras.Input((3,)), Noise(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=2, epochs=2, verbose=0)


@triggers("trace-only", says="got what was drawn while Keras traced them", pastes=True)
def noise_in_a_lambda_layer():
    def noisy(t):
        return t + np.random.normal(0.0, 0.1)

    model = keras.Sequential([keras.Input((3,)), keras.layers.Lambda(noisy), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=2, epochs=2, verbose=0)


@triggers("trace-only", says="draws a random number in Python", pastes=True)
def a_loss_with_a_random_weight():
    def weighted(y_true, y_pred):
        return np.random.uniform(0.5, 1.5) * tf.reduce_mean((y_true - y_pred) ** 2)

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", weighted)
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=2, epochs=2, verbose=0)


@triggers("trace-only", says="got what was drawn then", pastes=True)
def noise_of_a_layer_that_a_step_calls():
    class Noise(keras.layers.Layer):
        def call(self, t):
            return t * np.random.uniform(0.5, 1.5)

    noise = Noise()

    @tf.function
    def step(t):
        return noise(t)

    for _ in range(4):
        step(tf.ones([2, 3]))


@near("trace-only")
def weights_drawn_in_build():
    class Fixed(keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(3,), initializer=keras.initializers.Constant(np.random.rand()))

        def call(self, t):
            return t * self.w

    model = keras.Sequential([keras.Input((3,)), Fixed(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=2, epochs=2, verbose=0)


@near("trace-only")
def noise_of_a_layer_that_runs_eagerly():
    class Noise(keras.layers.Layer):
        def call(self, t):
            return t * np.random.rand()

    model = keras.Sequential([keras.Input((3,)), Noise(), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=2, epochs=2, verbose=0)


@near("trace-only")
def noise_of_a_body_in_a_layer():
    class Noise(keras.layers.Layer):
        def call(self, t):
            drawn = tf.numpy_function(lambda: np.float32(np.random.rand()), [], tf.float32)
            return t * tf.ensure_shape(drawn, [])

    model = keras.Sequential([keras.Input((3,)), Noise(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=2, epochs=2, verbose=0)


@triggers("trace-only", says='state["last"] = x', pastes=True)
def a_key_that_a_step_makes():
    state = {}

    @tf.function
    def step(x):
        state["last"] = x
        return x * 2

    for value in (1.0, 2.0, 3.0):
        step(tf.constant(value))


@triggers("trace-only", says="tf.Variable(state['mean'])", pastes=True)
def a_mean_that_a_map_moves():
    state = {"mean": 0.0}

    def scale(x):
        state["mean"] = 0.9 * state["mean"] + 0.1 * tf.reduce_mean(x)
        return x - state["mean"]

    list(tf.data.Dataset.from_tensor_slices(np.ones((4, 2), np.float32)).map(scale))


@near("trace-only")
def a_seed_that_a_body_sets():
    @tf.function
    def step(x):
        tf.py_function(lambda n: random.seed(int(n)), [x], [])
        return x * 2

    for value in (1, 2, 3):
        step(tf.constant(value))


@triggers("trace-only", says="seen['n'].assign_add(1)", pastes=True)
def a_counter_in_a_map():
    seen = {"n": 0}

    def count(x):
        seen["n"] += 1
        return x

    list(tf.data.Dataset.range(4).map(count))


@near("trace-only")
def a_size_that_a_map_finds_out():
    sizes = {}

    def measured(x):
        sizes["features"] = x.shape[-1]
        return x * 2.0

    list(tf.data.Dataset.from_tensor_slices(np.ones((4, 3), np.float32)).map(measured))


@near("trace-only")
def random_numbers_in_a_body():
    def jitter(x):
        return x + np.random.rand(3).astype(np.float32)

    list(mapped(jitter, np.zeros((4, 3), np.float32)))


@near("trace-only")
def random_numbers_of_the_graph():
    list(tf.data.Dataset.from_tensor_slices(np.zeros((4, 3), np.float32)).map(lambda x: x + tf.random.normal([3])))


# -- cut-gradient -----------------------------------------------------------------------------------------------------


def trained(loss):
    w = tf.Variable([1.0, 2.0], name="w")

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = loss(w * x)
        return tape.gradient(value, [w])

    step(tf.constant([3.0, 4.0]))


@triggers("cut-gradient", says="w -> ", pastes=True)
def a_loss_through_numpy():
    trained(lambda y: tf.reduce_sum(tf.numpy_function(lambda y: y * y, [y], tf.float32)))


@triggers("cut-gradient", says="tf.sigmoid((y[:, None] - y[None, :]) / 0.1), axis=1) + 0.5", pastes=True)
def a_loss_of_ranks():
    def ranked(y):
        return (y.argsort().argsort() + 1).astype(np.float32)

    trained(lambda y: tf.reduce_sum(tf.numpy_function(ranked, [y], tf.float32)))


@triggers("cut-gradient", says="whole numbers", pastes=True)
def a_loss_through_whole_numbers():
    def count(y):
        return tf.reduce_sum(tf.cast(y, tf.float32))

    trained(lambda y: tf.py_function(count, [tf.cast(y, tf.int32)], tf.float32))


@triggers("cut-gradient")
def a_training_step_in_numpy():
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(tf.numpy_function(lambda x: x * w.numpy(), [x], tf.float32))
        return tape.gradient(value, [w])

    step(tf.constant([3.0, 4.0]))


@triggers("cut-gradient", says="tf.stop_gradient(tf.numpy_function(in_steps, [x], tf.float32) - x)", pastes=True)
def a_layer_that_quantizes():
    def in_steps(x):
        return (np.ceil(32 * x) / 32).astype(np.float32)

    class Quantize(keras.layers.Layer):
        def call(self, x):
            q = tf.numpy_function(in_steps, [x], tf.float32)
            q.set_shape(x.shape)
            return q

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), Quantize(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 3), np.float32), np.ones((4, 1), np.float32), verbose=0)


def roughness(w):
    return np.float32(np.abs(np.diff(w)).sum())


def trained_by_terms(loss):
    w = tf.Variable([1.0, 2.0], name="w")

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = loss(w, tf.reduce_sum((w * x - 1.0) ** 2))
        w.assign_sub(tape.gradient(value, w))

    step(tf.constant([3.0, 4.0]))


@triggers("cut-gradient", says="what roughness adds to the loss trains nothing: 1 of 1 variables (w)", pastes=True)
def a_penalty_in_numpy():
    trained_by_terms(lambda w, error: error + tf.numpy_function(roughness, [w], tf.float32))


@triggers("cut-gradient", says="trains nothing")
def a_scaled_penalty_of_keras():
    class Penalized(keras.layers.Dense):
        def call(self, x):
            y = super().call(x)
            self.add_loss(0.1 * tf.ensure_shape(tf.numpy_function(roughness, [y], tf.float32), ()))
            return y

    model = keras.Sequential([keras.Input((3,)), Penalized(2)])
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 3), np.float32), np.ones((4, 2), np.float32), verbose=0)


@triggers("cut-gradient", says="trains nothing")
def a_term_for_each_row_of_a_keras_loss():
    def loss(y, p):
        rows = tf.numpy_function(lambda y, p: np.abs(y - p).max(-1), [y, p], tf.float32)
        return tf.reduce_mean((y - p) ** 2, -1) + tf.ensure_shape(rows, (None,)) / tf.cast(tf.shape(p)[1], tf.float32)

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", loss)
    model.fit(np.ones((4, 3), np.float32), np.ones((4, 2), np.float32), verbose=0)


@near("cut-gradient")
def weights_and_masks_in_numpy():
    def weighted(w, error):
        weight = tf.numpy_function(lambda w: np.float32(1 / (1 + w.std())), [w], tf.float32)
        kept = tf.numpy_function(lambda w: (w > 0).astype(np.float32), [w], tf.float32)
        return error * weight + tf.reduce_sum(w * kept)

    trained_by_terms(weighted)


@near("cut-gradient")
def a_step_with_the_gradient_of_what_it_gets():
    def stepped(w, error):
        return error + tf.reduce_sum(w + tf.stop_gradient(tf.numpy_function(np.round, [w], tf.float32) - w))

    trained_by_terms(stepped)


@near("cut-gradient")
def a_term_that_no_variable_makes():
    trained_by_terms(lambda w, error: error + tf.numpy_function(lambda: np.float32(0.5), [], tf.float32))


@near("cut-gradient")
def a_numpy_metric_beside_the_loss():
    def loss(y):
        tf.print(tf.numpy_function(lambda y: y.mean(), [y], tf.float32), output_stream="file:///dev/null")
        return tf.reduce_sum(y * y)

    trained(loss)


@near("cut-gradient")
def a_py_function_in_the_loss():
    trained(lambda y: tf.py_function(lambda y: tf.reduce_sum(y * y), [y], tf.float32))


@near("cut-gradient")
def a_variable_that_is_not_used():
    w, unused = tf.Variable(1.0), tf.Variable(1.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = w * tf.numpy_function(lambda x: x * 2, [x], tf.float32)
        return tape.gradient(value, [w, unused])

    step(tf.constant(1.0))


# -- more of the rules above: three shapes of each, and three that come near -------------------------------------------


@triggers("stop-iteration", says='next(lines, b"")')
def a_file_that_ends_in_a_loop():
    lines = iter(["a", "b"])

    def read():
        return next(lines)

    @tf.function
    def step():
        return tf.py_function(read, [], tf.string)

    for _ in range(3):
        tried(step)


@triggers("stop-iteration", says="`self.rows = itertools.cycle(...)` in line", pastes=True)
def an_iterator_of_an_object():
    class Reader:
        def __init__(self):
            self.rows = iter([1.0])

        def read(self, x):
            return np.float32(self.rows.__next__())

    tried(list, mapped(Reader().read, np.ones(3, np.float32)))


@near("stop-iteration")
def a_default_for_next():
    names = iter(["a"])
    list(mapped(lambda x: next(names, "end"), np.ones(3, np.float32), tf.string))


@near("stop-iteration")
def an_end_that_is_caught():
    names = iter(["a"])

    def draw(x):
        try:
            return next(names)
        except StopIteration:
            return "end"

    list(mapped(draw, np.ones(3, np.float32), tf.string))


@triggers("parallel-random")
def a_seeded_generator_that_all_share():
    both = threading.Barrier(2)
    shared_rng = np.random.default_rng(42)

    def noisy(x):
        both.wait(HANG_S)
        return x + shared_rng.normal(size=x.shape).astype(np.float32)

    list(together(noisy))


@triggers("parallel-random")
def pythons_own_generator_with_a_seed():
    both = threading.Barrier(2)
    random.seed(3)

    def shifted(x):
        both.wait(HANG_S)
        return x + np.float32(random.random())

    list(together(shifted))


@near("parallel-random")
def a_generator_without_a_seed():
    both = threading.Barrier(2)
    free_rng = np.random.default_rng()

    def noisy(x):
        both.wait(HANG_S)
        return x + free_rng.normal(size=x.shape).astype(np.float32)

    list(together(noisy))


@triggers("dataset-in-loop", pastes=True)
def a_dataset_that_a_function_builds_each_time():
    def make():
        return tf.data.Dataset.from_tensor_slices(np.ones(3, np.float32)).filter(lambda x: x > 0).batch(2)

    for _ in range(7):
        list(make())


@triggers("dataset-in-loop")
def a_python_function_mapped_in_each_step():
    for _ in range(7):
        list(mapped(lambda x: x * 2, np.ones(3, np.float32)))


@triggers("dataset-in-loop", pastes=True)
def a_named_dataset_in_two_loops():
    def shifted(x):
        return x + 1

    for _ in range(3):
        for _ in range(3):
            data = tf.data.Dataset.range(3).map(shifted).batch(2)
            list(data)


@near("dataset-in-loop")
def a_dataset_for_each_split():
    for count in (3, 4, 5):
        list(tf.data.Dataset.range(count).map(lambda x: x + 1))


@near("dataset-in-loop")
def datasets_of_several_lines():
    dataset = tf.data.Dataset.range(6)
    for _ in range(1):
        list(dataset.map(lambda x: x + 1))
        list(dataset.map(lambda x: x + 2))
        list(dataset.map(lambda x: x + 3).map(lambda x: x + 4).map(lambda x: x + 5).map(lambda x: x + 6))


def compiled(function):
    tried(tf.function(function, jit_compile=True), tf.constant([1.0, 2.0]))


def doubled_values(x):
    return x * 2


@triggers("xla", says="asks XLA to compile", pastes=True)
def a_compiled_function_with_python():
    @tf.function(jit_compile=True)
    def step(x):
        return tf.py_function(doubled_values, [x], tf.float32)

    tried(step, tf.constant([1.0, 2.0]))


@triggers("xla", says="asks XLA", severity="warning")
def numpy_in_a_compiled_lambda():
    compiled(lambda x: tf.numpy_function(lambda y: np.sort(y), [x], tf.float32))


@triggers("xla", says="compile outer")
def python_in_a_function_that_a_compiled_one_calls():
    inner = tf.function(lambda x: tf.py_function(doubled_values, [x], tf.float32))

    def outer(x):
        return inner(x) + 1

    compiled(outer)


@near("xla")
def a_compiled_function_without_python():
    compiled(lambda x: x * 2)


@near("xla")
def python_beside_a_compiled_function():
    step = tf.function(lambda x: tf.py_function(doubled_values, [x], tf.float32))
    compiled(lambda x: x * 2)
    step(tf.constant([1.0, 2.0]))


@near("xla")
def a_compiled_function_in_one_with_python():
    fast = tf.function(lambda x: x * 2, jit_compile=True)
    tf.function(lambda x: fast(tf.ensure_shape(tf.py_function(doubled_values, [x], tf.float32), [2])))(
        tf.constant([1.0, 2.0])
    )


@near("empty-recording")
def a_node_that_ran():
    tf.numpy_function(lambda x: x, [tf.constant(1.0)], tf.float32)


@near("trace-failed")
def a_body_that_fails():
    def parse(x):
        raise ValueError("no")

    tried(list, mapped(parse, np.ones(2, np.float32)))


@near("trace-failed", ends_with=AttributeError)
def a_failure_that_is_explained():
    tf.data.Dataset.range(3).map(lambda x: x.numpy() + 1)


@near("trace-failed", ends_with=ValueError)
def a_failure_that_is_explained_behind_many_frames():
    @tf.function
    def step(optimizer, weights, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * x)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])

    weights = tf.Variable([1.0, 2.0])
    for _ in range(2):
        step(keras.optimizers.Adam(), weights, tf.ones(2))


def summed(square, values):
    """One tape over several calls of one node."""
    inputs = [tf.constant(value) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        total = tf.add_n([square(x) for x in inputs])
    return tape.gradient(total, inputs)


@triggers("wrong-tape", ends_with=tf.errors.UnknownError)
def accumulation_over_micro_batches():
    summed(square_node(), [1.0, 2.0, 3.0, 4.0])


@triggers("wrong-tape", ends_with=tf.errors.UnknownError)
def a_shared_layer_of_two_towers():
    w = tf.Variable(2.0)
    tower = tf.function(lambda x, w: tf.py_function(lambda x, w: x * w, [x, w], tf.float32))
    with tf.GradientTape() as tape:
        loss = (tower(tf.constant(3.0), w) - tower(tf.constant(5.0), w)) ** 2
    tape.gradient(loss, w)


@triggers(
    "wrong-tape", ends_with=tf.errors.UnknownError, says="the true gradient is [4, 6] for pred, [-4, -6] for label"
)
def two_terms_of_a_loss():
    def loss(pred, label):
        return tf.reduce_sum((pred - label) ** 2)

    term = tf.function(lambda pred, label: tf.py_function(loss, [pred, label], tf.float32))
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        total = term(w * 2, tf.constant([0.0, 1.0])) + term(w * 3, tf.constant([0.0, 1.0]))
    tape.gradient(total, w)


@near("wrong-tape")
def a_node_for_each_call():
    @tf.function
    def both(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = tf.py_function(lambda x: x * x, [x], tf.float32) + tf.py_function(lambda y: y * y, [y], tf.float32)
        return tape.gradient(z, [x, y])

    both(tf.constant(2.0), tf.constant(5.0))


@near("wrong-tape")
def several_calls_with_exact_gradients():
    with pfd.exact_gradients():
        summed(square_node(), [1.0, 2.0])


@near("wrong-tape")
def several_eager_calls():
    summed(lambda x: tf.py_function(lambda x: x * x, [x], tf.float32), [1.0, 2.0])


@triggers("missing-tape", ends_with=tf.errors.UnknownError)
def a_batch_jacobian():
    @tf.function
    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.ensure_shape(tf.py_function(lambda x: x * x, [x], tf.float32), [2, 3])
        return tape.batch_jacobian(y, x)

    jacobian(tf.ones([2, 3]))


@triggers("missing-tape", ends_with=tf.errors.UnknownError)
def a_map_over_rows():
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.map_fn(lambda row: tf.ensure_shape(tf.py_function(lambda r: r * r, [row], tf.float32), []), x)
        return tape.gradient(y, x)

    step(tf.constant([1.0, 2.0, 3.0]))


@near("missing-tape")
def a_jacobian_without_python():
    @tf.function
    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x + tf.numpy_function(lambda v: v, [tf.constant([1.0, 2.0])], tf.float32)
        return tape.jacobian(tf.ensure_shape(y, [2]), x)

    jacobian(tf.constant([1.0, 2.0]))


@near("missing-tape")
def a_jacobian_with_exact_gradients():
    with pfd.exact_gradients():
        a_jacobian()


@triggers("variable-no-input", says="scale", pastes=True)
def a_variable_of_an_object():
    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable(2.0, name="scale")

        def body(self, x):
            return x * self.scale

        @tf.function
        def step(self, x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.py_function(self.body, [x], tf.float32)
            return tape.gradient(y, x)

    layer = Layer()  # a tf.function holds its object weakly
    layer.step(tf.constant(1.0))


@triggers("variable-no-input")
def a_keras_layer_in_a_body():
    dense = keras.layers.Dense(1)
    dense.build((None, 2))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda x: dense(x), [x], tf.float32)
        return tape.gradient(y, x)

    step(tf.ones([3, 2]))


@near("variable-no-input")
def a_constant_by_closure():
    w = tf.constant(2.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda x: x * w, [x], tf.float32)
        return tape.gradient(y, x)

    step(tf.constant(1.0))


@near("variable-no-input")
def a_variable_outside_of_the_body():
    w = tf.Variable(2.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.py_function(lambda x: x * 3.0, [x * w], tf.float32)
        return tape.gradient(y, w)

    step(tf.constant(1.0))


@near("body-raised")
def an_exception_inside_of_the_body():
    def parse(x):
        try:
            return np.float32(1.0 / int(x - x))
        except ZeroDivisionError:
            return np.float32(0)

    list(mapped(parse, np.ones(3, np.float32)))


@near("body-raised")
def the_end_of_a_generator():
    list(tf.data.Dataset.from_generator(lambda: iter([1.0]), output_signature=tf.TensorSpec((), tf.float32)))


@near("body-raised", ends_with=tf.errors.InvalidArgumentError)
def rows_of_two_lengths_in_what_a_body_returned():
    def rows(_):
        return [[1.0, 2.0], [3.0]], 1.0

    list(tf.data.Dataset.range(2).map(lambda i: tf.numpy_function(rows, [i], [tf.float64, tf.float64])))


@near("body-raised", ends_with=tf.errors.InvalidArgumentError)
def what_tensorflow_did_not_take():
    list(mapped_eager(lambda x: "text", np.ones(2, np.float32)))


def curvature(function, value=3.0):
    """A second derivative by two tapes in one graph."""

    @tf.function
    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            slope = inner.gradient(y, x)
        return outer.gradient(slope, x)

    return tried(second, tf.constant(value))


@triggers("second-order", pastes=True)
def a_curvature():
    curvature(lambda x: tf.py_function(lambda x: x * x * x, [x], tf.float32))


@triggers("second-order", pastes=True)
def a_gradient_penalty():
    def penalty(x):
        y = tf.py_function(lambda x: tf.sin(x), [x], tf.float32)
        return y * y

    curvature(penalty)


@triggers("second-order", pastes=True)
def a_curvature_of_two_inputs():
    curvature(lambda x: tf.py_function(lambda x, y: x * y * y, [x, 2.0 * x], tf.float32))


@triggers("second-order", pastes=True, says="y = potential(x)")
def a_hessian_by_a_jacobian():
    def potential(x):
        return tf.reduce_sum(tf.sin(x) * x**2)

    @tf.function
    def hessian(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.py_function(potential, [x], tf.float32)
                y.set_shape([])
            slope = inner.gradient(y, x)
        return outer.jacobian(slope, x)

    hessian(tf.constant([0.5, 1.0]))


@near("second-order")
def a_curvature_beside_a_body():
    def function(x):
        tf.numpy_function(lambda v: v, [x], tf.float32)
        return x * x * x

    curvature(function)


@near("second-order")
def a_first_derivative():
    square = square_node()
    summed(square, [2.0])


@near("second-order")
def a_curvature_with_exact_gradients():
    with pfd.exact_gradients(order=2):
        curvature(lambda x: tf.py_function(lambda x: x * x * x, [x], tf.float32))


def stopped(*lines, when="before", body=None, Tout=tf.float32):
    """One call that stops, where these lines are typed."""
    stop = pfd.break_on("*", when=when)
    try:
        with pfd.answers(*lines):
            tf.py_function(body or (lambda x: x * 2.0), [tf.constant([1.0, 2.0])], Tout)
    finally:
        stop.remove()


@triggers("changed-by-hand", says="x")
def an_input_set_at_a_stop():
    stopped("!x = tf.constant([5.0, 5.0])", "c")


@triggers("changed-by-hand")
def an_output_set_at_a_stop():
    stopped("!outputs = [tf.constant([0.0, 0.0])]", "c", when="after")


@triggers("changed-by-hand", says="y")
def a_variable_of_the_body_set_at_a_stop():
    def body(x):
        y = x * 2.0
        return y

    stopped("n", "n", "!y = tf.constant([7.0, 7.0])", "c", body=body)


@near("changed-by-hand")
def a_look_at_a_stop():
    stopped("p x", "c")


@near("changed-by-hand")
def a_step_at_a_stop():
    stopped("n", "c")


@near("changed-by-hand")
def no_stop_at_all():
    tf.py_function(lambda x: x * 2.0, [tf.constant(1.0)], tf.float32)


def steps(body, scale=1.0, count=6):
    """Gradients through one body, one call after the other."""
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.py_function(body, [w * scale], tf.float32))
        return tape.gradient(loss, w)

    for _ in range(count):
        step()


@triggers("exploding-gradient")
def a_division_by_a_small_number():
    steps(lambda x: x / 1e-6)


@triggers("exploding-gradient")
def a_steep_exponential():
    steps(lambda x: tf.exp(x * 12.0))


@triggers("exploding-gradient")
def a_root_near_zero():
    steps(lambda x: tf.sqrt(x), scale=1e-12)


@triggers("vanishing-gradient")
def a_saturated_hyperbolic_tangent():
    steps(lambda x: tf.tanh(x * 40.0))


@triggers("vanishing-gradient")
def a_clip_that_is_always_hit():
    steps(lambda x: tf.clip_by_value(x, -0.5, 0.5))


@triggers("vanishing-gradient")
def a_factor_of_almost_nothing():
    steps(lambda x: x * 1e-9)


@near("exploding-gradient")
def a_factor_of_a_hundred():
    steps(lambda x: x * 100.0)


@near("exploding-gradient")
def a_sum_of_many():
    steps(lambda x: tf.tile(x, [100_000]))


@near("exploding-gradient")
def a_few_gradients():
    steps(lambda x: x / 1e-6, count=3)


@near("vanishing-gradient")
def a_mean_of_many():
    w = tf.Variable(tf.ones([2_000_000]))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.py_function(lambda x: tf.reduce_mean(x), [w * 1.0], tf.float32)
        return tape.gradient(loss, w)

    for _ in range(6):
        step()


@near("vanishing-gradient")
def an_ordinary_activation():
    steps(lambda x: tf.tanh(x))


@near("vanishing-gradient")
def a_body_without_a_gradient():
    steps(lambda x: tf.constant(x.numpy() * 2))


# -- gradient-check ---------------------------------------------------------------------------------------------------

FULL = {"values": "full"}


@triggers("gradient-check", record=FULL, pastes=True)
def a_slope_without_its_factor():
    @tf.custom_gradient
    def cube(x):
        def slope(upstream):
            return upstream * x**2

        return x**3, slope

    steps(lambda x: cube(x))


@triggers("gradient-check", record=FULL, pastes=True)
def a_slope_with_the_wrong_sign():
    def body(x):
        @tf.custom_gradient
        def inverse(y):
            def slope(upstream):
                return upstream / y**2

            return 1.0 / y, slope

        return inverse(x) * 2.0

    steps(body)


@triggers("gradient-check", record=FULL, pastes=True)
def a_slope_that_forgets_what_comes_from_above():
    @tf.custom_gradient
    def softplus(x):
        return tf.math.log(1.0 + tf.exp(x)), lambda upstream: tf.sigmoid(x)

    steps(lambda x: softplus(x) * 3.0)


@near("gradient-check", record=FULL)
def a_stable_slope():
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def slope(upstream):
            return upstream * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), slope

    steps(lambda x: log1pexp(x))


@near("gradient-check", record=FULL)
def a_reversed_gradient():
    @tf.custom_gradient
    def reverse(x):
        return tf.identity(x), lambda upstream: -upstream

    steps(lambda x: reverse(x))


@near("gradient-check", record=FULL)
def a_straight_through_estimator():
    @tf.custom_gradient
    def rounded(x):
        return tf.round(x), lambda upstream: upstream

    steps(lambda x: rounded(x), scale=0.7)


@near("gradient-check", record=FULL)
def a_body_that_counts_its_calls():
    calls = []

    @tf.custom_gradient
    def half(x):
        return x / 2.0, lambda upstream: upstream

    def body(x):
        calls.append(1)
        return half(x)

    steps(body)
    assert len(calls) == 6


# -- shuffled-split, unused-input -------------------------------------------------------------------------------------


def rows(body=lambda x: x * 2):
    return tf.data.Dataset.range(40).map(lambda x: tf.numpy_function(body, [x], tf.int64))


def both_parts_twice(*parts):
    for _ in range(2):
        for part in parts:
            list(part)


@triggers("shuffled-split", severity="error", pastes=True)
def a_split_after_a_shuffle():
    data = rows().shuffle(40)
    test = data.take(10)
    train = data.skip(10)
    for _ in range(2):
        for _ in train:
            pass
        list(test)


@triggers("shuffled-split", pastes=True)
def a_split_of_batches_with_a_seed():
    data = rows().shuffle(40, seed=1)
    batches = data.batch(5)
    list(batches.skip(2).prefetch(1))
    list(batches.take(2).cache())


@triggers("shuffled-split")
def two_loops_over_a_split():
    data = rows().shuffle(40).map(lambda x: x + 1)
    for _ in data.skip(30):
        pass
    for _ in data.take(30).batch(2):
        pass


def of_lines(*numbers):
    folder = tempfile.mkdtemp()
    for number in numbers:
        with open(os.path.join(folder, f"part-{number}.txt"), "w") as file:
            file.write(f"{number}\n")
    return os.path.join(folder, "*.txt")


@triggers("shuffled-split", says="take(3) gives other files each time, and 2 passes were made", pastes=True)
def a_few_files_of_a_folder():  # tensorflow#38879
    files = tf.data.Dataset.list_files(of_lines(*range(20)), shuffle=True)
    files = files.take(3)
    lines = files.flat_map(tf.data.TextLineDataset).batch(3)
    for _ in range(2):
        list(lines)


@triggers("shuffled-split", says="shuffle=False)", pastes=True)
def a_split_of_the_files_of_a_folder():
    files = tf.data.Dataset.list_files(of_lines(*range(8)))
    train, held_back = files.skip(2).interleave(tf.data.TextLineDataset), files.take(2)
    both_parts_twice(train.batch(2), held_back.interleave(tf.data.TextLineDataset))


@triggers("shuffled-split", says="take() and skip() split what rows gives, and it gives another order", pastes=True)
def a_split_of_a_generator_that_shuffles():
    def rows():
        order = np.random.permutation(20)
        for i in order:
            yield i, i % 2

    data = tf.data.Dataset.from_generator(rows, output_signature=(tf.TensorSpec([], tf.int64),) * 2)
    train, test = data.take(15).batch(5), data.skip(15).batch(5)
    for _ in range(2):
        list(train)
        list(test)


@near("shuffled-split")
def a_split_of_a_generator_with_one_order():
    def rows():
        yield from np.random.default_rng(3).permutation(20)

    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int64))
    train, test = data.take(15).batch(5), data.skip(15).batch(5)
    for _ in range(2):
        list(train)
        list(test)


@near("shuffled-split")
def a_split_of_what_a_cache_keeps_of_a_generator_that_shuffles():
    def rows():
        yield from np.random.permutation(20)

    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int64)).cache()
    list(data)
    train, test = data.take(15).batch(5), data.skip(15).batch(5)
    for _ in range(2):
        list(train)
        list(test)


@near("shuffled-split")
def all_files_of_a_folder():
    files = tf.data.Dataset.list_files(of_lines(1, 2, 3)).take(3)
    both_parts_twice(files.interleave(tf.data.TextLineDataset))


@near("shuffled-split")
def more_files_with_each_pass():
    files = tf.data.Dataset.list_files(of_lines(*range(8)))
    for count in (1, 2, 3):
        list(files.take(count).interleave(tf.data.TextLineDataset))


@near("shuffled-split")
def a_few_files_that_are_read_once():
    files = tf.data.Dataset.list_files(of_lines(*range(8))).take(2)
    list(files.interleave(tf.data.TextLineDataset))


@near("shuffled-split")
def a_split_in_an_order_that_stays():
    data = rows().shuffle(40, reshuffle_each_iteration=False)
    both_parts_twice(data.skip(10).shuffle(30), data.take(10))


@near("shuffled-split")
def a_shuffle_after_the_split():
    data = rows()
    both_parts_twice(data.skip(10).shuffle(30), data.take(10))


@near("shuffled-split")
def a_look_at_a_few_elements():
    data = rows().shuffle(40)
    both_parts_twice(data, data.take(3))


@near("shuffled-split")
def an_order_that_is_cached():
    data = rows().shuffle(40).cache()
    list(data)
    both_parts_twice(data.skip(10), data.take(10))


LARGE = np.ones((20, 40, 40, 100), np.float32)


@triggers("unused-input", pastes=True)
def an_image_that_is_not_read():
    def label(image, number):
        return number * 2.0

    data = tf.data.Dataset.from_tensor_slices((LARGE, np.arange(20, dtype=np.float32)))
    list(data.map(lambda image, x: tf.numpy_function(label, [image, x], tf.float32)))


@triggers("unused-input", pastes=True)
def the_last_of_three_is_not_read():
    @tf.function
    def step(a, b, image):
        return tf.py_function(lambda a, b, image: a + b, [a, b, image], tf.float32)

    for image in LARGE:
        step(tf.constant(1.0), tf.constant(2.0), tf.constant(image))


@triggers("unused-input", says="`mask`")
def a_method_that_reads_one():
    class Reader:
        def load(self, image, mask):
            return image[0]

    reader = Reader()
    data = tf.data.Dataset.from_tensor_slices((LARGE, LARGE))
    list(data.map(lambda image, mask: tf.py_function(reader.load, [image, mask], tf.float32)))


@near("unused-input")
def a_number_that_is_not_read():
    def label(image, number):
        return image[0]

    data = tf.data.Dataset.from_tensor_slices((LARGE, np.arange(20, dtype=np.float32)))
    list(data.map(lambda image, x: tf.numpy_function(label, [image, x], tf.float32)))


@near("unused-input")
def an_image_that_an_inner_function_reads():
    def label(image, number):
        def largest():
            return image.max()

        return number + largest()

    data = tf.data.Dataset.from_tensor_slices((LARGE, np.arange(20, dtype=np.float32)))
    list(data.map(lambda image, x: tf.numpy_function(label, [image, x], tf.float32)))


@near("unused-input")
def values_that_are_all_read():
    def label(*values):
        return values[-1]

    data = tf.data.Dataset.from_tensor_slices((LARGE, np.arange(20, dtype=np.float32)))
    list(data.map(lambda image, x: tf.numpy_function(label, [image, x], tf.float32)))


# -- serialization ----------------------------------------------------------------------------------------------------


def saved(function):
    """The function, called once and saved as a model."""
    module = tf.Module()
    module.run = function
    function(tf.constant([1.0, 2.0, 4.0]))
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=function.get_concrete_function(tf.TensorSpec([3])))


@triggers("serialization", pastes=True)
def ops_in_what_is_saved():
    def scale(x):
        y = x - tf.reduce_mean(x)
        return y / tf.norm(y)

    @tf.function
    def step(x):
        return tf.py_function(scale, [x], tf.float32)

    saved(step)


@triggers("serialization", pastes=True)
def numpy_in_what_is_saved():
    def squash(x):
        return np.tanh(x) * np.mean(x)

    @tf.function
    def step(x):
        return tf.numpy_function(squash, [x], tf.float32)

    step.get_concrete_function(tf.TensorSpec([5]))  # the oldest of three nodes of the line is never called
    saved(step)


@triggers("serialization", pastes=True)
def a_lambda_in_what_is_saved():
    @tf.function
    def step(x):
        (y,) = tf.py_function(func=lambda x: tf.nn.softmax(x), inp=[x], Tout=[tf.float32])
        return y + 1.0

    saved(step)


@triggers("serialization", pastes=True)
def a_loop_of_numpy_in_what_is_saved():
    def settled(x):
        y = x.copy()
        for _ in range(5):
            y = y - 0.1 * (y**3 - x)
        return y

    @tf.function
    def step(x):
        return tf.numpy_function(settled, [x], tf.float32)

    saved(step)


@triggers("serialization", pastes=True)
def interpolation_in_what_is_saved():
    def curve(x):
        y = np.interp(x, [0.0, 1.5, 3.0], [0.0, 1.0, 4.0])
        y = np.pad(y, (1, 1), mode="edge")
        return np.maximum.accumulate(y).astype(np.float32)

    @tf.function
    def step(x):
        return tf.numpy_function(curve, [x], tf.float32)

    saved(step)


@triggers("serialization", pastes=True)
def a_percentile_that_was_saved_and_never_called():
    def peak(x):
        return np.percentile(x, 95).astype(np.float32)

    class Scorer(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([8], tf.float32)])
        def score(self, x):
            return tf.numpy_function(peak, [x], tf.float32)

    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(Scorer(), folder)


@near("serialization")
def graph_code_in_what_is_saved():
    @tf.function
    def step(x):
        return x / tf.norm(x)

    saved(step)


@near("serialization")
def python_before_what_is_saved():
    x = tf.numpy_function(np.tanh, [tf.constant([1.0, 2.0, 4.0])], tf.float32)

    @tf.function
    def step(y):
        return y + x.numpy()[0]

    saved(step)


@near("serialization")
def a_checkpoint_of_a_step_with_python():
    @tf.function
    def step(x):
        return tf.numpy_function(np.tanh, [x], tf.float32)

    step(tf.constant([1.0]))
    with tempfile.TemporaryDirectory() as folder:
        tf.train.Checkpoint(v=tf.Variable(1.0)).save(f"{folder}/c")


# -- bytes-compared ---------------------------------------------------------------------------------------------------


def labelled(body, paths=("data/cat/1.jpg", "data/dog/2.jpg"), function=tf.numpy_function):
    list(tf.data.Dataset.from_tensor_slices(list(paths)).map(lambda path: function(body, [path], tf.int64)))


@triggers("bytes-compared", pastes=True)
def label_by_folder():
    def label(path):
        folder = os.path.basename(os.path.dirname(path))
        return np.int64(1) if folder == "cat" else np.int64(0)

    labelled(label)


@triggers("bytes-compared", pastes=True)
def label_by_dict_of_an_eager_tensor():
    labels = {"cat": 1, "dog": 2}

    def label(path):
        return labels.get(path.numpy(), 0)

    labelled(label, ["cat", "dog"], tf.py_function)


@triggers("bytes-compared", pastes=True)
def label_in_a_list_beside_bytes():
    def label(path):
        parts = path.split(b"/")
        return np.int64(parts[-2] in ["cat", "dog"])

    labelled(label)


@near("bytes-compared")
def label_decoded():
    def label(path):
        path = path.decode()
        return np.int64(path.split("/")[1] == "cat")

    labelled(label)


@near("bytes-compared")
def label_by_bytes():
    def label(path):
        return np.int64(path.split(b"/")[1] == b"cat")

    labelled(label)


@near("bytes-compared")
def mode_compared_and_not_the_path():
    mode = "train"

    def label(path):
        return np.int64(len(path) if mode == "train" else 0)

    labelled(label)


# -- late-binding -----------------------------------------------------------------------------------------------------


@triggers("late-binding", pastes=True)
def powers_in_a_graph():
    with tf.Graph().as_default():
        ops = {}
        for power in (1.0, 2.0):
            ops[power] = tf.numpy_function(lambda x: x**power, [tf.constant(3.0)], tf.float32)
        with tf.compat.v1.Session() as session:
            session.run(ops)


@triggers("late-binding", pastes=True)
def scales_in_a_comprehension():
    @tf.function
    def pyramid(x):
        return [tf.py_function(lambda x: x * by, [x], tf.float32) for by in (1.0, 2.0)]

    pyramid(tf.constant(1.0))


@triggers("late-binding", pastes=True)
def functions_in_a_graph():
    with tf.Graph().as_default():
        ops = []
        for shift in (1.0, 2.0):

            def add(x):
                return x + shift

            ops.append(tf.numpy_function(add, [tf.constant(3.0)], tf.float32))
        with tf.compat.v1.Session() as session:
            session.run(ops)


@triggers("late-binding", pastes=True, says="the loop is over then: all of their 6 calls used its last value")
def scales_of_several_pipelines():
    data = tf.data.Dataset.range(3)
    parts = {}
    for scale in (1, 10):
        parts[scale] = data.map(lambda x: tf.numpy_function(lambda v: v * scale, [x], tf.int64))
    for part in parts.values():
        list(part)


@triggers("late-binding", pastes=True)
def named_bodies_of_several_pipelines():
    data = tf.data.Dataset.range(2)
    parts = []
    for number, shift in enumerate((1, 10)):

        def add(v):
            return v + shift * number

        def shifted(x):
            return tf.py_function(add, [x], tf.int64)

        parts.append(data.map(shifted))
    for part in parts:
        list(part)


@triggers("late-binding", pastes=True)
def pipelines_in_a_comprehension():
    data = tf.data.Dataset.range(2)
    parts = [data.map(lambda x: tf.numpy_function(lambda v: v + off, [x], tf.int64)) for off in (5, 6)]
    for part in parts:
        list(part)


@near("late-binding")
def pipelines_that_run_in_the_loop():
    data = tf.data.Dataset.range(2)
    for off in (5, 6):
        list(data.map(lambda x: tf.numpy_function(lambda v: v + off, [x], tf.int64)))


@near("late-binding")
def pipelines_of_a_maker():
    data = tf.data.Dataset.range(2)

    def made(off):
        return data.map(lambda x: tf.numpy_function(lambda v: v + off, [x], tf.int64))

    for part in [made(off) for off in (5, 6)]:
        list(part)


@near("late-binding")
def pipelines_of_a_map_that_reads_in_its_trace():
    data = tf.data.Dataset.range(2)
    parts = {}
    for off in (5, 6):
        parts[off] = data.map(lambda x: tf.numpy_function(lambda v: v + 1, [x], tf.int64) + off)
    for part in parts.values():
        list(part)


@near("late-binding")
def bound_by_a_default():
    with tf.Graph().as_default():
        ops = {}
        for power in (1.0, 2.0):
            ops[power] = tf.numpy_function(lambda x, power=power: x**power, [tf.constant(3.0)], tf.float32)
        with tf.compat.v1.Session() as session:
            session.run(ops)


@near("late-binding")
def loop_that_autograph_converts():
    @tf.function
    def pyramid(x):
        found = {}
        for by in (1.0, 2.0):
            found[by] = tf.py_function(lambda x: x * by, [x], tf.float32)
        return found

    pyramid(tf.constant(1.0))


@near("late-binding")
def run_in_the_loop():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for power in (1.0, 2.0):
            session.run(tf.numpy_function(lambda x: x**power, [tf.constant(3.0)], tf.float32))


@triggers("trace-only", pastes=True, says="= tf.random.uniform([], 0, 100, tf.int32)")
def number_drawn_for_an_element():
    def noisy(x):
        x["noise"] = np.random.randint(0, 100)
        return x

    list(tf.data.Dataset.from_tensor_slices({"key": [1, 2]}).map(noisy))


@triggers("trace-only", pastes=True, says="lambda image, angle: turned(image, angle=angle)")
def angle_drawn_for_a_partial():
    def turned(image, angle):
        return image * np.float32(angle)

    def augment(image):
        angle = np.random.uniform(-1.0, 1.0)
        return tf.numpy_function(functools.partial(turned, angle=angle), [image], tf.float32)

    list(tf.data.Dataset.from_tensor_slices(np.ones((4, 2), np.float32)).map(augment))


# -- ran-out, and Python state that Keras' steps leave alone ----------------------------------------------------------


def fitted(data, layers=(), **options):
    model = keras.Sequential([keras.layers.Input((2,)), *layers, keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=options.pop("metrics", None))
    model.fit(data, verbose=0, **options)


ROWS = np.ones((6, 2), np.float32), np.ones((6, 1), np.float32)


@triggers("ran-out", says="asked for steps_per_epoch=5 batches each time, but the data ended after 3", pastes=True)
def fewer_batches_than_steps():
    data = tf.data.Dataset.from_tensor_slices(ROWS).filter(lambda x, y: True).batch(2)
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, epochs=2, steps_per_epoch=5, verbose=0)


@triggers("ran-out", says="while True:", pastes=True)
def a_generator_for_several_epochs():
    def batches():
        x, y = ROWS
        for _ in range(2):
            yield x, y

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(batches(), epochs=3, steps_per_epoch=2, verbose=0)


@triggers("ran-out", says="A Python generator has one pass", pastes=True)
def a_generator_that_counts_for_one_pass():
    def batches():
        i = 0
        rows = []
        while i < 4:
            rows.append([i, i])
            i = i + 1
            yield np.ones((2, 2), np.float32) * i, np.ones((2, 1), np.float32)

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(batches(), epochs=3, steps_per_epoch=4, verbose=0)


@triggers("ran-out", says="while True:", pastes=True)
def a_generator_of_one_batch():
    def batches(x, y):
        yield x, y

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    given = batches(*ROWS)
    model.fit(given, epochs=2, steps_per_epoch=3, verbose=0)


@triggers("ran-out", says="validation_steps=4 batches each time, but the data ended after 3, 2 times", pastes=True)
def fewer_batches_than_validation_steps():
    data = tf.data.Dataset.from_tensor_slices(ROWS).batch(2)
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, epochs=2, validation_data=data, validation_steps=4, verbose=0)


@near("ran-out")
def epochs_that_end_with_their_data():
    fitted(tf.data.Dataset.from_tensor_slices(ROWS).filter(lambda x, y: True).batch(2), epochs=2)


@near("ran-out")
def steps_that_are_none():
    def train(data, iterations=None):  # aucmedi#190
        model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(data, epochs=2, steps_per_epoch=iterations, verbose=0)

    train(tf.data.Dataset.from_tensor_slices(ROWS).filter(lambda x, y: True).batch(2))


@near("ran-out")
def steps_of_repeated_data():
    fitted(tf.data.Dataset.from_tensor_slices(ROWS).batch(2).repeat(), epochs=2, steps_per_epoch=5)


@near("ran-out")
def a_generator_that_raises_in_a_fit_that_is_caught():
    def batches():
        for n in range(7):
            if n == 3:
                raise ValueError("this row is broken")
            yield np.ones((2, 2), np.float32), np.ones((2, 1), np.float32)

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    tried(lambda: model.fit(batches(), epochs=2, steps_per_epoch=5, verbose=0))


@near("ran-out")
def a_callback_that_ends_fit_with_an_exception():
    class Enough(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                raise LookupError("enough")

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    try:
        model.fit(*ROWS, batch_size=1, epochs=2, steps_per_epoch=5, verbose=0, callbacks=[Enough()])
    except LookupError:
        pass


@near("ran-out")
def validation_of_a_part():
    data = tf.data.Dataset.from_tensor_slices(ROWS).batch(2)
    fitted(data, epochs=2, validation_data=data, validation_steps=2)


@triggers("trace-only", says="and not in each of its 6 steps", pastes=True)
def a_layer_that_counts():
    class Counting(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def call(self, x):
            self.calls += 1
            return x

    model = keras.Sequential([keras.layers.Input((2,)), Counting(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(*ROWS, batch_size=1, verbose=0)


@triggers("trace-only", says="decided by it, once for all steps: if self.batch % 2 == 0:", pastes=True)
def a_counter_of_batches_that_an_update_waits_for():
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)
            self.batch = 0

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            self.batch += 1
            loss = self.compute_loss(x, y, self(x))
            if self.batch % 2 == 0:
                loss = loss * 2.0
            return {"scaled": loss}

    net = Net()
    net.compile("sgd", "mse")
    net.fit(np.ones((8, 2), np.float32), np.ones((8, 1), np.float32), batch_size=2, verbose=0)


@triggers("trace-only", says="self.highest.assign(tf.maximum(self.highest, error))", pastes=True)
def a_metric_that_keeps_a_tensor():
    class Highest(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="highest")
            self.highest = tf.constant(0.0)

        def update_state(self, y_true, y_pred, sample_weight=None):
            error = tf.reduce_max(tf.abs(tf.cast(y_true, tf.float32) - y_pred))
            self.highest = tf.maximum(self.highest, error)

        def result(self):
            return self.highest

        def reset_state(self):
            self.highest = tf.constant(0.0)

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Highest()])
    model.fit(np.ones((12, 3)), np.ones((12, 1)), batch_size=2, verbose=0)


@near("trace-only")
def a_metric_with_a_variable():
    class Highest(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="highest")
            self.highest = self.add_weight(name="highest", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.error = tf.reduce_max(tf.abs(tf.cast(y_true, tf.float32) - y_pred))
            self.highest.assign(tf.maximum(self.highest, self.error))

        def result(self):
            return self.highest

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Highest()])
    model.fit(np.ones((12, 3)), np.ones((12, 1)), batch_size=2, verbose=0)


@triggers("trace-only", says="w = tf.where(step < 3, 1.0, 0.1)", pastes=True)
def a_loss_that_counts_its_steps():
    def made():
        step = 0

        def loss(y_true, y_pred):
            nonlocal step
            step += 1
            w = 1.0 if step < 3 else 0.1
            return w * tf.reduce_mean(tf.square(y_true - y_pred))

        return loss

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", made())
    model.fit(*ROWS, batch_size=1, verbose=0)


@triggers("trace-only", says="decided by it, once for all steps: if seen > 2", pastes=True)
def a_metric_that_asks_its_counter():
    seen = 0

    def noted(y_true, y_pred):
        nonlocal seen
        seen += 1
        if seen > 2:
            return tf.reduce_mean(y_true - y_pred)
        return tf.reduce_sum(y_true - y_pred)

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[noted])
    model.fit(*ROWS, batch_size=1, verbose=0)


@near("trace-only")
def a_maker_of_losses_that_counts_them():
    made_losses = 0

    def made():
        nonlocal made_losses
        made_losses += 1

        def loss(y_true, y_pred):
            return tf.reduce_mean(tf.square(y_true - y_pred))

        return loss

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", made())
    model.fit(*ROWS, batch_size=1, verbose=0)


@triggers("trace-only", says="tf.py_function(lambda y_true, y_pred: errors.append(", pastes=True)
def a_metric_that_keeps_a_list():
    errors = []

    def noted(y_true, y_pred):
        errors.append(tf.reduce_mean(y_true - y_pred))
        return tf.reduce_mean(y_true - y_pred)

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[noted])
    model.fit(*ROWS, batch_size=1, verbose=0)


@near("trace-only")
def a_layer_with_a_list_of_its_own():
    class Stacked(keras.layers.Layer):
        def call(self, x):
            parts = []
            parts.append(x)
            return parts[0]

    fitted(tf.data.Dataset.from_tensor_slices(ROWS).batch(1), [Stacked()])


@triggers("output-contract", says="_, samples = tf.py_function(read, [path], [tf.int64, tf.float32])", pastes=True)
def one_name_for_two_values():
    def read(path):
        return 8000, np.ones(3, np.float32)

    def load(path):
        samples = tf.py_function(read, [path], tf.float32)
        return samples

    for _ in tf.data.Dataset.from_tensors("a.wav").map(load):
        pass


# -- dropped-dataset, same-draws --------------------------------------------------------------------------------------


@triggers("dropped-dataset", says="data.batch(...) gives a new dataset", pastes=True)
def a_batch_that_nothing_keeps():
    data = tf.data.Dataset.range(4).map(lambda x: x + 1)
    data.batch(2)
    for _ in data:
        pass


@near("empty-recording")  # which the other rule says
@triggers("dropped-dataset", says="data itself stays as it was")
def a_map_that_nothing_keeps():
    data = tf.data.Dataset.range(4)
    data = data.filter(lambda x: x >= 0)
    data.map(
        lambda x: tf.numpy_function(np.square, [x], tf.int64),
    )
    for _ in data:
        pass


@triggers("dropped-dataset", says="without this shuffle", pastes=True)
def a_shuffle_that_nothing_keeps():
    data = tf.data.Dataset.from_tensor_slices([1, 2, 3]).map(lambda x: x * 2)
    data.shuffle(3)
    list(data)


@triggers("dropped-dataset", says="this shuffle and repeat", pastes=True)
def a_shuffle_and_a_repeat_that_nothing_keeps():
    def batches(mode, rows=6):
        dataset = tf.data.Dataset.from_generator(lambda: iter(range(rows)), tf.int64, [])
        if mode == "train":
            dataset.shuffle(rows).repeat(3)
        dataset = dataset.batch(2)
        return dataset

    for _ in batches("train"):
        pass


@triggers("dropped-dataset", says="self.train itself stays as it was", pastes=True)
def a_dataset_of_an_object_that_is_not_batched():
    class Data:
        def __init__(self):
            self.train = tf.data.Dataset.range(3).map(lambda x: x + 1)

        def prepared(self):
            self.train.shuffle(3).batch(2)
            return self.train

    for _ in Data().prepared():
        pass


@triggers("dropped-dataset", says="given.map(...) gives a new dataset", pastes=True)
def an_argument_that_is_not_mapped():
    def doubled_by_nobody(given):
        given.map(lambda x: x * 2)
        given = given.batch(2)
        return given

    for _ in doubled_by_nobody(tf.data.Dataset.range(4).filter(lambda x: x > 1)):
        pass


@triggers("dropped-write", says="inner = inner.write(j,", pastes=True)
def an_array_whose_writes_a_graph_drops():
    @tf.function
    def outer_product(n):
        outer = tf.TensorArray(tf.float32, size=n)
        for i in tf.range(n):
            inner = tf.TensorArray(tf.float32, size=3, element_shape=[2])
            for j in tf.range(3):
                inner.write(j, tf.fill([2], tf.cast(i * j, tf.float32)))
            outer = outer.write(i, inner.stack())
        return outer.stack()

    outer_product(2)


@near("dropped-write")
def an_array_that_eager_code_writes_to_and_a_file():
    class Log:
        def write(self, text):
            self.text = text

    def filled(n):
        array = tf.TensorArray(tf.float32, size=n)
        for i in range(n):
            array.write(i, float(i))
        return array.stack()

    @tf.function
    def logged(x):
        log = Log()
        log.write("TensorArray(")
        array = tf.TensorArray(tf.float32, size=1)
        array = array.write(0, x)
        return array.stack()

    filled(3)
    logged(1.0)


@near("dropped-dataset")
def each_step_kept():
    data = tf.data.Dataset.range(4).map(lambda x: x + 1)
    data = data.shuffle(4)
    list(data.batch(2))


@near("dropped-dataset")
def a_list_with_a_method_of_that_name():
    class Deck:
        def shuffle(self, seed):
            self.seed = seed

    data = Deck()
    data.shuffle(1)
    list(tf.data.Dataset.range(2).map(lambda x: x + 1))


@near("dropped-dataset")
def a_name_that_may_be_something_else():
    class Cards:
        def take(self, count):
            self.count = count

    def taken_from(data):
        data.take(1)
        return data

    taken_from(Cards())
    list(taken_from(tf.data.Dataset.range(2).map(lambda x: x + 1)))


@near("dropped-dataset")
def a_dataset_in_a_chain_that_gives_none():
    data = tf.data.Dataset.range(4).map(lambda x: x + 1)
    data.repeat().as_numpy_iterator()
    rows = list(data.batch(2))
    rows = np.array(rows)
    rows.repeat(2)
    next(iter(data.take(1)))
    print(rows, data)


@near("dropped-dataset")
def a_dataset_that_nothing_reads_any_more():
    data = tf.data.Dataset.range(2).map(lambda x: x + 1)
    for _ in data:
        pass
    data.cache()


@triggers("same-draws", says="all 3 calls drew the same numbers", pastes=True)
def a_seed_in_the_body():
    def noisy(x):
        np.random.seed(42)
        return x + np.random.rand()

    list(mapped(noisy, np.zeros(3), tf.float64))


@triggers("same-draws", says="random.seed(1): once, above", pastes=True)
def a_seed_of_pythons_in_the_body():
    def flipped(x):
        random.seed(1)
        return x if random.random() < 0.5 else -x

    list(mapped(flipped, np.ones(3), tf.float64))


@triggers("same-draws", says="rng = np.random.default_rng(7): once, above", pastes=True)
def a_generator_made_in_the_body():
    def noisy(x):
        rng = np.random.default_rng(7)
        return x + rng.random()

    list(mapped(noisy, np.zeros(3), tf.float64))


@near("same-draws")
def a_seed_for_each_element():
    def noisy(x):
        rng = np.random.default_rng(int(x))
        return x + rng.random()

    list(mapped(noisy, np.zeros(3), tf.float64))


@near("same-draws")
def a_seed_outside():
    np.random.seed(0)

    def noisy(x):
        return x + np.random.rand()

    list(mapped(noisy, np.zeros(3), tf.float64))


@near("same-draws")
def a_seed_behind_the_draw():
    def noisy(x):
        rng = np.random.default_rng()
        np.random.seed(3)
        return x + rng.random()

    list(mapped(noisy, np.zeros(3), tf.float64))


# -- batch-mean -------------------------------------------------------------------------------------------------------


@triggers("batch-mean", says="mean over batches of f1", pastes=True)
def an_f1_of_numpy():
    def f1_numpy(y_true, y_pred):
        pred, true = y_pred > 0.4, y_true > 0.5
        return np.float32(2 * np.sum(pred & true) / (np.sum(pred) + np.sum(true) + 1e-7))

    def f1(y_true, y_pred):
        return tf.ensure_shape(tf.numpy_function(f1_numpy, [y_true, y_pred], tf.float32), [])

    x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    y = np.tile(np.float32([[0], [1], [0], [0]]), (16, 1))
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones")]
    )
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy", f1])
    model.fit(x, y, batch_size=8, shuffle=False, verbose=0)


@triggers("batch-mean", says="OfEpoch(correlation)", pastes=True)
def a_correlation_in_a_py_function():
    def correlation(y_true, y_pred):
        def pearson(a, b):
            return np.float32(np.corrcoef(a.numpy().ravel(), b.numpy().ravel())[0, 1])

        value = tf.py_function(pearson, [y_true, y_pred], tf.float32)
        value.set_shape([])
        return value

    x = np.random.default_rng(1).normal(size=(48, 3)).astype(np.float32)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(
        loss="mse",
        optimizer="sgd",
        metrics=[correlation],  # on a line of its own
    )
    model.fit(x, x[:, :1], batch_size=4, shuffle=False, verbose=0)


@triggers("batch-mean", record={"values": "full"}, says="recorded ones", pastes=True)
def a_largest_error_with_values():
    def worst(y_true, y_pred):
        largest = tf.numpy_function(lambda t, p: np.max(np.abs(t - p)), [y_true, y_pred], tf.float32)
        return tf.ensure_shape(largest, [])

    x = np.random.default_rng(2).normal(size=(48, 3)).astype(np.float32)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse", metrics=[worst])
    model.fit(x, x[:, :1], batch_size=4, shuffle=False, verbose=0)


@near("batch-mean")
def a_mean_of_numpy():
    def wrong(y_true, y_pred):
        def share(t, p):
            return np.mean((t > 0.5) != (p > 0.5), dtype=np.float32)

        return tf.ensure_shape(tf.numpy_function(share, [y_true, y_pred], tf.float32), [])

    x = np.random.default_rng(3).normal(size=(48, 3)).astype(np.float32)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[wrong])
    model.fit(x, x[:, :1], batch_size=4, verbose=0)


@near("batch-mean")
def one_value_for_each_row():
    def largest(y_true, y_pred):
        worst = tf.numpy_function(lambda t, p: np.abs(t - p).max(axis=1), [y_true, y_pred], tf.float32)
        return tf.ensure_shape(worst, [None])

    x = np.random.default_rng(4).normal(size=(48, 3)).astype(np.float32)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[largest])
    model.fit(x, x[:, :1], batch_size=4, verbose=0)


@near("batch-mean")
def a_metric_that_notes_something():
    seen = []

    def worst(y_true, y_pred):
        def noted(t, p):
            seen.append(len(t))
            return np.max(np.abs(t - p))

        return tf.ensure_shape(tf.numpy_function(noted, [y_true, y_pred], tf.float32), [])

    x = np.random.default_rng(5).normal(size=(48, 3)).astype(np.float32)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[worst])
    model.fit(x, x[:, :1], batch_size=4, verbose=0)


@near("batch-mean")
def one_batch_an_epoch():
    def worst(y_true, y_pred):
        largest = tf.numpy_function(lambda t, p: np.max(np.abs(t - p)), [y_true, y_pred], tf.float32)
        return tf.ensure_shape(largest, [])

    x = np.random.default_rng(6).normal(size=(48, 3)).astype(np.float32)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[worst])
    model.fit(x, x[:, :1], batch_size=48, epochs=4, verbose=0)


# -- dropped-write ----------------------------------------------------------------------------------------------------


@triggers("dropped-write", says="squares = squares.write(i, i * i)", pastes=True)
def a_write_in_a_loop():
    @tf.function
    def first(n):
        squares = tf.TensorArray(tf.int32, size=n)
        for i in tf.range(n):
            squares.write(i, i * i)
        return squares.stack()

    first(tf.constant(3))


@triggers("dropped-write", pastes=True)
def a_write_in_a_map():
    def pair(x):
        both = tf.TensorArray(tf.float32, size=2)
        both = both.write(0, x)
        both.write(1, -x)
        return both.stack()

    list(tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(pair))


@triggers("dropped-write", says="parts = parts.unstack(x)", pastes=True)
def an_unstack_whose_result_is_dropped():
    @tf.function
    def last(x):
        parts = tf.TensorArray(tf.float32, size=2)
        parts.unstack(x)
        return parts.read(1)

    last(tf.constant([1.0, 2.0]))


@near("dropped-write")
def writes_that_are_kept():
    @tf.function
    def squares(n):
        found = tf.TensorArray(tf.int32, size=n)
        for i in tf.range(n):
            found = found.write(i, i * i)
        return found.stack()

    squares(tf.constant(3))


@near("dropped-write")
def an_eager_array():
    found = tf.TensorArray(tf.int32, size=2)
    found.write(0, 1)
    found.write(1, 2)
    found.stack()


@near("dropped-write")
def a_file_that_is_written():
    lines = []

    class Log:
        def write(self, place, text):
            lines.append((place, text))

    @tf.function
    def told(x):
        log = Log()
        log.write(0, "traced")
        return x * 2

    told(tf.constant(1.0))
