"""Programs whose functions Keras calls while it traces, or when a loop is over: as `programs_threads`."""
# ruff: noqa: B023

from __future__ import annotations

import random

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- trace-only: constraints, regularizers, activations, optimizers and their rates ----------------------------------


@triggers("trace-only", says="of Flipped.__call__ draws a random number in Python", pastes=True)
def a_constraint_that_draws_a_place():
    class Flipped(keras.constraints.Constraint):
        def __call__(self, w):
            signs = np.ones(w.shape[-1])
            place = np.random.randint(3)
            signs[place] = -1.0
            signs = tf.convert_to_tensor(signs, tf.float32)
            return w * signs

    x = np.ones([8, 3], "float32")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, kernel_constraint=Flipped())])
    model.compile("sgd", "mse")
    model.fit(x, x, batch_size=1, verbose=0)


@triggers("trace-only", says="tf.random.uniform([], 0.0, 0.01)", pastes=True)
def a_regularizer_that_draws():
    class Noisy(keras.regularizers.Regularizer):
        def __call__(self, w):
            return random.uniform(0.0, 0.01) * keras.ops.sum(w * w)

    x = np.ones([8, 3], "float32")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, kernel_regularizer=Noisy())])
    model.compile("sgd", "mse")
    model.fit(x, x, batch_size=1, verbose=0)


@triggers("trace-only", says="tf.random.normal(variable.shape, 0.0, 1.0, variable.dtype)", pastes=True)
def an_optimizer_that_draws():
    class Noisy(keras.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            noise = np.random.normal(size=variable.shape)
            super().update_step(gradient + noise, variable, learning_rate)

    x = np.ones([8, 3], "float32")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3)])
    model.compile(Noisy(0.01), "mse")
    model.fit(x, x, batch_size=1, verbose=0)


@triggers("trace-only", says="jitter draws a random number in Python")
def an_activation_that_draws():
    def jitter(x):
        return tf.nn.relu(x) + np.random.normal(0.0, 0.1)

    x = np.ones([8, 3], "float32")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, activation=jitter)])
    model.compile("sgd", "mse")
    model.fit(x, x, batch_size=1, verbose=0)


@triggers("trace-only", says="train_step runs as a graph: the line ran while it was traced", pastes=True)
def a_rate_that_counts_its_calls():
    calls = 0

    def learning_rate():
        nonlocal calls
        calls += 1
        return 0.1 / calls

    w = tf.Variable([1.0])
    optimizer = keras.optimizers.Adam(learning_rate=learning_rate)

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((w * x) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
        return loss

    for _ in range(8):
        train_step(tf.constant([1.0]))


@triggers("trace-only", says="of Warmup.__call__ changes Python's 'self.seen'", pastes=True)
def a_schedule_that_counts_its_calls():
    class Warmup(keras.optimizers.schedules.LearningRateSchedule):
        def __init__(self, top):
            self.top = top
            self.seen = 0

        def __call__(self, step):
            self.seen += 1
            return self.top * min(1.0, self.seen / 10)

    x = np.ones([8, 3], "float32")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3)])
    model.compile(keras.optimizers.SGD(Warmup(0.1)), "mse")
    model.fit(x, x, batch_size=1, verbose=0)


@near("trace-only")
def a_constraint_that_drew_as_it_was_made():
    class Signs(keras.constraints.Constraint):
        def __init__(self, n):
            self.sign = np.random.choice([-1.0, 1.0], n).astype("float32")

        def __call__(self, w):
            return w * self.sign

    def start(shape, dtype=None):
        return np.random.normal(size=shape)

    x = np.ones([8, 3], "float32")
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(3, kernel_constraint=Signs(3), kernel_initializer=start)]
    )
    model.compile("sgd", "mse")
    model.fit(x, x, batch_size=1, verbose=0)


@near("trace-only")
def a_rate_that_counts_where_gradients_are_applied_eagerly():
    calls = 0

    def rate():
        nonlocal calls
        calls += 1
        return 0.1 / calls

    w = tf.Variable(1.0)
    optimizer = keras.optimizers.SGD(learning_rate=rate)
    step = tf.function(lambda x: x * w)
    for _ in range(8):
        with tf.GradientTape() as tape:
            loss = step(tf.constant(2.0)) ** 2
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
    assert calls >= 8


@near("trace-only")
def a_schedule_of_its_step_and_a_constraint_of_ops():
    class Decayed(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            rate = 0.1 / (1.0 + keras.ops.cast(step, "float32"))
            return rate

    class Bounded(keras.constraints.Constraint):
        def __call__(self, w):
            return keras.ops.clip(w, -1.0, 1.0) + keras.random.normal(w.shape) * 1e-3

    x = np.ones([8, 3], "float32")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, kernel_constraint=Bounded())])
    model.compile(keras.optimizers.SGD(Decayed()), "mse")
    model.fit(x, x, batch_size=1, verbose=0)


# -- late-binding: what Keras calls when the loop is over --------------------------------------------------------------


@triggers("late-binding", says="keras.layers.Lambda(lambda x, j: x[:, j], arguments={'j': j})", pastes=True)
def lambda_layers_of_a_comprehension():
    x = keras.Input((2, 1))
    model = keras.Model(x, [keras.layers.Lambda(lambda x: x[:, j])(x) for j in range(2)])
    model.predict(np.array([[[1.0], [2.0]]]), verbose=0)


@triggers("late-binding", says="lambda t, i, factor: t[:, i : i + 1] * factor", pastes=True)
def lambda_layers_of_a_loop_that_computes():
    x = keras.Input((3,))
    outs = []
    for i, scale in enumerate([1.0, 10.0, 100.0]):
        factor = scale * 2
        outs.append(keras.layers.Lambda(lambda t: t[:, i : i + 1] * factor, output_shape=(1,))(x))
    model = keras.Model(x, keras.layers.Concatenate()(outs))
    model.predict(np.ones([1, 3]), verbose=0)


@triggers("late-binding", says="def loss(y, p, weight=weight):", pastes=True)
def losses_of_a_loop():
    x = keras.Input((3,))
    model = keras.Model(x, [keras.layers.Dense(1)(x), keras.layers.Dense(1)(x)])
    losses = []
    for weight in [0.0, 1.0]:

        def loss(y, p):
            return weight * keras.ops.mean((y - p) ** 2)

        losses.append(loss)
    model.compile("sgd", loss=losses)
    model.evaluate(np.ones([4, 3]), [np.ones([4, 1])] * 2, verbose=0)


@triggers("late-binding", says="keras.layers.Lambda(lambda x, k: x[:, k : k + 1], arguments={'k': k})", pastes=True)
def lambda_layers_of_a_model():
    class Parts(keras.Model):
        def __init__(self, n):
            super().__init__()
            self.parts = [keras.layers.Lambda(lambda x: x[:, k : k + 1]) for k in range(n)]

        def call(self, x):
            return keras.ops.concatenate([part(x) for part in self.parts], 1)

    Parts(3).predict(np.array([[1.0, 2.0, 3.0]]), verbose=0)


@near("late-binding")
def lambda_layers_with_their_own_values():
    def part(j):
        return keras.layers.Lambda(lambda x: x[:, j])

    x = keras.Input((2, 1))
    outs = [part(j)(x) for j in range(2)]
    outs += [keras.layers.Lambda(lambda x, j=j: x[:, j])(x) for j in range(2)]
    outs += [(lambda k: keras.layers.Lambda(lambda x: x[:, k]))(j)(x) for j in range(2)]
    keras.Model(x, outs).predict(np.array([[[1.0], [2.0]]]), verbose=0)


@near("late-binding")
def models_of_a_loop_that_run_in_it():
    for factor in [1.0, 2.0]:
        model = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x * factor)])
        model.predict(np.ones([1, 2]), verbose=0)


@near("late-binding")
def layers_of_a_loop_that_run_eagerly_in_it():
    x = tf.ones([1, 3])
    parts = [keras.layers.Lambda(lambda x: x * scale)(x) for scale in (1.0, 2.0)]
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    for part in parts:
        model(part)


@near("late-binding")
def layers_of_a_loop_in_the_call_of_a_model():
    class Parts(keras.Model):
        def call(self, x):
            return keras.ops.concatenate([keras.layers.Lambda(lambda x: x[:, k : k + 1])(x) for k in range(3)], 1)

    x = keras.Input((3,))
    Parts()(x)
    assert Parts().predict(np.array([[1.0, 2.0, 3.0]]), verbose=0).tolist() == [[1.0, 2.0, 3.0]]


def trained_with(callback, epochs=3):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model.fit(np.ones((8, 4)), np.ones((8, 1)), epochs=epochs, verbose=0, callbacks=[callback])


@triggers("epoch-end", says="Enough sets its own stop_training, which nobody asks", pastes=True)
def a_callback_that_stops_itself():
    class Enough(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if logs["loss"] < 1e9:
                self.stop_training = True

    trained_with(Enough())


@triggers("epoch-end", says="nobody calls Losses.on_batch_start: Keras calls on_batch_begin", pastes=True)
def a_callback_with_a_method_of_another_name():
    class Losses(keras.callbacks.Callback):
        def on_batch_start(self, batch, logs=None):
            print(batch)

    trained_with(Losses())


@triggers("epoch-end", says="Keras calls on_epoch_end", pastes=True)
def a_callback_with_a_misspelt_method():
    class Losses(keras.callbacks.Callback):
        def on_epochs_end(self, epoch, logs=None):
            print(epoch)

    trained_with(Losses())


@near("epoch-end")
def a_callback_that_stops_the_model():
    class Enough(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = True

        def on_everything(self):
            return None

    trained_with(Enough())


@near("epoch-end")
def a_callback_whose_own_flag_is_asked():
    class Enough(keras.callbacks.Callback):
        stop_training = False

        def on_epoch_end(self, epoch, logs=None):
            self.stop_training = epoch > 0

    enough = Enough()
    trained_with(enough)
    print(enough.stop_training)
