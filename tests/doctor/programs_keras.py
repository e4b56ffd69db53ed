"""More small programs, as those of `programs.py`: Python in what Keras traces for its steps."""

from __future__ import annotations

import types

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- stale-closure ----------------------------------------------------------------------------------------------------


@triggers("stale-closure", says="was 0.0 when Keras traced", pastes=True)
def a_weight_of_a_loss_that_a_callback_raises():
    class Autoencoder(keras.Model):
        def __init__(self):
            super().__init__()
            self.kl_weight = 0.0
            self.encode = keras.layers.Dense(2)
            self.decode = keras.layers.Dense(4)

        def train_step(self, x):
            with tf.GradientTape() as tape:
                z = self.encode(x)
                loss = tf.reduce_mean((self.decode(z) - x) ** 2) + self.kl_weight * tf.reduce_mean(z**2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    seen = []

    class Anneal(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.kl_weight = min(1.0, epoch / 2)
            seen.append(f"kl weight {self.model.kl_weight:.2f}")

    model = Autoencoder()
    model.compile("sgd")
    model.fit(np.ones((8, 4), "float32"), epochs=3, batch_size=4, verbose=0, callbacks=[Anneal()])
    assert seen == ["kl weight 0.00", "kl weight 0.50", "kl weight 1.00"]


@triggers("stale-closure", says="the graph ran", pastes=True)
def a_weight_that_a_loss_function_takes_from_around_it():
    weight = 0.1

    def loss(true, predicted):
        return tf.reduce_mean((true - predicted) ** 2) + weight * tf.reduce_mean(tf.abs(predicted))

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss)
    for _ in range(3):
        model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
        weight *= 2


@triggers("stale-closure", says="`hp['noise']` was 0.0", pastes=True)
def an_entry_of_a_dict_that_a_layer_reads():
    hp = {"noise": 0.0, "units": 2}

    class Noisy(keras.layers.Layer):
        def call(self, x):
            return x + hp["noise"] * tf.random.normal(tf.shape(x))

    model = keras.Sequential([keras.Input((3,)), Noisy(), keras.layers.Dense(hp["units"])])
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    hp["noise"] = 0.5
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)


@triggers("stale-closure", says="make_train_function(force=True)", pastes=True)
def a_flag_that_a_callback_turns_on():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.auxiliary = False
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            loss = super().compute_loss(x, y, y_pred, sample_weight, training)
            if self.auxiliary:
                loss += tf.reduce_mean(y_pred**2)
            return loss

    class Switch(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                self.model.auxiliary = True

    model = Model()
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 1)), epochs=3, verbose=0, callbacks=[Switch()])


@triggers("stale-closure", says="`cfg.loss.margin` was 0.1", pastes=True)
def a_field_of_a_settings_object():
    cfg = types.SimpleNamespace(loss=types.SimpleNamespace(margin=0.1))

    def penalty(x):
        return tf.nn.relu(x + cfg.loss.margin)

    @tf.function
    def step(x):
        return tf.reduce_mean(penalty(x))

    for _ in range(3):
        step(tf.constant([1.0, 2.0]))
        cfg.loss.margin += 0.1


@triggers("stale-closure", says="`self.temperature` was 1.0")
def a_layer_in_a_training_loop_of_ones_own():
    class Scaled(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.temperature = 1.0

        def call(self, x):
            return tf.nn.softmax(x / self.temperature)

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3), Scaled()])

    @tf.function
    def step(x):
        return tf.reduce_mean(model(x))

    for _ in range(2):
        step(tf.ones((2, 3)))
        model.layers[-1].temperature = 0.5


@near("stale-closure")
def an_attribute_of_a_model_that_stays():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.scale, self.epochs_done = 2.0, 0
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.scale * self.dense(x)

    class Count(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.epochs_done += 1

    model = Model()
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 1)), epochs=3, verbose=0, callbacks=[Count()])
    assert model.epochs_done == 3


@near("stale-closure")
def an_attribute_that_changes_before_a_model_is_compiled_again():
    class Scaled(keras.layers.Layer):
        scale = 1.0

        def call(self, x):
            return x * self.scale

    layer = Scaled()
    model = keras.Sequential([keras.Input((3,)), layer, keras.layers.Dense(1)])
    for layer.scale in (1.0, 2.0):
        model.compile("sgd", "mse")
        model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)


@near("stale-closure")
def an_attribute_of_a_model_that_runs_eagerly():
    class Scaled(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.scale = 1.0

        def call(self, x):
            return x * self.scale

    model = keras.Sequential([keras.Input((3,)), Scaled(), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    for _ in range(2):
        model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
        model.layers[0].scale = 2.0


@near("stale-closure")
def a_learning_rate_that_a_callback_sets():
    class Halve(keras.callbacks.Callback):
        rate = 0.1

        def on_epoch_begin(self, epoch, logs=None):
            self.rate /= 2
            self.model.optimizer.learning_rate = self.rate

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 1)), epochs=3, verbose=0, callbacks=[Halve()])


@near("stale-closure")
def a_variable_that_a_callback_assigns_to():
    class Scaled(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable(1.0, trainable=False)

        def call(self, x):
            return x * self.scale

    model = keras.Sequential([keras.Input((3,)), Scaled(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    for _ in range(2):
        model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
        model.layers[0].scale.assign(2.0)


@near("stale-closure")
def an_epoch_that_a_loss_only_prints():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    epoch = 0

    def loss(true, predicted):
        print("traced in epoch", epoch)
        return tf.reduce_mean((true - predicted) ** 2)

    model.compile("sgd", loss)
    for epoch in range(3):  # noqa: B007
        model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
