"""Programs that do not fail, as `programs`: what sessions of TensorFlow 1 run, and on which elements."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

tf1 = tf.compat.v1
ROWS = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)


def flip(row):
    return row[::-1].copy() if np.random.rand() < 0.5 else row


def doubled(row):
    return row * 2


def jittered(row, training):
    if training:
        row = row + np.random.normal(size=row.shape).astype(np.float32)
    return row


def made(body, data=ROWS):
    """Batches of a Dataset whose map calls a body."""

    def called(row):
        given = tf1.py_func(body, [row], tf.float32)
        given.set_shape([4])
        return given

    return tf1.data.make_one_shot_iterator(tf1.data.Dataset.from_tensor_slices(data).map(called).batch(8).repeat())


def model(x):
    w = tf1.get_variable("w", [4, 1])
    given = tf.matmul(x, w)
    loss = tf.reduce_mean(tf.square(given - 1.0))
    return given, loss, tf1.train.GradientDescentOptimizer(0.1).minimize(loss)


def started():
    session = tf1.Session()
    session.run(tf1.global_variables_initializer())
    return session


# -- augmented-validation ---------------------------------------------------------------------------------------------


@triggers("augmented-validation", says="flip draws random numbers, and stands in the Dataset that line")
def one_dataset_for_both():
    with tf.Graph().as_default():
        given, _, train = model(made(flip).get_next())
        error = tf.reduce_mean(tf.abs(given))
        with started() as session:
            for _ in range(3):
                for _ in range(4):
                    session.run(train)
                print("validation error", np.mean([session.run(error) for _ in range(2)]) >= 0)


@triggers("augmented-validation", says="flip draws random numbers, and stands in the queue that line")
def one_queue_for_training_and_features():
    with tf.Graph().as_default():
        (row,) = tf1.train.slice_input_producer([ROWS])
        row = tf1.py_func(flip, [row], tf.float32)
        row.set_shape([4])
        given, loss, train = model(tf1.train.batch([row], batch_size=8))
        with started() as session:
            ends = tf1.train.Coordinator()
            threads = tf1.train.start_queue_runners(session, ends)
            for _ in range(4):
                session.run([train, loss])
            features = []
            while len(features) < 3:
                features.append(session.run(given))
            ends.request_stop()
            ends.join(threads)


@triggers("augmented-validation", says="and stands in the graph that line")
def a_body_in_the_step():
    def evaluate(session, given, x):
        return session.run(given, feed_dict={x: ROWS[24:]}).mean()

    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 4])
        moved = tf1.py_func(lambda rows: rows + np.random.normal(size=rows.shape).astype("f"), [x], tf.float32)
        moved.set_shape([None, 4])
        given, _, train = model(moved)
        with started() as session:
            for _ in range(3):
                session.run(train, {x: ROWS[:24]})
                evaluate(session, given, x)


@near("augmented-validation")
def a_dataset_for_each():
    with tf.Graph().as_default():
        x = made(flip).get_next()
        plain = made(doubled).get_next()
        given, _, train = model(x)
        with started() as session:
            for _ in range(3):
                session.run(train)
            for _ in range(3):
                predicted = session.run(given, {x: session.run(plain)})
            assert len(predicted) == 8


@near("augmented-validation")
def two_datasets_and_a_handle():
    with tf.Graph().as_default():
        train_it, val_it = made(flip), made(doubled)
        handle = tf1.placeholder(tf.string, [])
        x = tf1.data.Iterator.from_string_handle(handle, tf.float32, [None, 4]).get_next()
        given, _, train = model(x)
        with started() as session:
            first, second = session.run([train_it.string_handle(), val_it.string_handle()])
            for _ in range(3):
                session.run(train, {handle: first})
            for _ in range(3):
                validation = session.run(given, {handle: second})
            assert len(validation) == 8


@near("augmented-validation")
def one_iterator_made_for_either():
    def called(body):
        def inner(row):
            given = tf1.py_func(body, [row], tf.float32)
            given.set_shape([4])
            return given

        return inner

    with tf.Graph().as_default():
        data = tf1.data.Dataset.from_tensor_slices(ROWS)
        train_set, val_set = data.map(called(flip)).batch(8), data.map(called(doubled)).batch(8)
        iterator = tf1.data.Iterator.from_structure(tf.float32, [None, 4])
        begin_training, begin_validation = iterator.make_initializer(train_set), iterator.make_initializer(val_set)
        given, _, train = model(iterator.get_next())
        with started() as session:
            session.run(begin_training)
            for _ in range(3):
                session.run(train)
            session.run(begin_validation)
            for _ in range(3):
                val_given = session.run(given)
            assert len(val_given) == 8


@near("augmented-validation")
def a_look_at_the_training():
    with tf.Graph().as_default():
        _, loss, train = model(made(flip).get_next())
        tf1.summary.scalar("loss", loss)
        summary = tf1.summary.merge_all()
        with started() as session:
            for step in range(6):
                session.run([train, summary])
                if step % 2 == 0:
                    loss_val = session.run(loss)
                    assert loss_val >= 0
                    print("loss", session.run(loss) >= 0)
                    session.run(summary)


@near("augmented-validation")
def nothing_is_trained():
    with tf.Graph().as_default():
        given, _, _ = model(made(flip).get_next())
        with started() as session:
            for _ in range(3):
                predictions = session.run(given)
            assert len(predictions) == 8


@near("augmented-validation")
def several_turns_on_purpose():
    with tf.Graph().as_default():
        given, _, train = model(made(flip).get_next())
        with started() as session:
            for _ in range(3):
                session.run(train)
            turns = []
            while len(turns) < 4:
                turns.append(session.run(given))
            assert np.mean(turns, axis=0).shape == (8, 1)


@near("augmented-validation")
def a_body_with_a_flag():
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 4])
        training = tf1.placeholder_with_default(False, [])
        moved = tf1.py_func(jittered, [x, training], tf.float32)
        moved.set_shape([None, 4])
        given, _, train = model(moved)
        with started() as session:
            for _ in range(3):
                session.run(train, {x: ROWS, training: True})
            test_given = session.run(given, {x: ROWS})
            assert len(test_given) == 32


@near("augmented-validation")
def a_branch_for_the_training():
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 4])
        training = tf1.placeholder_with_default(False, [])
        moved = tf1.cond(training, lambda: tf1.py_func(doubled_at_random, [x], tf.float32), lambda: x)
        moved.set_shape([None, 4])
        given, _, train = model(moved)
        with started() as session:
            for _ in range(3):
                session.run(train, {x: ROWS, training: True})
            test_given = session.run(given, {x: ROWS})
            assert len(test_given) == 32


def doubled_at_random(rows):
    return rows * np.float32(np.random.randint(1, 3))


@near("augmented-validation")
def the_model_explores():
    def explored(values):
        return values + np.random.normal(size=values.shape).astype(np.float32)

    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 4])
        given, _, train = model(x)
        chosen = tf1.py_func(explored, [given], tf.float32)
        chosen.set_shape([None, 1])
        loss = tf.reduce_mean(chosen * given)
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with started() as session:
            for _ in range(3):
                session.run(train, {x: ROWS})
            for _ in range(3):
                predicted = session.run(chosen, {x: ROWS})
            assert len(predicted) == 32
