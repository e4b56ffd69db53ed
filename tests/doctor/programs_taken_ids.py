"""Programs that number words, with a number for unknown ones and for padding that is free or taken."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

TEXTS = ["the cat sat", "dog ran", "a bird flew away"] * 4
ROW = tf.TensorSpec((None,), tf.int64)


def mapped(encode):
    return tf.data.Dataset.from_tensor_slices(TEXTS).map(lambda t: tf.numpy_function(encode, [t], tf.int64))


@triggers("taken-id", says="vocab.get(w, 0) gives a word that vocab does not have 0", pastes=True)
def unknown_words_like_the_first():
    vocab = {w: i for i, w in enumerate(sorted({w for t in TEXTS[:2] for w in t.split()}))}

    def encode(text):
        return np.array([vocab.get(w, 0) for w in text.decode().split()], np.int64)

    list(mapped(encode))


@triggers("taken-id", says="padded_batch fills rows up with 0, and mask_zero=True hides both", pastes=True)
def padding_like_the_first():
    letters = "abcdefghijklmnopqrstuvwxyz"
    ids = {c: i for i, c in enumerate(letters)}

    def rows():
        for text in TEXTS:
            yield np.array([ids[c] for c in text.replace(" ", "a")], np.int64), len(text) % 2

    data = tf.data.Dataset.from_generator(rows, output_signature=(ROW, tf.TensorSpec((), tf.int64))).padded_batch(4)
    average = keras.layers.GlobalAveragePooling1D()
    model = keras.Sequential([keras.layers.Embedding(len(ids), 4, mask_zero=True), average, keras.layers.Dense(1)])
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True))
    model.fit(data, epochs=1, verbose=0)


@triggers("taken-id", says="and one more where its length is the size of a layer")
def both_in_a_helper():
    words = ["the", "cat", "sat", "dog"]
    numbers = {word: at for at, word in enumerate(words)}

    def number(text):
        return [numbers.get(word, 0) for word in text.split()]

    def encode(text):
        return np.array(number(text.decode()), np.int64)

    data = mapped(encode).map(lambda ids: tf.ensure_shape(ids, [None])).padded_batch(4)
    embed = keras.layers.Embedding(4, 2)
    for batch in data:
        embed(batch)
    assert words[0] == "the"


@near("taken-id")
def ids_from_one():
    vocab = {w: i for i, w in enumerate(sorted({w for t in TEXTS for w in t.split()}), 1)}

    def encode(text):
        return np.array([vocab.get(w, 0) for w in text.decode().split()], np.int64)

    list(mapped(encode).map(lambda ids: tf.ensure_shape(ids, [None])).padded_batch(4))


@near("taken-id")
def a_vocabulary_that_begins_with_no_word():
    words = ["<pad>", "<unk>", *sorted({w for t in TEXTS for w in t.split()})]
    vocab = {w: i for i, w in enumerate(words)}

    def encode(text):
        return np.array([vocab.get(w, 0) for w in text.decode().split()], np.int64)

    list(mapped(encode).map(lambda ids: tf.ensure_shape(ids, [None])).padded_batch(4))


@near("taken-id")
def padding_of_its_own():
    vocab = {w: i for i, w in enumerate(sorted({w for t in TEXTS for w in t.split()}))}

    def encode(text):
        return np.array([vocab[w] for w in text.decode().split()], np.int64)

    data = mapped(encode).map(lambda ids: tf.ensure_shape(ids, [None]))
    list(data.padded_batch(4, padding_values=tf.constant(-1, tf.int64)))


@near("taken-id")
def a_class_beside_rows_of_numbers():
    kinds = {w: i for i, w in enumerate(["even", "odd"])}

    def rows():
        for text in TEXTS:
            yield np.arange(len(text)), kinds["odd" if len(text) % 2 else "even"]

    pair = (ROW, tf.TensorSpec((), tf.int64))
    list(tf.data.Dataset.from_generator(rows, output_signature=pair).padded_batch(4))


@near("taken-id")
def counts_of_words():
    counts = {w: i for i, w in enumerate(sorted({w for t in TEXTS for w in t.split()}))}

    def encode(text):
        for w in text.decode().split():
            counts[w] = counts.get(w, 0) + 1
        return np.array([counts.get(w, 0) for w in text.decode().split()], np.int64)

    list(mapped(encode))
