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


# -- padded-label: words of a CTC loss ---------------------------------------------------------------------------------


def spelled(words, loss, first=0, **padding):
    """A network that reads words, each from four letters by a body."""

    def encode(word):
        return np.array([b"abcd".index(letter) + first for letter in word], np.int32)

    def load(x, word):
        label = tf.numpy_function(encode, [word], tf.int32)
        label.set_shape([None])
        return x, label

    data = tf.data.Dataset.from_tensor_slices((np.ones((len(words), 20, 3), np.float32), words)).map(load)
    model = keras.Sequential([keras.layers.Dense(6, activation="softmax")])
    model.compile("adam", loss)
    model.fit(data.padded_batch(4, **padding), epochs=1, verbose=0)


@triggers("padded-label", says="the label_length of ctc_batch_cost is the padded length")
def words_whose_padding_is_their_first_letter():
    def ctc(y, p):
        rows = tf.shape(y)[0]
        steps = tf.fill((rows, 1), tf.shape(p)[1])
        letters = tf.fill((rows, 1), tf.shape(y)[1])
        return tf.keras.backend.ctc_batch_cost(y, p, steps, letters)

    spelled(["abc", "da", "dcba", "b"] * 2, ctc)


@triggers("padded-label", says="fills the labels of samples, of 1 to 4 numbers")
def words_of_a_generator_whose_padding_is_a_letter():
    def samples():
        for size in [3, 2, 4, 1] * 2:
            yield np.ones((20, 3), np.float32), np.arange(size)

    def ctc(y_true, y_pred):
        ones = tf.ones((tf.shape(y_true)[0], 1), tf.int32)
        return keras.src.legacy.backend.ctc_batch_cost(
            y_true, y_pred, ones * tf.shape(y_pred)[1], ones * tf.shape(y_true)[-1]
        )

    pair = (tf.TensorSpec((20, 3), tf.float32), tf.TensorSpec((None,), tf.int64))
    data = tf.data.Dataset.from_generator(samples, output_signature=pair).padded_batch(4)
    model = keras.Sequential([keras.layers.Dense(6, activation="softmax")])
    model.compile("adam", ctc)
    model.fit(data, epochs=1, verbose=0)


@near("padded-label")
def words_whose_letters_begin_with_one():
    def ctc(y, p):
        rows = tf.shape(y)[0]
        steps = tf.fill((rows, 1), tf.shape(p)[1])
        letters = tf.fill((rows, 1), tf.shape(y)[1])
        return tf.keras.backend.ctc_batch_cost(y, p, steps, letters)

    spelled(["abc", "da", "dcba", "b"] * 2, ctc, first=1)


@near("padded-label")
def words_of_one_length():
    def ctc(y, p):
        rows = tf.shape(y)[0]
        steps = tf.fill((rows, 1), tf.shape(p)[1])
        letters = tf.fill((rows, 1), tf.shape(y)[1])
        return tf.keras.backend.ctc_batch_cost(y, p, steps, letters)

    spelled(["abc", "dab", "dcb", "bcd"] * 2, ctc)


@near("padded-label")
def words_with_their_own_lengths():
    def ctc(y, p):
        rows = tf.shape(y)[0]
        steps = tf.fill((rows, 1), tf.shape(p)[1])
        letters = tf.reduce_sum(tf.cast(y >= 0, tf.int32), -1, keepdims=True)
        return tf.keras.backend.ctc_batch_cost(y, p, steps, letters)

    spelled(["abc", "da", "dcba", "b"] * 2, ctc, padding_values=(0.0, -1))
