"""Programs that validate with what they train with, beside data that are there for it; and programs that do not."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


def rows(seed):
    x = np.random.default_rng(seed).normal(size=(16, 4)).astype(np.float32)
    return x, x[:, :1]


def generator(x, y):
    def pairs():
        yield from zip(x, y)

    return pairs


def model():
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


SPEC = (tf.TensorSpec((4,), tf.float32), tf.TensorSpec((1,), tf.float32))


@triggers("same-validation", says="val_ds is made of train_rows, with which fit trains", pastes=True)
def two_generators_of_one_source():
    train_rows = rows(0)
    val_rows = rows(1)  # noqa: F841
    train_ds = tf.data.Dataset.from_generator(generator(*train_rows), output_signature=SPEC).batch(4)
    val_ds = tf.data.Dataset.from_generator(generator(*train_rows), output_signature=SPEC).batch(4)
    model().fit(train_ds, validation_data=val_ds, verbose=0)


@triggers("same-validation", says="validation_data holds x_train and y_train", pastes=True)
def arrays_of_the_training():
    x_train, y_train = rows(0)
    x_test, y_test = rows(1)  # noqa: RUF059
    model().fit(x_train, y_train, validation_data=(x_train, y_train), verbose=0)


@triggers("same-validation", says="nothing reads valid_x and valid_y", pastes=True)
def slices_of_the_training():
    train_x, train_y = rows(0)
    valid_x, valid_y = rows(1)  # noqa: RUF059
    train = tf.data.Dataset.from_tensor_slices((train_x, train_y)).batch(4)
    valid = tf.data.Dataset.from_tensor_slices((train_x, train_y)).batch(8)
    model().fit(x=train, validation_data=valid, verbose=0)


def batches(x, y, size):
    while True:
        for at in range(0, len(x), size):
            yield x[at : at + size], y[at : at + size]


@triggers("same-validation", says="pairs is one generator, which fit takes its batches from and the validation, too")
def one_generator_for_both():
    x_train, y_train = rows(0)
    pairs = batches(x_train, y_train, 2)
    model().fit(pairs, steps_per_epoch=2, validation_data=pairs, validation_steps=1, verbose=0)


@near("same-validation")
def a_generator_for_each():
    x_train, y_train = rows(0)
    x_test, y_test = rows(1)
    pairs, others = batches(x_train, y_train, 2), batches(x_test, y_test, 2)
    model().fit(pairs, steps_per_epoch=2, validation_data=others, validation_steps=1, verbose=0)


@near("same-validation")
def data_of_their_own():
    x_train, y_train = rows(0)
    x_val, y_val = rows(1)
    model().fit(x_train, y_train, validation_data=(x_val, y_val), verbose=0)


@near("same-validation")
def data_for_another_step():
    x_train, y_train = rows(0)
    x_test, y_test = rows(1)
    made = model()
    made.fit(x_train, y_train, validation_data=(x_train, y_train), verbose=0)
    made.evaluate(x_test, y_test, verbose=0)


@near("same-validation")
def a_part_of_the_training():
    x_train, y_train = rows(0)
    model().fit(x_train[:12], y_train[:12], validation_data=(x_train[12:], y_train[12:]), verbose=0)
