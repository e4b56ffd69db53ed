"""More programs that do not fail, after threads of users: arrays that Keras takes and gives in silence."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- broadcast-metric: keras#14627 -------------------------------------------------------------------------------------


@triggers("broadcast-metric", says="y [8] and model.predict(x, verbose=0) [8, 1]", pastes=True)
def an_error_of_what_predict_gives():
    model = keras.Sequential([keras.layers.Dense(1)])
    x, y = np.random.rand(8, 3).astype("float32"), np.random.rand(8)
    error = np.square(np.subtract(y, model.predict(x, verbose=0))).mean()
    assert error.shape == ()


@triggers("broadcast-metric", says="[8, 8]", pastes=True)
def an_error_of_predictions_by_their_name():
    model = keras.Sequential([keras.layers.Dense(1)])
    x, y = np.random.rand(8, 3).astype("float32"), np.random.rand(8)
    predictions = model.predict(x, verbose=0)
    rmse = np.sqrt(np.mean((predictions - y) ** 2))
    mae = np.mean(np.abs(predictions - y))
    assert rmse >= mae


@triggers("broadcast-metric", says="takes labels [8] and predicted [8, 1] together", pastes=True)
def the_share_of_right_classes():
    model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
    images, labels = np.random.rand(8, 3).astype("float32"), np.array([0, 1] * 4)

    def accuracy():
        predicted = (model.predict(images, verbose=0) > 0.5).astype("int32")
        return np.mean(predicted == labels)

    assert 0 <= accuracy() <= 1


@triggers("broadcast-metric", says="np.array(targets) [4]", pastes=True)
def an_error_against_a_list():
    model = keras.Sequential([keras.layers.Dense(1)])
    targets = [1.0, 2.0, 3.0, 4.0]
    rounded = np.round(model.predict(np.ones((4, 2), "float32"), verbose=0), 2)
    errors = np.array(targets) - rounded
    assert errors.mean() < 1000


@triggers("broadcast-metric", says="[8, 8]", pastes=True)
def an_error_a_row():
    model = keras.Sequential([keras.layers.Dense(1)])
    x, y = np.random.rand(8, 3).astype("float32"), np.random.rand(8)
    restored = model.predict(x, verbose=0)
    errors = np.mean(np.abs(restored - y), axis=1)
    assert errors.shape == (8,)


@near("broadcast-metric")
def an_error_of_flat_predictions():
    model = keras.Sequential([keras.layers.Dense(1)])
    x, y = np.random.rand(8, 3).astype("float32"), np.random.rand(8)
    predictions = model.predict(x, verbose=0)
    predictions = predictions.flatten()
    assert np.mean((predictions - y) ** 2) >= 0
    assert np.mean((y - model.predict(x, verbose=0)[:, 0]) ** 2) >= 0


@near("broadcast-metric")
def an_error_against_a_column():
    model = keras.Sequential([keras.layers.Dense(1)])
    x, y = np.random.rand(8, 3).astype("float32"), np.random.rand(8)
    predictions = model.predict(x, verbose=0)
    y = y.reshape(-1, 1)
    assert np.mean((predictions - y) ** 2) >= 0


@near("broadcast-metric")
def predictions_of_several_numbers():
    model = keras.Sequential([keras.layers.Dense(8)])
    x, offset = np.random.rand(8, 3).astype("float32"), np.arange(8)
    assert (model.predict(x, verbose=0) - offset).shape == (8, 8)


@near("broadcast-metric")
def labels_made_of_the_predictions_afterwards():
    model = keras.Sequential([keras.layers.Dense(1)])
    x, y = np.random.rand(8, 3).astype("float32"), np.random.rand(8)
    predictions = model.predict(x, verbose=0)
    y = np.expand_dims(y, -1) if predictions.ndim == 2 else y
    assert (predictions == y).shape == (8, 1)


# -- label-weight: keras#18379 -----------------------------------------------------------------------------------------


@triggers("label-weight", says="its weights are for the columns 0, 1 then, not for 0s and 1s", pastes=True)
def weights_of_zeros_and_ones():
    x, y = np.random.rand(8, 4), np.tile([[0, 1, 1, 0], [1, 1, 0, 1]], (4, 1))
    model = keras.Sequential([keras.layers.Dense(4, activation="sigmoid")])
    model.compile(loss="binary_crossentropy", optimizer="adam")
    model.fit(x, y, epochs=1, class_weight={0: 1.0, 1: 760.0}, verbose=0)


@triggers("label-weight", says="4 have several 1s, and 4 have none", pastes=True)
def a_weight_for_each_label():
    x, y = np.random.rand(8, 4), np.tile([[0, 1, 1], [0, 0, 0]], (4, 1)).astype("float32")
    weights = {column: float(1 / (0.1 + y[:, column].mean())) for column in range(3)}
    model = keras.Sequential([keras.layers.Dense(3, activation="sigmoid")])
    model.compile("adam", keras.losses.BinaryCrossentropy(), metrics=["accuracy"])
    model.fit(
        x,
        y,
        class_weight=weights,
        verbose=0,
    )


@triggers("label-weight", says="Of these 6 rows of 5 labels", pastes=True)
def weights_by_their_name():
    x, y = np.random.rand(6, 4), np.tile([[0, 1, 1, 0, 1], [1, 0, 0, 0, 0]], (3, 1))
    ones = {0: 1, 1: 5}
    inputs = tf.keras.Input((4,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(5, activation="sigmoid")(inputs))
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(x, y, class_weight=ones, epochs=1, verbose=0)


@near("label-weight")
def weights_of_one_hot_classes():
    x, y = np.random.rand(8, 4), np.eye(4)[np.arange(8) % 4]
    model = keras.Sequential([keras.layers.Dense(4, activation="softmax")])
    model.compile(loss="categorical_crossentropy", optimizer="adam")
    model.fit(x, y, class_weight={0: 1.0, 1: 2.0, 2: 1.0, 3: 1.0}, verbose=0)


@near("label-weight")
def weights_of_a_yes_or_no():
    x, y = np.random.rand(8, 4), np.arange(8) % 2
    model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
    model.compile(loss="binary_crossentropy", optimizer="adam")
    model.fit(x, y[:, None], class_weight={0: 1.0, 1: 2.0}, verbose=0)


@near("label-weight")
def several_labels_without_weights():
    x, y = np.random.rand(8, 4), np.tile([[0, 1, 1, 0], [1, 1, 0, 1]], (4, 1))
    model = keras.Sequential([keras.layers.Dense(4, activation="sigmoid")])
    model.compile(loss="binary_crossentropy", optimizer="adam")
    model.fit(x, y, sample_weight=np.ones(8), verbose=0)
