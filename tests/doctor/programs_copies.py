"""Programs that do not fail, and take a name for a copy of a model or of its weights: as `programs_threads`."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- no-copy ----------------------------------------------------------------------------------------------------------


@triggers("no-copy", severity="error", says="target is model itself", pastes=True)
def a_target_network():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    target = model
    optimizer = keras.optimizers.SGD(0.1)
    for _ in range(2):
        wanted = 0.9 * target(tf.ones([4, 2]))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(tf.ones([4, 2])) - wanted) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        target.set_weights(model.get_weights())


@triggers("no-copy", says="clone_model(self.model)", pastes=True)
def a_target_of_an_agent():
    class Agent:
        def __init__(self):
            self.model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
            self.target = self.model
            self.optimizer = keras.optimizers.SGD(0.1)

        def train(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.model(x) - self.target(x)) ** 2)
            variables = self.model.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

        def update(self):
            self.target.set_weights(self.model.get_weights())

    agent = Agent()
    agent.train(tf.ones([4, 2]))
    agent.update()


@triggers("no-copy", says="best.set_weights(model.get_weights())", pastes=True)
def the_best_of_some_passes():
    x, y, least, best = np.ones((8, 2)), np.ones(8), 1e9, None
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    for _ in range(2):
        loss = model.fit(x, y, verbose=0).history["loss"][-1]
        if loss < least:
            least = loss
            best = model
    best.predict(x, verbose=0)


@triggers("no-copy", says="before = [tf.identity(v) for v in model.trainable_variables]", pastes=True)
def weights_before_and_after():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    before = model.trainable_variables
    model.fit(np.ones((8, 2)), np.ones(8), verbose=0)
    for one, other in zip(before, model.trainable_variables):
        print(np.array_equal(one.numpy(), other.numpy()))


@triggers("no-copy", says="tf.identity(model.layers[0].weights[0])", pastes=True)
def one_weight_that_is_subtracted():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    before = model.layers[0].weights[0]
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    print(tf.reduce_max(tf.abs(model.layers[0].weights[0] - before)))


@triggers("no-copy", says="drawn again", pastes=True)
def a_clone_that_predicts():
    x = np.ones((8, 2))
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, np.ones(8), verbose=0)
    kept = keras.models.clone_model(model)
    print(kept.predict(x, verbose=0)[:2])


@near("no-copy")
def a_target_that_is_made_like_the_model():
    def make():
        return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])

    model, target = make(), make()
    target.set_weights(model.get_weights())
    optimizer, variables = keras.optimizers.SGD(0.1), model.trainable_variables
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(tf.ones([4, 2])) - target(tf.ones([4, 2]))) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    for one, other in zip(target.weights, model.weights):
        one.assign(0.9 * one + 0.1 * other)


@near("no-copy")
def a_model_that_is_made_in_each_pass():
    x, y, least, best = np.ones((8, 2)), np.ones(8), 1e9, None
    for _ in range(2):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        loss = model.fit(x, y, verbose=0).history["loss"][-1]
        if loss < least:
            least = loss
            best = model
    best.predict(x, verbose=0)


@near("no-copy")
def values_before_and_after():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    before = model.get_weights()
    model.fit(np.ones((8, 2)), np.ones(8), verbose=0)
    for one, other in zip(before, model.get_weights()):
        print(np.array_equal(one, other))


@near("no-copy")
def a_clone_that_gets_weights():
    x = np.ones((8, 2))
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, np.ones(8), verbose=0)
    kept = keras.models.clone_model(model)
    kept.set_weights(model.get_weights())
    print(kept.predict(x, verbose=0)[:2])


@near("no-copy")
def weights_that_are_counted():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    weights = model.trainable_weights
    model.fit(np.ones((8, 2)), np.ones(8), verbose=0)
    print(len(weights), [one.name for one in weights], sum(int(np.prod(one.shape)) for one in weights))


@near("no-copy")
def weights_that_are_compared_with_others():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    kernel, wanted = model.layers[0].weights[0], np.ones((2, 1))
    fitted = model.layers[0].weights[0]
    model.fit(np.ones((8, 2)), np.ones(8), verbose=0)
    print(np.abs(fitted.numpy() - wanted).max(), np.allclose(wanted, fitted), kernel.shape)


@near("no-copy")
def weights_that_are_held_near_others():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer, start = keras.optimizers.SGD(0.1), model.get_weights()
    variables = model.trainable_variables
    for _ in range(2):
        with tf.GradientTape() as tape:
            far = tf.add_n([tf.reduce_sum((one - other) ** 2) for one, other in zip(variables, start)])
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2) + far
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
