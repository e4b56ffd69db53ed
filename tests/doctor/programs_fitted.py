"""Programs whose bodies fit encoders, scalers and tokenizers, to one call's input or to all data."""

from __future__ import annotations

import keras
import numpy as np
import pandas as pd
import tensorflow as tf

from tests.doctor.programs import near, triggers

NAMES = np.array(["cat", "dog", "bird", "cat"] * 3)


class LabelEncoder:  # as that of sklearn
    def fit(self, labels):
        self.classes_ = np.unique(labels)
        return self

    def transform(self, labels):
        return np.searchsorted(self.classes_, labels)

    def fit_transform(self, labels):
        return self.fit(labels).transform(labels)


class StandardScaler:
    def fit(self, rows):
        self.mean_, self.scale_ = rows.mean(0), rows.std(0)
        return self

    def transform(self, rows):
        return (rows - self.mean_) / self.scale_

    def fit_transform(self, rows):
        return self.fit(rows).transform(rows)


@triggers("fitted-in-body", says="LabelEncoder numbers what one call holds: the first is 0 in each")
def an_encoder_of_one_label():
    def encode(label):
        encoder = LabelEncoder()
        return np.int64(encoder.fit_transform([label.decode()])[0])

    data = tf.data.Dataset.from_tensor_slices(NAMES).map(lambda n: tf.numpy_function(encode, [n], tf.int64))
    assert {int(one) for one in data} == {0}


@triggers("fitted-in-body", says="StandardScaler().fit_transform(window) fits in each of 12 calls, to that call")
def a_scaler_of_one_window():
    x = np.random.default_rng(0).normal(5, 3, (12, 10, 4)).astype("float32")

    def scale(window):
        return StandardScaler().fit_transform(window).astype(np.float32)

    list(tf.data.Dataset.from_tensor_slices(x).map(lambda w: tf.numpy_function(scale, [w], tf.float32)))


@triggers("fitted-in-body", says="TextVectorization numbers the words of one call")
def a_vectorization_that_a_helper_adapts():
    def indices(text):
        layer = keras.layers.TextVectorization(output_sequence_length=4)
        layer.adapt([text])
        return layer([text])[0]

    def prepare(text):
        return indices(text.numpy().decode())

    texts = tf.data.Dataset.from_tensor_slices(["a b", "b c d", "a d"])
    list(texts.map(lambda t: tf.py_function(prepare, [t], tf.int64)))


SENTENCES = ["the cat sat", "the dog ran", "a bird flew", "the cat ran"]


def encoded(encode):
    data = tf.data.Dataset.from_tensor_slices(SENTENCES)
    return np.array([one.numpy() for one in data.map(lambda t: tf.numpy_function(encode, [t], tf.int64))])


@triggers("fitted-in-body", says="encode makes vocab in each of 4 calls, of the words of that call")
def a_vocabulary_of_one_text():
    def encode(text):
        words = text.decode().split()
        vocab = {w: i + 1 for i, w in enumerate(sorted(set(words)))}
        return np.array([vocab[w] for w in words])

    assert encoded(encode).max() == 3


@triggers("fitted-in-body", says="a word has another number in another text")
def a_vocabulary_that_grows_in_a_helper():
    def number(words):
        ids = {}
        for word in words:
            if word not in ids:
                ids[word] = len(ids) + 1
        return [ids[word] for word in words]

    def encode(text):
        return np.array(number(text.decode().lower().split()))

    assert {*encoded(encode)[:, 0]} == {1}


@near("fitted-in-body")
def a_vocabulary_that_grows_over_all_texts():
    ids = {}

    def encode(text):
        return np.array([ids.setdefault(word, len(ids)) for word in text.decode().split()])

    assert encoded(encode).max() > 3


@near("fitted-in-body")
def a_vocabulary_of_all_texts_in_each_call():
    def encode(text):
        vocab = {w: i for i, w in enumerate(sorted({w for one in SENTENCES for w in one.split()}))}
        return np.array([vocab[w] for w in text.decode().split()])

    assert encoded(encode).max() > 3


@near("fitted-in-body")
def nodes_of_a_graph_that_are_numbered_in_each_call():
    def local(edges):
        number = {node: at for at, node in enumerate(np.unique(edges))}
        return np.array([number[one] for one in edges])

    edges = tf.data.Dataset.from_tensor_slices([[5, 9, 5], [7, 1, 2], [3, 3, 8]])
    list(edges.map(lambda e: tf.numpy_function(local, [e], tf.int64)))


@near("fitted-in-body")
def an_encoder_that_is_fitted_before():
    encoder = LabelEncoder().fit(NAMES)

    def encode(label):
        return np.int64(encoder.transform([label.decode()])[0])

    data = tf.data.Dataset.from_tensor_slices(NAMES).map(lambda n: tf.numpy_function(encode, [n], tf.int64))
    assert {int(one) for one in data} == {0, 1, 2}


@near("fitted-in-body")
def an_encoder_that_is_fitted_to_all_labels_again():
    def encode(label):
        encoder = LabelEncoder()
        encoder.fit(NAMES)
        return np.int64(encoder.transform([label.decode()])[0])

    list(tf.data.Dataset.from_tensor_slices(NAMES).map(lambda n: tf.numpy_function(encode, [n], tf.int64)))


@near("fitted-in-body")
def one_call_for_all_rows():
    x = np.random.default_rng(0).normal(5, 3, (12, 4)).astype("float32")

    def scale(rows):
        return StandardScaler().fit_transform(rows).astype(np.float32)

    list(tf.data.Dataset.from_tensors(x).map(lambda w: tf.numpy_function(scale, [w], tf.float32)))


@near("fitted-in-body")
def a_line_that_is_fitted_to_each_curve():
    x = np.random.default_rng(0).normal(5, 3, (12, 10)).astype("float32")

    class Line:
        def fit(self, curve):
            self.slope = np.polyfit(np.arange(len(curve)), curve, 1)[0]
            return self

    def slope(curve):
        return np.float32(Line().fit(curve).slope)

    list(tf.data.Dataset.from_tensor_slices(x).map(lambda w: tf.numpy_function(slope, [w], tf.float32)))


# -- fitted-in-body: values that each call numbers ---------------------------------------------------------------------


def batches(encode, Tout=tf.int64):  # noqa: N803
    data = tf.data.Dataset.from_tensor_slices(NAMES).batch(3)
    return [one.numpy() for one in data.map(lambda n: tf.numpy_function(encode, [n], Tout))]


@triggers("fitted-in-body", says="pd.factorize(names) numbers what one call holds: the first is 0 in each")
def codes_of_a_batch():
    def encode(names):
        codes, _ = pd.factorize(names)
        return codes.astype(np.int64)

    assert {one[0] for one in batches(encode)} == {0}


@triggers("fitted-in-body", says="numbers[one] for one in names")
def numbers_of_a_batch_by_numpy():
    def encode(raw):
        names = [one.decode() for one in raw]
        _kinds, ids = np.unique(names, return_inverse=True)
        return np.asarray(ids)

    batches(encode)


@triggers("fitted-in-body", says="has a column for each value that one call holds")
def columns_of_a_batch():
    def encode(names):
        table = pd.get_dummies(names)
        return table.values.astype(np.float32)

    batches(encode, tf.float32)


@triggers("fitted-in-body", says="numbers the values of one call in their order")
def a_category_of_a_batch():
    def encode(names):
        return pd.Series(names).astype("category").cat.codes.to_numpy().astype(np.int64)

    batches(encode)


@near("fitted-in-body")
def codes_of_fixed_categories():
    kinds = sorted({*NAMES.tolist()})

    def encode(names):
        codes = pd.Series(pd.Categorical([one.decode() for one in names], categories=kinds)).cat.codes
        return codes.to_numpy().astype(np.int64)

    assert {number for one in batches(encode) for number in one} == {0, 1, 2}


@near("fitted-in-body")
def places_of_a_batch_that_are_counted():
    def counts(names):
        _, places = np.unique(names, return_inverse=True)
        return np.bincount(places).max()

    batches(counts)


@near("fitted-in-body")
def all_names_in_one_call():
    def encode(names):
        return pd.factorize(names)[0].astype(np.int64)

    list(tf.data.Dataset.from_tensors(NAMES).map(lambda n: tf.numpy_function(encode, [n], tf.int64)))


@near("fitted-in-body")
def segments_that_are_numbered_again():
    x = np.array([[5, 9, 5], [7, 1, 2], [3, 3, 8], [1, 2, 1]])

    def numbered(segments):
        return np.unique(segments, return_inverse=True)[1].reshape(segments.shape)

    list(tf.data.Dataset.from_tensor_slices(x).map(lambda s: tf.numpy_function(numbered, [s], tf.int64)))


# -- fitted-in-body: generators and sequences --------------------------------------------------------------------------


@triggers("fitted-in-body", says="fits for each element of")
def an_encoder_for_each_batch_of_a_generator():
    labels = np.array(["cat", "dog", "cow", "ant"] * 5)

    def batches():
        for i in range(0, 20, 5):
            le = LabelEncoder()
            yield le.fit_transform(labels[i : i + 5])

    list(tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((None,), tf.int64)))


@triggers("fitted-in-body", says="once, in __init__: self.scaler = StandardScaler()")
def a_scaler_for_each_batch_of_a_sequence():
    class Rows(tf.keras.utils.PyDataset):
        def __init__(self, x):
            super().__init__()
            self.x, self.scaler = x, None
            self.scaler = StandardScaler()

        def __len__(self):
            return 4

        def __getitem__(self, i):
            part = self.x[i * 4 : (i + 1) * 4]
            return self.scaler.fit_transform(part), part[:, :1]

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Rows(np.random.default_rng(0).random((16, 3))), verbose=0)


@near("fitted-in-body")
def a_scaler_that_a_generator_fits_to_all_rows():
    x = np.random.default_rng(0).random((16, 3))

    def batches():
        data = StandardScaler().fit_transform(x)
        for i in range(0, 16, 4):
            yield data[i : i + 4]

    list(tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((None, 3), tf.float32)))


@near("fitted-in-body")
def a_scaler_that_is_fitted_in_each_pass():
    x = np.random.default_rng(0).random((16, 3))

    def batches():
        passes = 0
        while passes < 3:
            data = StandardScaler().fit_transform(x)
            passes += 1
            for i in range(0, 16, 4):
                yield data[i : i + 4]

    list(tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((None, 3), tf.float32)))
