"""More small programs, as those of `programs.py`: Python in what Keras traces for its steps."""

from __future__ import annotations

import os
import tempfile
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


@triggers("stale-closure", says="`model` and `optimizer` are other objects", severity="error", pastes=True)
def a_step_that_is_kept_while_models_are_made_in_a_loop():
    x, y = tf.ones((8, 3)), tf.ones((8, 1))

    @tf.function
    def train_step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs) - labels))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    for units in (1, 2):
        model = keras.Sequential([keras.layers.Dense(units), keras.layers.Dense(1)])
        optimizer = keras.optimizers.Adam()
        for _ in range(2):
            train_step(x, y)


@triggers("stale-closure", says="`total` is another object than when TensorFlow traced", severity="error", pastes=True)
def a_metric_that_is_made_in_each_epoch():
    @tf.function(reduce_retracing=True)
    def add(x):
        total.update_state(x)
        return x

    for _ in range(2):
        total = keras.metrics.Mean()
        for number in (1.0, 2.0):
            add(tf.constant(number))
        total.result()


@triggers("stale-closure", says="goes on with the first ResourceVariable", severity="error")
def a_variable_of_an_object_that_is_made_anew():
    class Counter:
        def __init__(self):
            self.reset()

        def reset(self):
            self.count = tf.Variable(0.0)

        @tf.function
        def add(self, x):
            self.count.assign_add(x)

    counter = Counter()
    counter.add(tf.constant(1.0))
    counter.reset()
    counter.add(tf.constant(1.0))


@triggers("stale-closure", says="`net` is another object", severity="error", pastes=True)
def a_net_that_is_cloned_behind_a_compiled_call():
    net = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])

    def forward(x):
        return net(x)

    fast = tf.function(forward)
    fast(tf.ones((1, 2)))
    net = keras.models.clone_model(net)
    fast(tf.ones((1, 2)))


@near("stale-closure")
def a_target_net_that_gets_the_weights():
    net, target = (keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]) for _ in range(2))

    @tf.function
    def error(x):
        return net(x) - target(x)

    for _ in range(3):
        error(tf.ones((1, 2)))
        target.set_weights(net.get_weights())


@near("stale-closure")
def a_step_that_is_given_its_model():
    @tf.function
    def forward(net, x):
        return net(x)

    for units in (1, 2):
        net = keras.Sequential([keras.Input((2,)), keras.layers.Dense(units)])
        forward(net, tf.ones((1, 2)))
        forward(net, tf.ones((1, 2)))


@near("stale-closure")
def a_step_that_is_made_with_its_model():
    for units in (1, 2):
        net = keras.Sequential([keras.Input((2,)), keras.layers.Dense(units)])
        forward = tf.function(lambda x: net(x))  # noqa: B023  # it is called before the next net
        forward(tf.ones((1, 2)))
        forward(tf.ones((1, 2)))
    net = None


@near("stale-closure")
def a_model_that_is_compiled_again():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self.dense(data) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    model = Model()
    for rate in (0.1, 0.01):
        model.compile(keras.optimizers.SGD(rate))
        model.fit(np.ones((4, 2), "float32"), verbose=0)


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


# -- cut-gradient: ops that move in steps ------------------------------------------------------------------------------


@triggers("cut-gradient", says="`tf.math.ceil(h)` stands between them and the loss", pastes=True)
def a_model_that_rounds_up():
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = keras.layers.Dense(8), keras.layers.Dense(1)

        def call(self, x):
            h = self.first(x)
            h = tf.math.ceil(h)
            return self.second(h)

    model = Net()
    model.compile("adam", "mse")
    model.fit(np.ones((8, 4), "float32"), np.ones((8, 1), "float32"), verbose=0)


@triggers("cut-gradient", says="`tf.cast(x, tf.int32)` stands between")
def a_layer_that_looks_up_whole_numbers():
    first, table = keras.layers.Dense(1), keras.layers.Embedding(9, 2)

    @tf.function
    def step(data):
        with tf.GradientTape() as tape:
            x = first(data)
            loss = tf.reduce_sum(table(tf.cast(x, tf.int32)))
        return tape.gradient(loss, [*first.trainable_variables, *table.trainable_variables])

    step(tf.ones((2, 3)))


@near("cut-gradient")
def a_codebook_with_a_gradient_straight_through():
    before, codes, after = keras.layers.Dense(2), tf.Variable(tf.random.normal((4, 2))), keras.layers.Dense(1)

    @tf.function
    def step(data):
        with tf.GradientTape() as tape:
            x = before(data)
            nearest = tf.argmin(tf.reduce_sum((x[:, None] - codes) ** 2, -1), axis=-1)
            found = tf.gather(codes, nearest)
            loss = tf.reduce_mean((tf.stop_gradient(x) - found) ** 2)
            loss += tf.reduce_mean(after(x + tf.stop_gradient(found - x)))
        return tape.gradient(loss, [*before.trainable_variables, codes, *after.trainable_variables])

    step(tf.ones((3, 5)))


@near("cut-gradient")
def an_accuracy_beside_the_loss():
    net = keras.layers.Dense(3)

    @tf.function
    def step(data, labels):
        with tf.GradientTape() as tape:
            logits = net(data)
            hits = tf.cast(tf.argmax(logits, axis=-1) == labels, tf.float32)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        return tf.reduce_mean(hits), tape.gradient(loss, net.trainable_variables)

    step(tf.ones((2, 4)), tf.constant([0, 1], tf.int64))


@near("cut-gradient")
def a_variable_that_only_an_other_loss_uses():
    net, other = keras.layers.Dense(3), keras.layers.Dense(1)

    @tf.function
    def step(data):
        with tf.GradientTape() as tape:
            hidden = net(data)
            large = tf.where(hidden > 0.0, hidden, 0.1 * hidden)
            unused = other(hidden)
            loss = tf.reduce_mean(large)
        return unused, tape.gradient(loss, [*net.trainable_variables, *other.trainable_variables])

    step(tf.ones((2, 4)))


# -- retrace: the graphs of predict ------------------------------------------------------------------------------------


@triggers("retrace", says="for 6 models that were made one after the other", severity="note", pastes=True)
def a_model_that_predicts_in_each_round_of_a_loop():
    x, y = np.ones((1, 9), "float32"), np.array([[0.8]])
    for _ in range(6):
        model = keras.Sequential([keras.Input((9,)), keras.layers.Dense(1)])
        model.compile(loss="mse", optimizer="sgd")
        model.train_on_batch(x, y)
        model.predict(x, verbose=0)


@triggers("retrace", says="new_model is made once, above the function", severity="note", pastes=True)
def a_model_that_is_loaded_for_each_answer():
    path = os.path.join(tempfile.mkdtemp(), "answers.keras")
    keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]).save(path)

    def prediction(x):
        new_model = keras.models.load_model(path)
        return new_model.predict(x, verbose=0)

    for _ in range(6):
        prediction(np.ones((1, 4), "float32"))


@near("retrace")
def a_model_that_predicts_in_a_loop():
    model = keras.Sequential([keras.Input((None, 4)), keras.layers.LSTM(2)])
    for length in range(2, 9):
        model.predict(np.ones((1, length, 4), "float32"), verbose=0)


@near("retrace")
def models_of_three_folds():
    for _ in range(3):
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.predict(np.ones((8, 4), "float32"), verbose=0)


@near("retrace")
def models_that_predict_many_batches_each():
    for _ in range(5):
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.predict(np.ones((32, 4), "float32"), batch_size=4, verbose=0)


# -- trace-only: what `predict` runs ----------------------------------------------------------------------------------


@triggers("trace-only", says="all 6 steps got what was drawn while Keras traced them", pastes=True)
def a_layer_that_draws_for_predictions():
    class Mask(keras.layers.Layer):
        def call(self, x):
            mask = np.random.rand(4)
            return x * mask

    model = keras.Sequential([keras.Input((4,)), Mask()])
    for _ in range(6):
        model.predict(np.ones((2, 4), "float32"), verbose=0)


@near("trace-only")
def a_layer_that_draws_in_training_and_predicts():
    class Noise(keras.layers.Layer):
        def call(self, x, training=False):
            if training:
                x = x + np.random.rand(4)
            return x

    model = keras.Sequential([keras.Input((4,)), Noise()])
    for _ in range(6):
        model.predict(np.ones((2, 4), "float32"), verbose=0)


@near("trace-only")
def a_loss_that_draws_in_a_model_that_only_predicts():
    class Noisy(keras.losses.Loss):
        def call(self, y_true, y_pred):
            return tf.reduce_mean(tf.abs(y_true - y_pred) * np.random.rand())

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", Noisy())
    for _ in range(6):
        model.predict(np.ones((2, 4), "float32"), verbose=0)


# -- trace-only: draws without an op, and of names that hold whole numbers -------------------------------------------


@triggers("trace-only", says=", t.dtype)", pastes=True)
def a_draw_without_an_op_in_a_layer():
    class Noise(keras.layers.Layer):
        def call(self, t):
            return t * np.random.gamma(2.0, 1.0)

    model = keras.Sequential([keras.Input((3,)), Noise(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3), "float32"), np.ones((8, 1)), batch_size=2, verbose=0)


@triggers("trace-only", says="k = tf.cast(tf.ensure_shape(tf.numpy_function(lambda: np.random.poisson", pastes=True)
def whole_numbers_without_an_op_beside_a_tensor():
    @tf.function
    def step(x):
        k = np.random.poisson(3.0, size=(3,))
        return x * k

    for _ in range(5):
        assert step(tf.ones([3], tf.float64)).dtype == tf.float64


@triggers("trace-only", says="np.shape([1.0, 1.0, 1.0])), x.dtype)", pastes=True)
def a_vector_without_an_op_in_a_step():
    @tf.function
    def step(x):
        w = np.random.dirichlet([1.0, 1.0, 1.0])
        return x * w

    for _ in range(5):
        assert step(tf.ones([3])).shape == [3]


@triggers("trace-only", says="return x * tf.cast(tf.random.uniform([], 1, 5, tf.int32), x.dtype)", pastes=True)
def a_whole_number_beside_a_tensor():
    @tf.function
    def step(x):
        return x * np.random.randint(1, 5)

    for _ in range(5):
        assert float(step(tf.ones([]))) in (1, 2, 3, 4)


@triggers("trace-only", says="order = tf.random.shuffle(tf.range(n))", pastes=True)
def an_order_of_a_number_with_a_name():
    n = 5

    @tf.function
    def step(x):
        order = np.random.permutation(n)
        return tf.gather(x, order)

    for _ in range(5):
        assert sorted(step(tf.range(5)).numpy()) == [0, 1, 2, 3, 4]


@triggers("trace-only", says="tf.random.shuffle(tf.range(self.count))[:3]", pastes=True)
def some_of_a_number_that_an_object_keeps():
    class Sampler:
        def __init__(self, count):
            self.count = count

        @tf.function
        def step(self, x):
            return tf.gather(x, np.random.choice(self.count, 3, replace=False))

    sampler = Sampler(5)
    for _ in range(5):
        assert len(set(sampler.step(tf.range(5)).numpy())) == 3


@triggers("trace-only", says="np.random.permutation(rows) where step is called")
def an_order_of_what_may_be_an_array():
    rows = np.array([3.0, 4.0, 5.0])

    @tf.function
    def step(x):
        order = np.random.permutation(rows)
        return x * order

    for _ in range(5):
        step(tf.ones([3]))


@triggers("trace-only", says="np.random.randint(3) where step is called, with what it draws as an argument")
def an_index_of_a_list_that_is_drawn():
    scales = [1.0, 2.0, 3.0]

    @tf.function
    def step(x):
        return x * scales[np.random.randint(3)]

    for _ in range(5):
        step(tf.ones([2]))


@triggers("trace-only", says="@tf.function  # Keras itself does not convert", pastes=True)
def a_coin_in_a_layer():
    class Flip(keras.layers.Layer):
        def call(self, t):
            if np.random.rand() < 0.5:
                return -t
            return t

    model = keras.Sequential([keras.Input((3,)), Flip(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3), "float32"), np.ones((8, 1)), batch_size=2, verbose=0)


@triggers("trace-only", says="_eagerly=True", pastes=True)
def an_index_of_a_list_that_is_drawn_in_a_layer():
    class Scale(keras.layers.Layer):
        def call(self, t):
            return t * [1.0, 2.0, 3.0][np.random.randint(3)]

    model = keras.Sequential([keras.Input((3,)), Scale(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 3), "float32"), np.ones((8, 1)), batch_size=2, verbose=0)
