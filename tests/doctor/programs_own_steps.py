"""More programs that do not fail: own steps of training, their variables, losses and metrics, after users' threads."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- nan-loss: what overflows, and what is tried at its limit ---------------------------------------------------------


@triggers("nan-loss", says="tf.math.softplus(x)", pastes=True)
def a_softplus_by_hand():
    def log1pexp(x):
        return tf.math.log(1 + tf.exp(x))

    w = tf.Variable(50.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(log1pexp(w * tf.constant([1.0, 2.0])))
        w.assign_sub(0.1 * tape.gradient(loss, w))


@near("nan-loss")
def a_gradient_of_its_own_at_a_limit():
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def grad(upstream):
            return upstream * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), grad

    x = tf.constant(100.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    assert tape.gradient(y, x) == 1.0


# -- fixed-variable: tf#26404 ------------------------------------------------------------------------------------------


@triggers("fixed-variable", says="moving_mean and moving_variance. That is right, BatchNormalization", pastes=True)
def a_tape_that_is_asked_for_all_variables():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.BatchNormalization(), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.ones((2, 4)), training=True)))
        grads = tape.gradient(loss, model.variables)
        optimizer.apply_gradients(zip(grads, model.variables))


@triggers("fixed-variable", says="self.model.trainable_variables", pastes=True)
def a_traced_step_that_asks_for_all_weights():
    class Trainer:
        def __init__(self):
            self.model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1), keras.layers.Dropout(0.5)])
            self.optimizer = keras.optimizers.Adam()

        @tf.function
        def step(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.model(x, training=True)))
            weights = self.model.variables
            grads = tape.gradient(loss, weights)
            self.optimizer.apply_gradients([(g, w) for g, w in zip(grads, weights) if g is not None])
            return loss

    trainer = Trainer()
    for _ in range(2):
        trainer.step(tf.ones((2, 4)))


@triggers("fixed-variable", says="layer.trainable_variables", pastes=True)
def a_frozen_layer_that_a_tape_is_asked_for():
    first, layer = keras.layers.Dense(2), keras.layers.BatchNormalization()
    first.build((None, 3))
    layer.build((None, 2))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(first(tf.ones((2, 3))), training=True) ** 2)
    found = tape.gradient(loss, layer.variables)
    assert len(found) in (2, 4)


@near("fixed-variable")
def variables_that_all_can_be_trained():
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.ones((2, 3))) ** 2)
    assert None not in tape.gradient(loss, layer.variables)


@near("fixed-variable")
def a_variable_that_the_loss_does_not_read():
    first, other = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = first * 2
    tape.gradient(loss, [first, other])


@near("fixed-variable")
def a_fixed_variable_that_is_watched():
    first, other = tf.Variable(1.0), tf.Variable(2.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(other)
        loss = first * other
    assert None not in tape.gradient(loss, [first, other])


# -- broadcast-loss: eager loops (tf#40323) ---------------------------------------------------------------------------


@triggers("broadcast-loss", says="u is [20] and u_pred is [20, 1]", pastes=True)
def labels_of_an_eager_step():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    x, u = np.ones((20, 2), "float32"), np.ones(20, "float32")

    def train_step(x, u):
        with tf.GradientTape() as tape:
            u_pred = model(x)
            loss = tf.reduce_mean(tf.square(u - u_pred))
        return tape.gradient(loss, model.trainable_variables)

    for _ in range(2):
        train_step(x, u)


@triggers("broadcast-loss", says="y_pred is [20, 1]", pastes=True)
def labels_of_a_loss_that_a_loop_calls():
    layer = keras.layers.Dense(1)

    def mse(y_true, y_pred):
        return tf.reduce_mean(tf.math.squared_difference(tf.cast(y_true, tf.float32), y_pred))

    for x, y in tf.data.Dataset.from_tensor_slices((np.ones((40, 2), "float32"), np.ones(40))).batch(20):
        with tf.GradientTape() as tape:
            predictions = layer(x)
            loss = mse(y, predictions)
        tape.gradient(loss, layer.trainable_variables)


@near("broadcast-loss")
def labels_that_are_a_column_in_an_eager_loop():
    layer = keras.layers.Dense(1)
    x, y = tf.ones((20, 2)), tf.ones((20, 1))
    with tf.GradientTape() as tape:
        y_pred = layer(x)
        loss = tf.reduce_mean(tf.square(y - y_pred))
    tape.gradient(loss, layer.trainable_variables)


@near("broadcast-loss")
def distances_of_all_pairs_in_an_eager_loop():
    w = tf.Variable(tf.range(5.0))
    with tf.GradientTape() as tape:
        column = w[:, None]
        loss = tf.reduce_mean(tf.abs(column - w))
    tape.gradient(loss, w)


@near("broadcast-loss")
def a_column_that_a_function_takes_for_pairs():
    w = tf.Variable(tf.range(5.0))

    def spread(a, b):
        return tf.reduce_mean(tf.abs(a - b))

    with tf.GradientTape() as tape:
        column = tf.expand_dims(w, 1)
        loss = spread(w, column)
    tape.gradient(loss, w)


# -- untracked-variable: what build computes of them (tf#32729) -------------------------------------------------------


@triggers("untracked-variable", says="self.kernel is computed from them once, outside of `call`", pastes=True)
def a_kernel_that_build_computes_of_its_variables():
    class NoisyDense(keras.layers.Layer):
        def __init__(self, units):
            super().__init__()
            self.units = units

        def build(self, input_shape):
            start = tf.random_uniform_initializer(-0.5, 0.5)
            self.eps = tf.random.normal([input_shape[-1], self.units])
            self.mu = tf.Variable(
                initial_value=start(shape=(input_shape[-1], self.units), dtype="float32"), trainable=True
            )
            self.sigma = tf.Variable(initial_value=start(shape=(input_shape[-1], self.units)), trainable=True)
            self.kernel = self.mu + self.sigma * self.eps

        def call(self, inputs):
            return tf.matmul(inputs, self.kernel)

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), NoisyDense(3)])
    model.compile("adam", "mse")
    model.fit(np.ones((8, 4), "float32"), np.ones((8, 3), "float32"), verbose=0)


# -- batch-mean: metrics in ops (keras#11705) -------------------------------------------------------------------------


@triggers("batch-mean", says="divides sums over the rows of a batch", pastes=True)
def a_score_in_ops():
    def f1(y_true, y_pred):
        guess = tf.round(y_pred)
        tp = tf.reduce_sum(guess * y_true)
        precision = tp / (tf.reduce_sum(guess) + 1e-7)
        recall = tp / (tf.reduce_sum(y_true) + 1e-7)
        return 2 * precision * recall / (precision + recall + 1e-7)

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=[f1])
    model.fit(np.ones((8, 4), "float32"), np.ones((8, 1), "float32"), batch_size=4, verbose=0)


@triggers("batch-mean", says="OfEpoch(lambda a, b: tf.reshape(tf.numpy_function(r2", pastes=True)
def a_score_in_a_wrapper():
    def r2(a, b):
        return (1 - np.sum((a - b) ** 2) / np.sum((a - a.mean()) ** 2)).astype("float32")

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=[keras.metrics.MeanMetricWrapper(lambda a, b: tf.reshape(tf.numpy_function(r2, [a, b], tf.float32), [-1]), "r2")])  # fmt: skip  # noqa: E501
    y = np.arange(16, dtype="float32")[:, None]
    model.fit(np.ones((16, 4), "float32"), y, batch_size=4, verbose=0)


@triggers("batch-mean", says='OfEpoch(score, "r2")', pastes=True)
def a_named_score_in_a_wrapper():
    def r2(a, b):
        return 1 - np.sum((a - b) ** 2) / np.sum((a - np.mean(a)) ** 2)

    def score(y_true, y_pred):
        return tf.ensure_shape(tf.py_function(r2, [y_true, y_pred], tf.float32), [])

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=[keras.metrics.MeanMetricWrapper(score, name="r2")])
    y = np.arange(16, dtype="float32")[:, None]
    model.fit(np.ones((16, 4), "float32"), y, batch_size=4, verbose=0)


@near("batch-mean")
def a_mean_over_rows_in_a_wrapper():
    def mae(a, b):
        return np.mean(np.abs(a - b)).astype("float32")

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=[keras.metrics.MeanMetricWrapper(lambda a, b: tf.reshape(tf.numpy_function(mae, [a, b], tf.float32), [-1]), "mae")])  # fmt: skip  # noqa: E501
    model.fit(np.ones((16, 4), "float32"), np.ones((16, 1), "float32"), batch_size=4, verbose=0)


@near("batch-mean")
def a_mean_over_rows_in_ops():
    def accuracy(y_true, y_pred):
        return tf.reduce_sum(tf.cast(tf.equal(y_true, tf.round(y_pred)), tf.float32)) / tf.cast(
            tf.size(y_true), tf.float32
        )

    def of_each_row(y_true, y_pred):
        return tf.reduce_sum(y_true * y_pred, axis=-1) / tf.reduce_sum(y_true, axis=-1)

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=[accuracy, of_each_row])
    model.fit(np.ones((8, 4), "float32"), np.ones((8, 1), "float32"), batch_size=4, verbose=0)


@near("output-contract")
def a_node_that_declares_nothing_and_returns_nothing():
    def show(x):
        assert x.shape == ()

    @tf.function
    def step(x):
        tf.numpy_function(show, [x], [])
        return x * 2

    step(tf.constant(1.0))


# -- listed-result: tf#108072 -----------------------------------------------------------------------------------------


@triggers("listed-result", says="hidden = tf.py_function(lambda p: p.numpy() * 2, [x], Tout=tf.float32)", pastes=True)
def a_list_of_one_in_a_layer():
    class Twice(keras.layers.Layer):
        def call(self, x):
            hidden = tf.py_function(lambda p: p.numpy() * 2, [x], Tout=[tf.float32])
            return tf.matmul(hidden, tf.ones((5, 3)))

    layer = Twice()

    @tf.function
    def compiled(x):
        return layer(x)

    compiled(tf.ones((4, 5)))


@triggers("listed-result", says="[5] becomes [1, 5]", pastes=True)
def a_list_of_one_in_a_map():
    def parse(x, y):
        x = tf.numpy_function(lambda a: a * 2, [x], [tf.float32])
        return x, y

    data = tf.data.Dataset.from_tensor_slices((np.ones((4, 5), "float32"), np.ones(4)))
    for _ in data.map(parse).batch(2):
        pass


@triggers("listed-result", says="[4, 5] becomes [1, 4, 5]", pastes=True)
def a_list_of_one_in_eager_arithmetic():
    x = tf.ones((4, 5))
    y = tf.py_function(lambda a: a.numpy() + 1, [x], Tout=[tf.float32])
    tf.cast(x + y, tf.float64)


@near("listed-result")
def a_list_of_one_that_is_unpacked():
    @tf.function
    def step(x):
        [y] = tf.py_function(lambda a: a.numpy() + 1, [x], Tout=[tf.float32])
        (z,) = tf.py_function(lambda a: a.numpy() + 2, [x], Tout=[tf.float32])
        return y + z + tf.py_function(lambda a: a.numpy() + 3, [x], Tout=[tf.float32])[0]

    step(tf.ones((4, 5)))


@near("listed-result")
def a_list_of_one_that_is_stacked_on_purpose():
    @tf.function
    def step(x):
        y = tf.py_function(lambda a: a.numpy() + 1, [x], Tout=[tf.float32])
        return tf.stack(y), tf.concat(y, 0), y

    step(tf.ones((4, 5)))


@near("listed-result")
def a_list_of_one_whose_axis_is_gone_again():
    @tf.function
    def step(x):
        y = tf.py_function(lambda a: a.numpy() + 1, [x], Tout=[tf.float32])
        return tf.reduce_mean(tf.square(y - x)), tf.reshape(y, [4, 5])

    step(tf.ones((4, 5)))


@near("listed-result")
def a_list_of_one_that_is_a_batch_of_one():
    data = tf.data.Dataset.range(3)
    data = data.map(lambda i: (tf.numpy_function(lambda k: np.full((4, 5), k, np.float32), [i], [tf.float32]), i))
    for image, _ in data:
        assert image.shape == (1, 4, 5)


# -- appended-gradients -----------------------------------------------------------------------------------------------


@triggers("appended-gradients", severity="error", says="those that line", pastes=True)
def zeros_that_stay_in_front():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    total = [tf.zeros_like(v) for v in model.trainable_variables]
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        total += grads
    optimizer.apply_gradients(zip(total, model.trainable_variables))


@triggers("appended-gradients", says="zip(total, grads)] if total else grads", pastes=True)
def an_empty_list():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    total = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        total += grads
    optimizer.apply_gradients(zip(total, model.trainable_variables))


@triggers("appended-gradients", says="those of the first step", pastes=True)
def a_sum_of_two_lists_in_a_traced_function():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def train(x):
        total = None
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(x) ** 2)
            grads = tape.gradient(loss, model.trainable_weights)
            total = grads if total is None else total + grads
        optimizer.apply_gradients(zip(total, model.trainable_weights))

    train(tf.ones([4, 2]))


@near("appended-gradients")
def a_list_of_all_gradients():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    every = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        every += grads
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
    assert len(every) == 6


@near("appended-gradients")
def one_variable():
    w, total = tf.Variable(1.0), tf.constant(0.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = w * w
        grad = tape.gradient(loss, w)
        total += grad
    keras.optimizers.SGD(0.1).apply_gradients([(total, w)])


@near("appended-gradients")
def sums_of_each_variable():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    total = [tf.zeros_like(v) for v in model.trainable_variables]
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        total = [one + other for one, other in zip(total, grads)]
    optimizer.apply_gradients(zip(total, model.trainable_variables))


@near("appended-gradients")
def gradients_of_two_models_side_by_side():
    one, other = (keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]) for _ in range(2))
    every = []
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean((one(tf.ones([4, 2])) - other(tf.ones([4, 2])) + 1.0) ** 2)
    first = tape.gradient(loss, one.trainable_variables)
    second = tape.gradient(loss, other.trainable_variables)
    every += first
    every += second
    pairs = one.trainable_variables + other.trainable_variables
    keras.optimizers.SGD(0.1).apply_gradients(zip(every, pairs))


# -- kept-gradients ----------------------------------------------------------------------------------------------------


def a_model():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]), keras.optimizers.SGD(0.1)


@triggers("kept-gradients", severity="error", says="nothing sets it back to 0", pastes=True)
def sums_that_are_applied_again_and_again():
    model, optimizer = a_model()
    total = [tf.zeros_like(v) for v in model.trainable_variables]
    for step in range(8):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        total = [one + other for one, other in zip(total, grads)]
        if (step + 1) % 4 == 0:
            optimizer.apply_gradients(zip(total, model.trainable_variables))


@triggers("kept-gradients", says="self.sums adds up gradients", pastes=True)
def variables_that_are_never_set_back():
    class Trainer:
        def __init__(self):
            self.model, self.optimizer = a_model()
            self.sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self.model.trainable_variables]

        @tf.function
        def step(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self.model(x) ** 2)
            for one, grad in zip(self.sums, tape.gradient(loss, self.model.trainable_variables)):
                one.assign_add(grad)
            return loss

        def update(self):
            self.optimizer.apply_gradients(zip(self.sums, self.model.trainable_variables))

    trainer = Trainer()
    for at in range(8):
        trainer.step(tf.ones([4, 2]))
        if at % 4 == 3:
            trainer.update()


@triggers("kept-gradients", says="sums adds up gradients", pastes=True)
def sums_by_their_places():
    model, optimizer = a_model()
    sums = [tf.zeros_like(v) for v in model.trainable_variables]
    for _ in range(2):
        for _ in range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
            grads = tape.gradient(loss, model.trainable_variables)
            for i in range(len(grads)):
                sums[i] += grads[i]
        optimizer.apply_gradients(zip([one / 4 for one in sums], model.trainable_variables))


@near("kept-gradients")
def sums_that_begin_again_in_each_epoch():
    model, optimizer = a_model()
    for _ in range(2):
        sums = [tf.zeros_like(v) for v in model.trainable_variables]
        for _ in range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
            sums = [a + b for a, b in zip(sums, tape.gradient(loss, model.trainable_variables))]
        optimizer.apply_gradients(zip(sums, model.trainable_variables))


@near("kept-gradients")
def variables_that_a_function_sets_back():
    model, optimizer = a_model()
    sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]

    def clear(variables):
        for one in variables:
            one.assign(tf.zeros_like(one))

    for step in range(8):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        for one, grad in zip(sums, tape.gradient(loss, model.trainable_variables)):
            one.assign_add(grad)
        if step % 4 == 3:
            optimizer.apply_gradients(zip(sums, model.trainable_variables))
            clear(sums)


@near("kept-gradients")
def sums_that_are_applied_once():
    model, optimizer = a_model()
    sums = [tf.zeros_like(v) for v in model.trainable_variables]
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        sums = [a + b for a, b in zip(sums, tape.gradient(loss, model.trainable_variables))]
    optimizer.apply_gradients(zip(sums, model.trainable_variables))


@near("kept-gradients")
def a_momentum_by_hand():
    model, optimizer = a_model()
    speed = [tf.zeros_like(v) for v in model.trainable_variables]
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        speed = [0.9 * a + b for a, b in zip(speed, tape.gradient(loss, model.trainable_variables))]
        optimizer.apply_gradients(zip(speed, model.trainable_variables))


@near("kept-gradients")
def variables_that_are_set_back_in_place():
    model, optimizer = a_model()
    sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]
    for step in range(8):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        for one, grad in zip(sums, tape.gradient(loss, model.trainable_variables)):
            one.assign_add(grad)
        if step % 4 == 3:
            optimizer.apply_gradients(zip(sums, model.trainable_variables))
            for one in sums:
                one.assign(tf.zeros_like(one))
