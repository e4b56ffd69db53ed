"""More programs that do not fail: pipelines and data into Keras, after threads of users that nothing was said of."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


def classifier(**options):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", **options)
    return model


# -- zipped-rest ------------------------------------------------------------------------------------------------------


@triggers("zipped-rest", says="images has 9 elements, labels 6, so that the last 3 of images are never read")
def labels_of_fewer_images():
    images = tf.data.Dataset.from_tensor_slices(np.random.rand(9, 3).astype("float32"))
    labels = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 1).astype("float32"))
    for x, y in tf.data.Dataset.zip((images, labels)).batch(3):
        assert x.shape[0] == y.shape[0]


@triggers("zipped-rest", says="the last 1 of b is never read")
def pairs_for_a_model():
    a = tf.data.Dataset.from_tensor_slices(np.random.rand(8, 3).astype("float32"))
    b = tf.data.Dataset.from_tensor_slices(np.random.rand(9, 1).astype("float32"))
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.data.Dataset.zip(a, b).batch(4), verbose=0)


@triggers("zipped-rest", says="zip ends with the shorter one: the first dataset has 5 elements, the second 4")
def classes_of_fewer_files():
    names = [f"{n}.png" for n in range(5)]
    sizes = tf.data.Dataset.from_tensor_slices(names).map(tf.strings.length)
    ds = tf.data.Dataset.zip((sizes.prefetch(1), tf.data.Dataset.from_tensor_slices([0, 1, 1, 0])))
    for _ in range(2):
        for size, kind in ds.batch(2):
            assert size.shape == kind.shape


@near("zipped-rest")
def labels_of_each_image():
    images = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 3).astype("float32"))
    labels = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 1).astype("float32"))
    for x, y in tf.data.Dataset.zip((images, labels)).batch(3):
        assert x.shape[0] == y.shape[0]


@near("zipped-rest")
def horses_and_zebras():
    horses = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 3).astype("float32"))
    zebras = tf.data.Dataset.from_tensor_slices(np.random.rand(9, 3).astype("float32"))
    for x, y in tf.data.Dataset.zip((horses, zebras)).batch(3):
        assert x.shape == y.shape


@near("zipped-rest")
def labels_beside_a_counter_and_a_few_on_purpose():
    images = tf.data.Dataset.from_tensor_slices(np.random.rand(9, 3).astype("float32")).take(4)
    labels = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 1).astype("float32"))
    for x, y in tf.data.Dataset.zip((images, labels)).batch(3):
        assert x.shape[0] == y.shape[0]
    for _, y in tf.data.Dataset.zip((tf.data.Dataset.counter(), labels)):
        assert y.shape == (1,)


@near("zipped-rest")
def values_and_the_next_ones():
    labels = tf.data.Dataset.from_tensor_slices(np.arange(6.0))
    for x, y in tf.data.Dataset.zip((labels, labels.skip(1))):
        assert float(x) < float(y)


# -- unweighted-metric: tensorflow#51902 ------------------------------------------------------------------------------


@triggers("unweighted-metric", says="the weights of what validates, w, count in the loss only", pastes=True)
def weights_of_a_dataset_that_validates():
    x, y = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1))
    w = np.where(y[:, 0] == 1, 5.0, 1.0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    val = tf.data.Dataset.from_tensor_slices((x, y, w)).batch(4)
    model.fit(x, y, sample_weight=w, validation_data=val, verbose=0)


@triggers("unweighted-metric", says='metrics=[keras.metrics.AUC(name="auc")] take every row alike', pastes=True)
def weights_in_a_tuple_that_validates():
    x, y, weights = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(
        optimizer="sgd",
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc")],
    )
    model.fit(x, y, batch_size=4, validation_data=(x, y, weights), verbose=0)


@triggers("unweighted-metric", says="the weights of evaluate, rows,", pastes=True)
def weights_of_evaluate():
    x, y, rows = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    model.evaluate(x, y, sample_weight=rows, verbose=0)


@near("unweighted-metric")
def weights_that_balance_the_training_only():
    x, y, w = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    model.fit(x, y, sample_weight=w, validation_data=(x, y), verbose=0)


@near("unweighted-metric")
def weighted_metrics_beside_the_others():
    x, y, w = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"], weighted_metrics=[])
    model.fit(x, y, validation_data=(x, y, w), verbose=0)


@near("unweighted-metric")
def weights_and_a_loss_alone():
    x, y, w = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = classifier()
    model.fit(x, y, validation_data=(x, y, w), verbose=0)
