"""More programs that do not fail: eager loops of training, optimizers and losses, after threads of users."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- own steps that no function is traced for ------------------------------------------------------------------------


@triggers("untracked-variable", says="the tape does not train it", pastes=True)
def an_eager_loop_over_a_layer_with_a_variable_of_tensorflow():
    class Scale(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.ones([3, 1]))

        def call(self, x):
            return x @ self.w

    model = keras.Sequential([keras.layers.Dense(3), Scale()])
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        tape.gradient(loss, model.trainable_variables)


@triggers("training-flag", says="model(x) (line", pastes=True)
def an_eager_step_with_dropout():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)])

    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    train(tf.ones([4, 2]))


@triggers("left-out-loss", says="tf.add_n(", pastes=True)
def an_eager_step_with_a_loss_object_and_a_regularizer():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1, kernel_regularizer="l2")])
    mse = keras.losses.MeanSquaredError()
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = mse(tf.ones([4, 1]), model(tf.ones([4, 2])))
        tape.gradient(loss, model.trainable_variables)


@triggers("swapped-loss", says="loss_fn(y, logits)", pastes=True)
def an_eager_step_with_predictions_first():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)
    x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = loss_fn(logits, y)
    tape.gradient(loss, model.trainable_variables)


@near("untracked-variable")
def an_eager_loop_that_asks_for_the_variable_of_tensorflow():
    class Scale(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.ones([2, 1]))

        def call(self, x):
            return x @ self.w

    layer = Scale()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(layer(tf.ones([4, 2])) ** 2)
    tape.gradient(loss, [layer.w])


@near("training-flag")
@near("left-out-loss")
@near("swapped-loss")
def an_eager_step_that_is_as_keras_does_it():
    model = keras.Sequential(
        [keras.layers.Input((2,)), keras.layers.Dropout(0.5), keras.layers.Dense(1, kernel_regularizer="l2")]
    )
    bce = keras.losses.BinaryCrossentropy(from_logits=True)
    with tf.GradientTape() as tape:
        logits = model(tf.ones([4, 2]), training=True)
        loss = bce(tf.ones([4, 1]), logits) + tf.add_n(model.losses)
    tape.gradient(loss, model.trainable_variables)


# -- training-flag: a validation as in training ------------------------------------------------------------------------


def dropping(layer):
    return keras.Sequential([keras.layers.Input((2,)), layer, keras.layers.Dense(1)])


@triggers("training-flag", says="held back", pastes=True)
def a_loop_that_validates_with_the_flag():
    model, optimizer = dropping(keras.layers.BatchNormalization()), keras.optimizers.SGD(0.1)
    train_ds = val_ds = tf.data.Dataset.from_tensor_slices(tf.ones([8, 2])).batch(4)
    for _ in range(2):
        for x in train_ds:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(x, training=True) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        for x in val_ds:
            tf.reduce_mean(model(x, training=True) ** 2)


@triggers("training-flag", says="validates with training=True: ", pastes=True)
def a_traced_step_that_validates_with_the_flag():
    model, optimizer = dropping(keras.layers.Dropout(0.5)), keras.optimizers.SGD(0.1)

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    @tf.function
    def test_step(x):
        return tf.reduce_mean(model(x, training=True) ** 2)

    train_step(tf.ones([4, 2]))
    test_step(tf.ones([4, 2]))


@near("training-flag")
def answers_of_a_model_that_drops_on_purpose():
    model, optimizer = dropping(keras.layers.Dropout(0.5)), keras.optimizers.SGD(0.1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.ones([4, 2]), training=True) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    for x in tf.data.Dataset.from_tensors(tf.ones([4, 2])):
        answers = [model(x, training=True) for _ in range(8)]
        tf.math.reduce_std(tf.stack(answers), axis=0)


@near("training-flag")
def a_loop_that_validates_without_the_flag():
    model, optimizer = dropping(keras.layers.Dropout(0.5)), keras.optimizers.SGD(0.1)
    train_ds = val_ds = tf.data.Dataset.from_tensor_slices(tf.ones([8, 2])).batch(4)
    for x in train_ds:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    for x in val_ds:
        model(x, training=False)


@near("training-flag")
def several_answers_for_each_row_that_is_held_back():
    model, optimizer = dropping(keras.layers.Dropout(0.5)), keras.optimizers.SGD(0.1)
    train_ds = test_ds = tf.data.Dataset.from_tensor_slices(tf.ones([8, 2])).batch(4)
    for x in train_ds:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    for x in test_ds:
        for _ in range(4):
            model(x, training=True)


# -- stale-closure: `trainable` that Keras does not look at ------------------------------------------------------------


@triggers("stale-closure", says="the fit of line", pastes=True)
def a_base_that_is_thawed_between_two_fits():
    base = keras.layers.Dense(3)
    base.trainable = False
    model = keras.Sequential([keras.layers.Input((2,)), base, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x, y = np.ones((8, 2)), np.ones((8, 1))
    model.fit(x, y, verbose=0)
    base.trainable = True
    model.fit(x, y, verbose=0)


@triggers("stale-closure", says="sets layer.trainable after model trained", pastes=True)
def layers_that_a_loop_freezes_between_two_fits():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam(1e-3)
    model.compile(optimizer=optimizer, loss="mse")
    x, y = np.ones((8, 2)), np.ones((8, 1))
    model.fit(x, y, verbose=0)
    for layer in model.layers[:1]:
        layer.trainable = False
    history = model.fit(x, y, verbose=0)
    return history


@triggers("stale-closure", says="d does not train in line", pastes=True)
def a_discriminator_that_is_frozen_for_its_gan():
    d = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    d.compile("adam", "binary_crossentropy")
    g = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(4)])
    d.trainable = False
    gan = keras.Sequential([g, d])
    gan.compile("adam", "binary_crossentropy")
    for _ in range(2):
        d.train_on_batch(np.ones((8, 4)), np.ones((8, 1)))
        gan.train_on_batch(np.ones((8, 2)), np.ones((8, 1)))


@near("stale-closure")
def a_base_that_is_thawed_and_compiled():
    base = keras.layers.Dense(3)
    base.trainable = False
    model = keras.Sequential([keras.layers.Input((2,)), base, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x, y = np.ones((8, 2)), np.ones((8, 1))
    model.fit(x, y, verbose=0)
    base.trainable = True
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)


@near("stale-closure")
def a_discriminator_that_is_thawed_for_its_step():
    d = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    d.compile("adam", "binary_crossentropy")
    g = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(4)])
    gan = keras.Sequential([g, d])
    gan.compile("adam", "binary_crossentropy")
    for _ in range(2):
        d.trainable = True
        d.train_on_batch(np.ones((8, 4)), np.ones((8, 1)))
        d.trainable = False
        gan.train_on_batch(np.ones((8, 2)), np.ones((8, 1)))


@near("stale-closure")
def a_layer_that_is_frozen_behind_the_fits():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x, y = np.ones((8, 2)), np.ones((8, 1))
    model.fit(x, y, verbose=0)
    model.fit(x, y, verbose=0)
    model.trainable = False


# -- remade-optimizer --------------------------------------------------------------------------------------------------


@triggers("remade-optimizer", says="in each call of train", pastes=True)
def a_step_that_makes_its_optimizer():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])

    def train(x):
        opt = keras.optimizers.Adam(0.01)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))

    for _ in range(2):
        train(tf.ones([4, 2]))


@triggers("remade-optimizer", says="in each pass of the loop", pastes=True)
def a_loop_that_makes_its_optimizer():
    w = tf.Variable([2.0, 1.0])
    rate = 0.1
    for _ in range(3):
        optimizer = tf.keras.optimizers.RMSprop(rate)

        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])


@triggers("remade-optimizer", says="SGD loses the speed that it had")
def a_method_that_makes_its_optimizer_with_a_momentum():
    class Trainer:
        def __init__(self):
            self.w = tf.Variable(2.0)
            self.rate = 0.1

        def step(self):
            opt = keras.optimizers.SGD(self.rate, momentum=0.9)
            with tf.GradientTape() as tape:
                loss = self.w * self.w
            opt.apply_gradients([(tape.gradient(loss, self.w), self.w)])

    trainer = Trainer()
    for _ in range(2):
        trainer.step()


@near("remade-optimizer")
def an_optimizer_above_its_loop():
    w = tf.Variable(2.0)
    opt = keras.optimizers.Adam(0.1)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = w * w
        opt.apply_gradients([(tape.gradient(loss, w), w)])


@near("remade-optimizer")
def an_optimizer_for_each_of_some_models():
    for width in (2, 3):
        model = keras.Sequential([keras.layers.Input((width,)), keras.layers.Dense(1)])
        opt = keras.optimizers.Adam(0.1)
        for _ in range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(tf.ones([4, width])) ** 2)
            grads = tape.gradient(loss, model.trainable_variables)
            opt.apply_gradients(zip(grads, model.trainable_variables))


@near("remade-optimizer")
def an_optimizer_without_a_memory():
    w = tf.Variable(2.0)
    for rate in (0.1, 0.01):
        opt = keras.optimizers.SGD(rate)
        with tf.GradientTape() as tape:
            loss = w * w
        opt.apply_gradients([(tape.gradient(loss, w), w)])


@near("remade-optimizer")
def a_step_for_a_weight_of_its_own():
    def fitted(start):
        w = tf.Variable(start)
        opt = keras.optimizers.Adam(0.1)
        with tf.GradientTape() as tape:
            loss = w * w
        opt.apply_gradients([(tape.gradient(loss, w), w)])
        return float(w)

    for start in (1.0, 2.0):
        fitted(start)


# -- swapped-loss: losses that name their parameters the other way round -----------------------------------------------


@triggers("swapped-loss", says="y_pred are the labels there", pastes=True)
def a_focal_loss_that_names_predictions_first():
    def focal(y_pred, y_true):
        p = tf.clip_by_value(y_pred, 1e-6, 1 - 1e-6)
        return -tf.reduce_mean(y_true * tf.math.log(p) + (1 - y_true) * tf.math.log(1 - p))

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", focal)
    model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)


@triggers("swapped-loss", says="and target the predictions", pastes=True)
def a_weighted_loss_that_names_predictions_first():
    def weighted(weight):
        def loss(pred, target):
            return weight * keras.losses.binary_crossentropy(target, pred)

        return loss

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer="adam", loss=weighted(2.0))
    model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)


@near("swapped-loss")
def a_squared_difference_that_names_predictions_first():
    def squared(y_pred, y_true):
        return tf.reduce_mean((y_pred - y_true) ** 2, axis=-1)

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", squared)
    model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)


@near("swapped-loss")
def a_loss_that_names_labels_first():
    def bce(y_true, y_pred):
        return keras.losses.binary_crossentropy(y_true, y_pred)

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", bce)
    model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)


# -- untaped: a loss in a variable -------------------------------------------------------------------------------------


@triggers("untaped", says="no op leads from there back", pastes=True)
def a_loss_in_a_variable():
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = tf.Variable(w * w)
    return tape.gradient(loss, w)


@near("untaped")
def a_variable_that_is_differentiated_for_itself():
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = w * w
    return tape.gradient(loss, w)


# -- unweighted-loss ---------------------------------------------------------------------------------------------------


@triggers("unweighted-loss", says="fit got sample_weight", pastes=True)
def weights_of_rows_and_a_mean_of_all():
    def my_loss(y_true, y_pred):
        return tf.reduce_mean(tf.square(y_true - y_pred))

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", my_loss)
    model.fit(np.ones((8, 2)), np.ones((8, 1)), sample_weight=np.arange(8.0), verbose=0)


@triggers("unweighted-loss", says="fit got class_weight", pastes=True)
def weights_of_classes_and_a_factory_of_losses():
    def focal(gamma):
        def loss(y_true, y_pred):
            p = tf.where(y_true > 0.5, y_pred, 1 - y_pred)
            return -tf.reduce_mean((1 - p) ** gamma * tf.math.log(p + 1e-6))

        return loss

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", loss=focal(2.0))
    model.fit(np.ones((8, 2)), np.ones((8, 1)), class_weight={0: 1.0, 1: 3.0}, verbose=0)


@triggers("unweighted-loss", says="returns one number", pastes=True)
def weights_of_rows_and_a_mean_with_a_name():
    def my_loss(y_true, y_pred):
        error = keras.ops.abs(y_true - y_pred)
        loss = keras.ops.mean(error)
        return loss

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss=my_loss)
    weights = np.linspace(0, 1, 8)
    model.fit(np.ones((8, 2)), np.ones((8, 1)), sample_weight=weights, verbose=0)


@near("unweighted-loss")
def weights_of_rows_and_a_loss_a_row():
    def my_loss(y_true, y_pred):
        return tf.reduce_mean(tf.square(y_true - y_pred), axis=-1)

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", my_loss)
    model.fit(np.ones((8, 2)), np.ones((8, 1)), sample_weight=np.arange(8.0), verbose=0)


@near("unweighted-loss")
def a_mean_of_all_without_weights():
    def my_loss(y_true, y_pred):
        return tf.reduce_mean(tf.square(y_true - y_pred))

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", my_loss)
    model.fit(np.ones((8, 2)), np.ones((8, 1)), sample_weight=None, verbose=0)


@near("unweighted-loss")
def weights_of_rows_and_a_loss_of_keras():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(np.ones((8, 2)), np.ones((8, 1)), sample_weight=np.arange(8.0), verbose=0)


# -- printed-symbol: what `call` keeps in an attribute -----------------------------------------------------------------


@triggers("printed-symbol", says="m.attention is a symbol without values", pastes=True)
def an_attribute_of_a_model_that_is_printed_behind_fit():
    class Attends(keras.Model):
        def __init__(self):
            super().__init__()
            self.d = keras.layers.Dense(1)

        def call(self, x):
            self.attention = tf.nn.softmax(self.d(x))
            return self.attention * 2

    m = Attends()
    m.compile("adam", "mse")
    x = np.ones((8, 2), "float32")
    m.fit(x, np.ones((8, 1)), verbose=0)
    print(m.attention)


@near("printed-symbol")
def an_attribute_of_a_model_that_is_printed_behind_a_call():
    class Attends(keras.Model):
        def __init__(self):
            super().__init__()
            self.d = keras.layers.Dense(1)

        def call(self, x):
            self.attention = tf.nn.softmax(self.d(x))
            return self.attention * 2

    m = Attends()
    m.compile("adam", "mse")
    x = np.ones((8, 2), "float32")
    m.fit(x, np.ones((8, 1)), verbose=0)
    m(x)
    print(m.attention)


# -- untaped: a value that goes through a variable, tf#54532 -----------------------------------------------------------


@triggers("untaped", says="goes on with self.w: no op leads from a variable back", pastes=True)
def a_model_that_gives_its_weight_the_input():
    class Posterior(keras.Model):
        def build(self, input_shape):
            self.w = self.add_weight(name="w", shape=(), initializer="zeros")

        def call(self, x):
            self.w.assign(x)
            return 0.5 * self.w**2

    model = Posterior()
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
    assert model.w.numpy() == 3.0
    tape.gradient(y, x)


@triggers("untaped", says="goes on with made", pastes=True)
def a_variable_between_two_products():
    net = tf.Variable([[1.0, 2.0]])
    made = tf.Variable(tf.zeros((1, 2)))
    for _ in range(2):
        with tf.GradientTape() as tape:
            made.assign(2.0 * tf.constant([[2.0]]) @ net)
            loss = tf.reduce_sum(tf.square(made - 1.0))
        tape.gradient(loss, [net])


@triggers("untaped", says="goes on with w", pastes=True)
def a_traced_step_through_a_variable():
    w = tf.Variable([0.0, 0.0])
    net = tf.Variable([[1.0, 2.0]])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            made = tf.reshape(tf.matmul(x, net), [-1])
            w.assign(made)
            loss = tf.reduce_sum(w**2)
        return tape.gradient(loss, [net])

    step(tf.constant([[2.0]]))


@near("untaped")
def a_moving_mean_beside_the_way():
    mean, w = tf.Variable(0.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = w**2
        mean.assign(0.9 * mean + 0.1 * loss)
        tf.print(mean, output_stream="file:///dev/null")
    assert tape.gradient(loss, w) == 4.0


@near("untaped")
def a_variable_that_is_only_counted():
    count, w = tf.Variable(0.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        count.assign_add(1.0)
        loss = w * count
    assert tape.gradient(loss, w) == 1.0


@near("untaped")
def a_value_that_is_given_on_beside_its_variable():
    held, w = tf.Variable(0.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        made = 3.0 * w
        held.assign(made)
        loss = made**2
    assert tape.gradient(loss, w) == 36.0


@triggers("untaped", says="g.watch(x)", pastes=True)
def a_tensor_that_is_made_in_the_block():  # tensorflow#50661
    with tf.GradientTape() as g:
        shape = (1, 4, 4, 1)
        values = np.random.randint(10, size=shape)
        x = tf.constant(values, dtype=tf.float32)
        w = tf.ones((3, 3, 1, 1))
        out = tf.nn.conv2d(input=x, filters=w, strides=(1, 1, 1, 1), padding="VALID")
        above = tf.ones_like(out)
    print(g.gradient(out, x, output_gradients=above))
