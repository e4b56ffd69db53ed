"""More programs that do not fail: as `programs_threads`, of Keras models, their losses and gradients."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- printed-symbol: a text alone -------------------------------------------------------------------------------------


@triggers("printed-symbol", says="and not in each of its 5 runs", pastes=True)
def a_text_printed_in_a_step():
    @tf.function
    def step(x):
        print("start of the step", end="\n\n")
        return x * 2

    for _ in range(5):
        step(tf.constant(1.0))


@triggers("printed-symbol", says="of call prints while", pastes=True)  # tensorflow#56746
def texts_printed_in_a_model_of_keras():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            print("call is called")
            return self.dense(x)

    model = Model()
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 2), np.float32), np.ones((8, 1), np.float32), batch_size=2, epochs=3, verbose=0)


@near("printed-symbol")
def texts_of_who_knows_when_they_are_printed():
    @tf.function
    def step(x):
        print("Tracing step")
        print("this runs only once")
        print()
        print("-" * 20)
        print("-----")
        tf.print("step")
        return x * 2

    for _ in range(5):
        step(tf.constant(1.0))


@near("printed-symbol")
def a_text_in_a_function_that_runs_once_a_trace():
    @tf.function
    def step(x):
        print("hello")
        return x * 2

    step(tf.constant(1.0))
    step(tf.constant([1.0]))


@near("printed-symbol")
def a_text_of_a_model_that_runs_eagerly():
    def distance(y, prediction):
        print("in the loss")
        return tf.reduce_mean((y - prediction) ** 2)

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", distance, run_eagerly=True)
    model.fit(np.ones((8, 2), np.float32), np.ones((8, 1), np.float32), batch_size=2, epochs=3, verbose=0)


# -- untaped: steps under a tape --------------------------------------------------------------------------------------


@triggers("untaped", says="gives 0 or 1, and has no gradient", pastes=True)
def a_comparison_in_a_loss_of_a_tape():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    x, y = tf.random.normal((8, 3)), tf.ones((8, 1))
    with tf.GradientTape() as tape:
        pred = tf.cast(model(x) > 0.5, tf.float32)
        loss = tf.reduce_mean((pred - y) ** 2)
    tape.gradient(loss, model.trainable_variables)


@triggers("untaped", says="gives whole numbers, and has no gradient", pastes=True)
def whole_numbers_under_a_tape():
    w = tf.Variable([1.3, 2.7])
    with tf.GradientTape() as tape:
        whole = tf.cast(w, tf.int32)
        y = tf.cast(whole, tf.float32) * 2.0
        loss = tf.reduce_sum((y - 3.0) ** 2)
    tape.gradient(loss, w)
    assert loss == 2.0


@near("untaped")
def whole_numbers_beside_a_loss_of_a_tape():
    w = tf.Variable([1.3, 2.7])
    with tf.GradientTape() as tape:
        whole = tf.cast(tf.cast(w, tf.int32), tf.float32)
        loss = tf.reduce_sum((w - whole) ** 2)
        right = tf.reduce_mean(tf.cast(w > 1.0, tf.float32))
    assert tape.gradient(loss, w) is not None
    assert right == 1.0


# -- second-order: eager tapes ----------------------------------------------------------------------------------------


@triggers("second-order", says="a second derivative was taken through", pastes=True)
def a_second_derivative_of_eager_tapes():
    def cube(x):
        return x**3

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.py_function(cube, [x], tf.float32)
        dy = inner.gradient(y, x)
    outer.gradient(dy, x)


@near("second-order")
def a_second_derivative_of_ops_beside_a_py_function():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        dy = inner.gradient(y, x)
    outer.gradient(dy, x)
    tf.py_function(lambda x: x**3, [x], tf.float32)


# -- trace-only and stale-closure: what Keras' steps call and read ----------------------------------------------------


@triggers("trace-only", says="of extract, which custom_loss calls, changes Python's", pastes=True)  # tensorflow#43650
def a_place_that_a_helper_of_a_loss_moves():
    class Buffer:
        calls = 0
        start = 0

        @classmethod
        def extract(cls, size):
            cls.calls += 1
            cls.start = 0 if cls.calls == 1 else cls.start + size
            return weights[cls.start % 8 : cls.start % 8 + size]

    weights = np.ones((8, 1), np.float32)

    def custom_loss(y, prediction):
        return tf.reduce_mean(Buffer.extract(2) * tf.square(y - prediction))

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", custom_loss)
    model.fit(np.ones((8, 2), np.float32), np.ones((8, 1), np.float32), batch_size=2, epochs=2, verbose=0)


@near("trace-only")
def a_helper_of_a_loss_that_keeps_nothing():
    class Buffer:
        size = 2

        @classmethod
        def extract(cls, start):
            place = start
            place += cls.size
            return weights[start:place]

    weights = np.ones((8, 1), np.float32)

    def custom_loss(y, prediction):
        return tf.reduce_mean(Buffer.extract(2) * tf.square(y - prediction))

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", custom_loss)
    model.fit(np.ones((8, 2), np.float32), np.ones((8, 1), np.float32), batch_size=2, epochs=2, verbose=0)


@triggers("stale-closure", says="puts another object into self.alpha: alpha, which", pastes=True)  # keras#2595
def a_weight_of_losses_that_a_callback_replaces():
    class Change(keras.callbacks.Callback):
        def __init__(self, alpha):
            super().__init__()
            self.alpha = alpha

        def on_epoch_end(self, epoch, logs=None):
            self.alpha = self.alpha - 0.1

    alpha = tf.Variable(0.5)
    x = keras.Input((2,))
    model = keras.Model(x, [keras.layers.Dense(1)(x), keras.layers.Dense(1)(x)])
    model.compile("sgd", ["mse", "mse"], loss_weights=[alpha, 1.0])
    y = np.ones((8, 1), np.float32)
    model.fit(np.ones((8, 2), np.float32), [y, y], epochs=3, verbose=0, callbacks=[Change(alpha)])


# -- symbolic-value: an input that is compared ------------------------------------------------------------------------


@triggers("symbolic-value", says="so that it holds for no batch", pastes=True)  # keras#8630
def an_if_of_a_keras_input():
    x_tensor = keras.Input((4,))
    a_tensor = keras.Input((1,))
    x = keras.layers.Dense(2)(x_tensor)
    if a_tensor == 1:  # noqa: SIM108 - the trap
        y = keras.layers.Dense(1, name="T1")(x)
    else:
        y = keras.layers.Dense(1, name="T2")(x)
    model = keras.Model([x_tensor, a_tensor], y)
    model.compile("sgd", "mse")
    ones = np.ones((8, 4), np.float32), np.ones((8, 1), np.float32)
    model.fit(list(ones), ones[1], verbose=0)


@near("symbolic-value")
def an_if_of_what_an_input_has():
    x = keras.Input((4,))
    flag = 1
    if x.shape[-1] == 4:
        y = keras.layers.Dense(1)(x)
    if flag == 1:
        y = keras.layers.Activation("relu")(y)
    model = keras.Model(x, y)
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 4), np.float32), np.ones((8, 1), np.float32), verbose=0)


@triggers("symbolic-value", says="so that it holds for no batch", pastes=True)
def an_if_of_an_input_that_is_predicted():
    flag = keras.Input((1,))
    if flag == 0:  # noqa: SIM108 - the trap
        y = flag * 2
    else:
        y = flag
    model = keras.Model(flag, y)
    model.compile("sgd", "mse")
    model.predict(np.ones((64, 1), np.float32), batch_size=8, verbose=0)


@triggers("symbolic-value", says="decided once, as the model was built")
def an_if_of_an_input_in_a_function():
    def build():
        x = keras.Input((4,))
        kind = keras.Input((1,))
        h = keras.layers.Dense(4)(x)
        if 1 == kind:  # noqa: SIM300
            h = keras.layers.Dense(4)(h)
            h = keras.layers.Activation("relu")(h)
        return keras.Model([x, kind], keras.layers.Dense(1)(h))

    model = build()
    model.compile("sgd", "mse")
    y = np.ones((8, 1), np.float32)
    model.fit([np.ones((8, 4), np.float32), y], y, verbose=0)


@near("symbolic-value")
def an_if_that_asks_which_input_it_is():
    x, other = keras.Input((4,)), None
    y = keras.layers.Dense(1)(x)
    if other is None:
        y = keras.layers.Activation("relu")(y)
    model = keras.Model(x, y)
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 4), np.float32), np.ones((8, 1), np.float32), verbose=0)


@near("symbolic-value")
def a_choice_of_an_input_by_ops():
    x = keras.Input((1,))
    y = keras.ops.where(keras.ops.equal(x, 1), keras.layers.Dense(1)(x), x)
    model = keras.Model(x, y)
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 1), np.float32), np.ones((8, 1), np.float32), verbose=0)


# -- cut-gradient: a call that Keras traced to build its layer ---------------------------------------------------------


def fitted(layer):
    model = keras.Sequential([layer, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(np.ones((8, 3), np.float32), np.ones(8), epochs=1, verbose=0)


@triggers("cut-gradient", pastes=True, says="no weight of BuiltByItsCall is trained")
def a_layer_whose_call_is_a_function():
    class BuiltByItsCall(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = keras.layers.Dense(4, activation="relu")

        @tf.function
        def call(self, x):
            return self.inner(x)

    fitted(BuiltByItsCall())


@near("cut-gradient")
def a_layer_that_builds_what_is_in_it():
    class Built(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = keras.layers.Dense(4, activation="relu")

        def build(self, shape):
            self.inner.build(shape)

        @tf.function
        def call(self, x):
            return self.inner(x)

    fitted(Built())


@near("cut-gradient")
def a_layer_that_was_called_on_values_first():
    class Called(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = keras.layers.Dense(4, activation="relu")

        @tf.function
        def call(self, x):
            return self.inner(x)

    layer = Called()
    layer(tf.ones((2, 3)))
    fitted(layer)


@near("cut-gradient")
def a_layer_whose_call_reads_no_weight_of_its_own():
    class Head(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = keras.layers.Dense(4)

        def build(self, shape):
            self.inner.build(shape)

        @tf.function
        def call(self, x):
            return tf.math.l2_normalize(x, -1)

        def scores(self, x):
            return self.inner(self(x))

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.head = Head()

        def call(self, x):
            return self.head.scores(x)

    net = Net()
    net.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    net.fit(np.ones((8, 3), np.float32), np.zeros(8), verbose=0)


@near("cut-gradient")
def a_layer_that_reads_its_weight_for_labels_only():
    class Head(keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1], 4))

        @tf.function
        def call(self, x, labels=None):
            if labels is None:
                return tf.math.l2_normalize(x, -1)
            return x @ self.w - tf.one_hot(labels, 4)

    inputs = keras.Input((8,))
    keras.Model(inputs, Head()(inputs)).predict(np.ones((4, 8)), verbose=0)


@near("cut-gradient")
def a_layer_without_weights_whose_call_is_a_function():
    class Noise(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = keras.layers.Dropout(0.5)

        @tf.function
        def call(self, x):
            return self.inner(x) * 2

    fitted(Noise())
