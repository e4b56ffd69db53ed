"""Small programs as users write them: those that must lead to a finding, and those that come near and must not.

One process runs them all, each in a recording of its own. A program may fail: what it raises is caught outside of its
recording, as a terminal would.
"""
# ruff: noqa: B023, N803

from __future__ import annotations

import numpy as np
import tensorflow as tf

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


# -- nan-born, inf-born -----------------------------------------------------------------------------------------------


@triggers("nan-born")
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


@triggers("inf-born")
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


@triggers("none-gradient")
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


@triggers("none-gradient")
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


@triggers("leaked-tapes")
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


@triggers("body-raised", severity="error", ends_with=tf.errors.InvalidArgumentError)
def a_bad_record_ends_the_program():
    def parse(x):
        if x == 7:
            raise ValueError("bad record")
        return x

    list(tf.data.Dataset.range(10).map(lambda x: tf.numpy_function(parse, [x], tf.int64)))


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


@triggers("stop-iteration")
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


@triggers("trace-failed", severity="error", ends_with=AttributeError)
def numpy_of_a_symbolic_tensor():
    @tf.function
    def step(x):
        y = x + 1
        return y.numpy()

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
def a_run_that_fails():
    @tf.function
    def step(x):
        tf.debugging.assert_positive(x)
        return x

    tried(step, tf.constant(-1.0))


# -- retrace ----------------------------------------------------------------------------------------------------------


@triggers("retrace")
def a_python_number_changes():
    @tf.function
    def step(x, rate):
        return x * rate

    for i in range(6):
        step(tf.constant(1.0), 0.1 * i)


@triggers("retrace")
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


@triggers("function-in-loop")
def a_lambda_made_in_a_loop():
    for _ in range(8):
        tf.function(lambda x: x * 2)(tf.constant(1.0))


@triggers("function-in-loop")
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


@triggers("dataset-in-loop")
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


@triggers("empty-recording")
def a_function_that_is_only_traced():
    tf.function(lambda x: tf.py_function(lambda x: x, [x], tf.float32)).get_concrete_function(tf.TensorSpec([]))


@triggers("empty-recording")
def a_stateless_node_without_a_consumer():
    @tf.function
    def step(x):
        tf.numpy_function(lambda x: x, [x], tf.float32, stateful=False)
        return x + 1

    step(tf.constant(1.0))


@near("empty-recording")
def a_branch_that_is_not_taken():
    @tf.function
    def step(x):
        if x > 0:
            return tf.py_function(lambda x: x, [x], tf.float32)
        return tf.py_function(lambda x: -x, [x], tf.float32)

    step(tf.constant(1.0))


@near("empty-recording")
def no_python_at_all():
    tf.reduce_sum(tf.ones([3]))


# -- wrong-tape, missing-tape -----------------------------------------------------------------------------------------


def square_node():
    return tf.function(lambda x: tf.py_function(lambda x: x * x, [x], tf.float32))


@triggers("wrong-tape", ends_with=tf.errors.UnknownError)
def one_node_called_twice():
    square, a, b = square_node(), tf.constant(2.0), tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = square(a) + square(b)
    tape.gradient(y, [a, b])


@triggers("missing-tape", ends_with=tf.errors.UnknownError)
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


@triggers("variable-no-input")
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
