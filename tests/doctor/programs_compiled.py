"""What `compile` is given and Keras leaves out in silence, and settings of optimizers that nothing reads."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- uncounted-loss ---------------------------------------------------------------------------------------------------


@triggers("uncounted-loss", says="the last one is compared with nothing", pastes=True)
def one_loss_for_two_outputs():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    inputs = keras.Input((3,))
    outputs = [keras.layers.Dense(1)(inputs), keras.layers.Dense(1)(inputs)]
    model = keras.Model(inputs, outputs)
    model.compile("sgd", loss=["mse"])
    model.fit(x, [y, y], verbose=0)


@triggers("uncounted-loss", says="computes the first only, 'mse'", pastes=True)
def two_losses_for_one_output():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss=['mse', 'mae'])  # fmt: skip
    model.fit(x, y, verbose=0)


@triggers("uncounted-loss", says="one output, and a list of 2 losses", pastes=True)
def losses_that_are_objects_for_one_output():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
    model.compile("sgd", [tf.keras.losses.MeanSquaredError(), tf.keras.losses.MeanAbsoluteError()])
    model.fit(x, y, verbose=0)


@near("uncounted-loss")
def a_loss_for_each_output():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    inputs = keras.Input((3,))
    model = keras.Model(inputs, [keras.layers.Dense(1)(inputs), keras.layers.Dense(1)(inputs)])
    model.compile("sgd", loss=["mse", "mae"])
    model.fit(x, [y, y], verbose=0)


@near("uncounted-loss")
def one_loss_in_a_list():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss=["mse"])
    model.fit(x, y, verbose=0)


@near("uncounted-loss")
def an_output_that_is_said_to_have_no_loss():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    inputs = keras.Input((3,))
    model = keras.Model(inputs, outputs=[keras.layers.Dense(1)(inputs), keras.layers.Dense(1)(inputs)])
    model.compile("sgd", loss=["mse", None])
    model.fit(x, [y, y], verbose=0)


@near("uncounted-loss")
def a_subclassed_model_of_unknown_outputs():
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b = keras.layers.Dense(1), keras.layers.Dense(1)

        def call(self, x):
            return self.a(x), self.b(x)

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = Two()
    model.compile("sgd", loss=["mse", "mae"])
    model.fit(x, (y, y), verbose=0)


# -- regression-accuracy ----------------------------------------------------------------------------------------------


@triggers("regression-accuracy", says="hit a class", pastes=True)
def accuracy_of_a_regression():
    x, y = np.ones((8, 3), "float32"), np.linspace(0, 9, 8, dtype="float32")[:, None]
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["accuracy"])
    model.fit(x, y, verbose=0)


@triggers("regression-accuracy", says='Dense(1, activation="linear") with mae', pastes=True)
def accuracy_beside_another_metric():
    x, y = np.ones((8, 3), "float32"), np.linspace(0, 9, 8, dtype="float32")[:, None]
    model = keras.Sequential()
    model.add(keras.layers.Input((3,)))
    model.add(keras.layers.Dense(1, activation="linear"))
    model.compile(optimizer="sgd", loss="mae", metrics=["mse", "acc"])
    model.fit(x, y, verbose=0)


@triggers("regression-accuracy", says="predicts numbers", pastes=True)
def accuracy_of_a_functional_model_with_a_loss_that_is_an_object():
    x, y = np.ones((8, 3), "float32"), np.linspace(0, 9, 8, dtype="float32")[:, None]
    inputs = tf.keras.Input((3,))
    outputs = tf.keras.layers.Dense(1)(inputs)
    model = tf.keras.Model(inputs, outputs)
    model.compile("sgd", loss=tf.keras.losses.MeanSquaredError(), metrics=["accuracy"])
    model.fit(x, y, verbose=0)


@near("regression-accuracy")
def accuracy_of_a_squared_error_behind_a_sigmoid():
    x, y = np.ones((8, 3), "float32"), np.array([[0], [1]] * 4, "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "mse", metrics=["accuracy"])
    model.fit(x, y, verbose=0)


@near("regression-accuracy")
def accuracy_of_classes():
    x, y = np.ones((8, 3), "float32"), np.array([0, 1] * 4)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, verbose=0)


@near("regression-accuracy")
def squared_errors_of_vectors_of_classes():
    x, y = np.ones((8, 3), "float32"), np.eye(2, dtype="float32")[[0, 1] * 4]
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse", metrics=["accuracy"])
    model.fit(x, y, verbose=0)


# -- ignored-rate -----------------------------------------------------------------------------------------------------


@triggers("ignored-rate", says="self.model.optimizer.lr = ...", pastes=True)
def a_rate_that_a_callback_sets():
    class Decay(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.optimizer.lr = 0.1 / (epoch + 1)

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0, epochs=2, callbacks=[Decay()])


@triggers("ignored-rate", says="the learning rate stays as it was", pastes=True)
def a_rate_that_is_set_between_two_calls_of_fit():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    model.optimizer.lr = 0.001
    model.fit(x, y, verbose=0)


@triggers("ignored-rate", says="opt.lr = ...", pastes=True)
def a_rate_of_an_optimizer_with_a_name():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    opt = tf.keras.optimizers.SGD(0.1)
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(opt, "mse")
    opt.lr = 0.5
    model.fit(x, y, verbose=0)


@near("ignored-rate")
def a_learning_rate_that_is_set():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    model.optimizer.learning_rate = 0.001
    model.fit(x, y, verbose=0)


@near("ignored-rate")
def an_lr_of_something_else():
    class Config:
        lr = 0.1

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    config = Config()
    config.lr = 0.01
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(config.lr), "mse")
    model.fit(x, y, verbose=0)


@near("ignored-rate")
def an_lr_of_a_schedule_of_ones_own():
    class Schedule(keras.optimizers.schedules.LearningRateSchedule):
        def __init__(self, lr):
            self.lr = lr

        def __call__(self, step):
            return self.lr

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(Schedule(0.1)), "mse")
    model.fit(x, y, verbose=0)
