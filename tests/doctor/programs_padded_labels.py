"""Programs whose labels are padded with a class, and those that leave the padding out."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

LENGTHS = [2, 9, 4, 3, 8, 2, 3, 9]
PAIR = (tf.TensorSpec((None,), tf.int64), tf.TensorSpec((None,), tf.int64))


def network():
    return keras.Sequential([keras.layers.Embedding(20, 4), keras.layers.Dense(4, activation="softmax")])


def rows():
    rng = np.random.default_rng(0)
    return [(rng.integers(1, 20, n), rng.integers(0, 4, n)) for n in LENGTHS]


@triggers("padded-label", says="of what the loss and accuracy count is padding", pastes=True)
def tags_of_a_generator():
    def sentences():
        yield from rows()

    data = tf.data.Dataset.from_generator(sentences, output_signature=PAIR).padded_batch(4)
    model = network()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=1, verbose=0)


@triggers("padded-label", says="fills the labels of parsed, of 2 to 9 numbers, up with 0", pastes=True)
def tags_of_a_body():
    def parsed(n):
        n = int(n)
        return np.arange(1, n + 1), np.arange(n) % 4

    def load(n):
        words, tags = tf.numpy_function(parsed, [n], (tf.int64, tf.int64))
        words.set_shape([None])
        tags.set_shape([None])
        return words, tags

    data = tf.data.Dataset.from_tensor_slices(LENGTHS).map(load)
    data = data.padded_batch(4, padded_shapes=([None], [None]))
    model = network()
    model.compile(
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(),
        metrics=["accuracy"],
    )
    model.fit(data, epochs=1, verbose=0)


@triggers("padded-label", says="the weights: 0.0 where a label is padding")
def frames_with_a_class_each():
    def frames():
        for _, tags in rows():
            yield np.ones((len(tags), 3), np.float32), tags

    pair = (tf.TensorSpec((None, 3), tf.float32), tf.TensorSpec((None,), tf.int64))
    data = tf.data.Dataset.from_generator(frames, output_signature=pair).padded_batch(2)
    model = keras.Sequential([keras.layers.Dense(4, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(data, epochs=1, verbose=0)


@near("padded-label")
def a_layer_that_leaves_the_padding_out():
    def sentences():
        yield from rows()

    data = tf.data.Dataset.from_generator(sentences, output_signature=PAIR).padded_batch(4)
    model = keras.Sequential([keras.layers.Embedding(20, 4, mask_zero=True), keras.layers.Dense(4)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=1, verbose=0)


@near("padded-label")
def labels_that_begin_with_one():
    def sentences():
        for words, tags in rows():
            yield words, tags % 3 + 1

    data = tf.data.Dataset.from_generator(sentences, output_signature=PAIR).padded_batch(4)
    model = network()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=1, verbose=0)


@near("padded-label")
def one_label_a_sentence():
    def sentences():
        for words, tags in rows():
            yield words, tags[0]

    pair = (tf.TensorSpec((None,), tf.int64), tf.TensorSpec((), tf.int64))
    data = tf.data.Dataset.from_generator(sentences, output_signature=pair).padded_batch(4)
    last = keras.layers.Dense(4, activation="softmax")
    model = keras.Sequential([keras.layers.Embedding(20, 4), keras.layers.GlobalAveragePooling1D(), last])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=1, verbose=0)


@near("padded-label")
def rows_of_one_length():
    def sentences():
        for _ in range(8):
            yield np.arange(1, 6), np.arange(5) % 4

    data = tf.data.Dataset.from_generator(sentences, output_signature=PAIR).padded_batch(4)
    model = network()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=1, verbose=0)
