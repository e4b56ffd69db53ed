"""More programs that do not fail: generators made in loops, branches that are not taken, numbers in lambdas."""
# ruff: noqa: B023

from __future__ import annotations

import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- late-binding: generators -----------------------------------------------------------------------------------------


@triggers("late-binding", says="made 3 generators that read 'name' when they run", pastes=True)
def generators_of_a_loop():
    def read(name):
        yield name

    parts = []
    for name in ["a", "b", "c"]:
        ds = tf.data.Dataset.from_generator(lambda: read(name), output_signature=tf.TensorSpec((), tf.string))
        parts.append(ds)
    for part in parts:
        list(part)


@triggers("late-binding", pastes=True)
def generators_by_def_in_a_loop():
    parts = {}
    for name, count in {"a": 1, "b": 2}.items():

        def rows():
            for number in range(count):
                yield name + str(number)

        parts[name] = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.string)).batch(1)
    for part in parts.values():
        list(part)


@triggers("late-binding", pastes=True)
def generators_that_are_joined():
    joined = None
    for first in (0, 10):
        one = tf.data.Dataset.from_generator(lambda: iter([first]), output_signature=tf.TensorSpec((), tf.int64))
        joined = one if joined is None else joined.concatenate(one)
    list(joined)


@near("late-binding")
def generators_with_args():
    def read(name):
        yield name

    spec = tf.TensorSpec((), tf.string)
    parts = [tf.data.Dataset.from_generator(read, args=(name,), output_signature=spec) for name in ["a", "b"]]
    for part in parts:
        list(part)


@near("late-binding")
def generators_that_run_in_their_turn():
    for first in (0, 10):
        list(tf.data.Dataset.from_generator(lambda: iter([first]), output_signature=tf.TensorSpec((), tf.int64)))


@near("late-binding")
def generators_whose_name_a_later_loop_sets():
    parts = []
    for first in (0, 10):
        spec = tf.TensorSpec((), tf.int64)
        parts.append(tf.data.Dataset.from_generator(lambda: iter([first]), output_signature=spec))
    for first, part in zip((0, 10), parts):  # noqa: B007
        list(part)


# -- empty-recording: branches ----------------------------------------------------------------------------------------


@triggers("empty-recording", says="where `tf.reduce_max(x) > 100.0` is true, which none of 3 runs took")
def a_branch_under_autograph():
    @tf.function
    def step(x):
        if tf.reduce_max(x) > 100.0:
            x = tf.py_function(lambda value: value, [x], tf.float32)
        return x

    for number in range(3):
        step(tf.ones(3) * number)


@triggers("empty-recording", says="where `tf.reduce_max(x) < 100.0` is false, which its one run did not take")
def the_other_branch_of_a_cond():
    @tf.function
    def step(x):
        def other():
            return tf.py_function(lambda value: value, [x], tf.float32)

        return tf.cond(tf.reduce_max(x) < 100.0, lambda: x, other)

    step(tf.ones(3))


@triggers("empty-recording", says="is true, and that was not taken")
def a_branch_of_a_map():
    def double(x):
        return tf.cond(x > 100, lambda: tf.py_function(lambda value: value * 2, [x], tf.int64), lambda: x)

    list(tf.data.Dataset.range(3).map(double))


@triggers("empty-recording", says="step(...)  # a tf.function runs when it is called")
def a_branch_of_a_function_that_never_ran():
    @tf.function
    def step(x):
        if tf.reduce_max(x) > 100.0:
            x = tf.py_function(lambda value: value, [x], tf.float32)
        return x

    step.get_concrete_function(tf.TensorSpec((3,)))


# -- stale-closure: lambdas -------------------------------------------------------------------------------------------


@triggers("stale-closure", says="lr.assign(lr.numpy() / 2)", pastes=True)
def a_number_in_a_lambda_layer():
    lr = 1.0
    x = tf.keras.Input((3,))
    model = tf.keras.Model(x, tf.keras.layers.Lambda(lambda x: x / lr)(tf.keras.layers.Dense(1)(x)))
    model.compile("sgd", "mse")
    for number in range(3):
        lr = lr / 2
        loss = model.train_on_batch(tf.ones((4, 3)), tf.ones((4, 1)))
        print(number, "lr", lr, "loss", float(loss))


@triggers("stale-closure", says='print(f"beta {beta.numpy():.2f}")', pastes=True)
def a_number_in_the_lambda_of_a_loss():
    beta = 4.0
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", loss=lambda y, p: tf.reduce_mean((y - p) ** 2) + beta * tf.reduce_mean(p**2))
    for _ in range(3):
        model.fit(tf.ones((4, 3)), tf.ones((4, 1)), verbose=0)
        beta *= 0.5
        print(f"beta {beta:.2f}")


@near("stale-closure")
def a_number_in_a_lambda_that_stays():
    scale = 2.0
    rate = 1.0
    x = tf.keras.Input((3,))
    model = tf.keras.Model(x, tf.keras.layers.Dense(1)(tf.keras.layers.Lambda(lambda x: x / scale)(x)))
    model.compile("sgd", "mse")
    for _ in range(2):
        model.train_on_batch(tf.ones((4, 3)) * rate, tf.ones((4, 1)))
        rate = rate / 2
