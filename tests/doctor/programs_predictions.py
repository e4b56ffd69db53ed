"""Programs that do not fail, and take what a model predicts for something else: as `programs_threads`."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- single-column ----------------------------------------------------------------------------------------------------


@triggers("single-column", severity="error", says="(model.predict(x, verbose=0) > 0.5).astype(int)[:, 0]", pastes=True)
def the_largest_of_one_column():
    x = np.random.default_rng(0).random((16, 4))
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    classes = np.argmax(model.predict(x, verbose=0), axis=1)
    print(classes.sum())


@triggers("single-column", says="y_prob has one column", pastes=True)
def a_method_of_a_name():
    x = np.random.default_rng(0).random((16, 4))
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    y_prob = model.predict(x, verbose=0)
    print(y_prob.argmax(axis=-1))


@triggers("single-column", says="(pred > 0.5) == y", pastes=True)
def fractions_that_are_compared_with_classes():
    x, y = np.random.default_rng(0).random((16, 4)), np.arange(16) % 2
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    pred = model.predict(x, verbose=0)[:, 0]
    print("accuracy", np.mean(pred == y))


@triggers("single-column", says="y == (probabilities > 0.5)", pastes=True)
def fractions_that_are_flat():
    def accuracy(model, x, y):
        probabilities = model.predict(x, verbose=0).ravel()
        return (y == probabilities).sum() / len(y)

    x, y = np.random.default_rng(0).random((16, 4)), np.arange(16) % 2
    accuracy(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")]), x, y)


@triggers("single-column", severity="error", says="y is [32, 1], with one column", pastes=True)
def labels_of_one_column_in_a_metric():
    def acc(y, p):
        return np.float32((np.argmax(y, -1) == np.argmax(p, -1)).mean())

    def metric(y, p):
        return tf.ensure_shape(tf.numpy_function(acc, [y, p], tf.float32), [])

    x, y = np.random.rand(64, 4).astype("float32"), np.arange(64).reshape(64, 1) % 3
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=[metric])
    model.fit(x, y, epochs=1, verbose=0)


@triggers("single-column", says="tf.cast(labels[..., 0], tf.int64)", pastes=True)
def masks_of_one_channel_in_an_eager_body():
    def same(labels, scores):
        hits = tf.equal(tf.math.argmax(labels, axis=3), tf.argmax(scores, axis=3))
        return tf.reduce_mean(tf.cast(hits, tf.float32))

    labels = tf.cast(tf.reshape(tf.range(32) % 3, [2, 4, 4, 1]), tf.float32)
    tf.py_function(same, [labels, tf.random.uniform([2, 4, 4, 3])], tf.float32)


@triggers("single-column", says="(p[..., 0] > 0.5).astype(int)", pastes=True)
def a_sigmoid_in_a_body():
    def hits(y, p):
        guess = p.argmax(axis=1)
        return np.float32((guess == y).mean())

    y, p = tf.constant([0, 1, 1, 0]), tf.constant([[0.1], [0.8], [0.9], [0.3]])
    tf.numpy_function(hits, [y, p], tf.float32)


@near("single-column")
def one_hot_labels_in_a_body():
    def acc(y, p):
        return np.float32((np.argmax(y, -1) == np.argmax(p, -1)).mean())

    tf.numpy_function(acc, [tf.eye(4), tf.random.uniform([4, 4])], tf.float32)


@near("single-column")
def the_largest_row_of_a_column():
    def best(scores):
        return np.argmax(scores, axis=0)

    tf.numpy_function(best, [tf.random.uniform([8, 1])], tf.int64)


@near("single-column")
def labels_that_are_one_column_in_one_call_only():
    def first(y):
        return np.argmax(y, axis=-1)

    for columns in (1, 3):
        tf.numpy_function(first, [tf.random.uniform([4, columns])], tf.int64)


@near("single-column")
def the_largest_of_three_columns():
    x = np.random.default_rng(0).random((16, 4))
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")])
    print(np.argmax(model.predict(x, verbose=0), axis=1))


@near("single-column")
def the_row_with_the_largest_prediction():
    x = np.random.default_rng(0).random((16, 4))
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    scores = model.predict(x, verbose=0)
    print(np.argmax(scores, axis=0), np.argmax(scores), np.mean(scores == scores.max()))


@near("single-column")
def fractions_that_are_rounded():
    x, y = np.random.default_rng(0).random((16, 4)), np.arange(16) % 2
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    pred = model.predict(x, verbose=0)[:, 0]
    pred = np.round(pred)
    classes = (model.predict(x, verbose=0) > 0.5).astype(int)[:, 0]
    print(np.mean(pred == y), np.mean(classes == y))


# -- last-layer: what the model and the loss say themselves ----------------------------------------------------------


@triggers("last-layer", says="the loss is 0 whatever the model says", pastes=True)
def one_column_for_a_categorical_loss():
    model = keras.Sequential()
    model.add(keras.layers.Dense(1, activation="sigmoid"))
    model.compile("sgd", loss=keras.losses.CategoricalCrossentropy())
    model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)


@triggers("last-layer", says='"binary_crossentropy"', pastes=True)
def one_column_and_the_name_of_a_loss():
    inputs = keras.Input((2,))
    outputs = keras.layers.Activation("sigmoid")(keras.layers.Dense(1)(inputs))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "categorical_crossentropy")
    model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)


@triggers("last-layer", says="SparseCategoricalCrossentropy(from_logits=True)", pastes=True)
def a_loss_object_for_a_layer_without_softmax():
    def build(classes):
        return keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(classes)])

    model = build(3)
    loss = tf.keras.losses.SparseCategoricalCrossentropy()
    model.compile("sgd", loss)
    model.fit(np.ones((8, 2)), np.zeros(8), verbose=0)


@triggers("last-layer", says="without sigmoid these are any numbers", pastes=True)
def a_binary_loss_object():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", keras.losses.BinaryCrossentropy())
    model.fit(np.ones((8, 2)), np.zeros(8), verbose=0)


@near("last-layer")
def a_softmax_behind_the_last_dense():
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Softmax()])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy())
    model.fit(np.ones((8, 2)), np.zeros(8), verbose=0)


@near("last-layer")
def logits_and_a_layer_that_sets_the_dtype():
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Activation("linear", dtype="float32")])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(np.ones((8, 2)), np.zeros(8), verbose=0)


@near("last-layer")
def an_activation_before_a_linear_one():
    inputs = keras.Input((2,))
    outputs = keras.layers.Activation("linear")(keras.layers.Dense(1, activation="sigmoid")(inputs))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", keras.losses.BinaryCrossentropy())
    model.fit(np.ones((8, 2)), np.zeros(8), verbose=0)


@near("last-layer")
def a_warning_of_keras_that_takes_the_logits_itself():
    model = keras.Sequential([keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(np.ones((8, 2)), np.zeros(8), verbose=0)


# -- empty-fit --------------------------------------------------------------------------------------------------------


def _one_layer():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


@triggers("empty-fit", severity="error", says="frames.x has no row, [0, 3]: fit ran no step in 2 epochs")
def whole_batches_of_too_few_rows():
    class Frames:
        def __init__(self, x, y, size):
            count = len(x) // size
            self.x, self.y = x[: count * size], y[: count * size]

    frames = Frames(np.ones((20, 3)), np.ones(20), 256)
    history = _one_layer().fit(frames.x, frames.y, epochs=2, verbose=0)
    assert history.history == {}


@triggers("empty-fit", says="makes it: x[y > 1]")
def a_filter_that_leaves_no_row():
    x, y = np.ones((20, 3)), np.ones(20)
    x, y = x[y > 1], y[y > 1]
    model = _one_layer()
    model.fit(x=x, y=y, verbose=0)


@triggers("empty-fit", says="evaluate ran no step, and what it gives is of no row")
def no_row_to_evaluate():
    x, y = np.ones((20, 3)), np.ones(20)
    held = int(0.02 * len(x))
    _one_layer().evaluate(x[:held], y[:held], verbose=0)


@triggers("empty-fit", says="the x of validation_data has no row, [0, 3]")
def no_row_to_validate_with():
    x, y = np.ones((20, 3)), np.ones(20)
    _one_layer().fit(x, y, validation_data=(x[20:], y[20:]), epochs=2, verbose=0)


@near("empty-fit")
def no_epoch():
    _one_layer().fit(np.ones((4, 3)), np.ones(4), epochs=0, verbose=0)


@near("empty-fit")
def fewer_rows_than_a_batch():
    _one_layer().fit(np.ones((4, 3)), np.ones(4), batch_size=256, verbose=0)


@near("empty-fit")
def one_row_to_validate_with():
    x, y = np.ones((20, 3)), np.ones(20)
    _one_layer().fit(x, y, validation_data=(x[19:], y[19:]), verbose=0)


# -- lambda-shape -----------------------------------------------------------------------------------------------------


@triggers("lambda-shape", says="says [?, 6], and its function gave [?, 2]", pastes=True)
def a_lambda_that_is_called():
    layer = keras.layers.Lambda(lambda x: x**2, output_shape=(6,))
    x = np.zeros((3, 2))
    assert layer(x).shape == (3, 2)


@triggers("lambda-shape", says="says [?, 1], and its function gave [?]", pastes=True)
def a_lambda_in_a_model():
    inputs = keras.Input((4,))
    h = keras.layers.Lambda(lambda t: tf.reduce_sum(t, axis=1), output_shape=(1,), name="total")(inputs)
    model = keras.Model(inputs, h)
    model.predict(np.ones((3, 4)), verbose=0)


@triggers("lambda-shape", says="says [?, 2, 2], and its function gave [?, 4]", pastes=True)
def a_lambda_that_lost_an_axis():
    fold = keras.layers.Lambda(lambda x: tf.reshape(x, [-1, 4]), output_shape=(2, 2))
    model = keras.Sequential([keras.Input((2, 2)), fold])
    assert model(np.ones((3, 2, 2))).shape == (3, 4)


@near("lambda-shape")
def a_lambda_with_the_right_shape():
    layer = keras.layers.Lambda(lambda x: x[:, :2], output_shape=(2,))
    assert layer(np.zeros((3, 4))).shape == (3, 2)


@near("lambda-shape")
def a_lambda_of_a_size_that_is_left_open():
    layer = keras.layers.Lambda(lambda x: x[:, ::2], output_shape=(None,))
    assert layer(np.zeros((3, 4))).shape == (3, 2)


@near("lambda-shape")
def a_lambda_with_a_function_for_its_shape():
    layer = keras.layers.Lambda(lambda x: x[:, :2], output_shape=lambda shape: (shape[0], 2))
    assert layer(np.zeros((3, 4))).shape == (3, 2)
