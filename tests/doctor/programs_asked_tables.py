"""More programs that do not fail, after users' threads: tables that a program reads, and weights that rows lack."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- bytes-compared: tables that only the program's run knows ---------------------------------------------------------


@triggers("bytes-compared", says="`table.get(path, 0)` never finds anything", pastes=True)
def a_table_of_a_file_asked_for_bytes():
    import json

    table = json.loads('{"a.png": 1, "b.png": 3}')

    def look(path):
        return np.int32(table.get(path, 0))

    data = tf.data.Dataset.from_tensor_slices(["a.png", "b.png"])
    for _ in data.map(lambda p: tf.numpy_function(look, [p], tf.int32)):
        pass


@triggers("bytes-compared", says="`path in self.known` is always False", pastes=True)
def a_set_of_an_object_asked_for_bytes():
    class Labels:
        def __init__(self, names):
            self.known = set(names)

        def look(self, path):
            path = path.numpy()
            return 1 if path in self.known else 0

    labels = Labels(["a.png", "b.png"])
    data = tf.data.Dataset.from_tensor_slices(["a.png", "b.png"])
    for _ in data.map(lambda p: tf.py_function(labels.look, [p], tf.int32)):
        pass


@triggers("bytes-compared", says="`table[name]` never finds anything", pastes=True)
def a_table_whose_key_error_is_caught():
    table = dict(line.split(",") for line in ["a.png,1", "b.png,3"])

    def find(name):
        try:
            return int(table[name])
        except KeyError:
            return 0

    def look(path):
        return np.int32(find(path))

    data = tf.data.Dataset.from_tensor_slices(["a.png", "b.png"])
    for _ in data.map(lambda p: tf.numpy_function(look, [p], tf.int32)):
        pass


@triggers("bytes-compared", says="is always what the dict makes of a new key", pastes=True)
def counts_of_bytes():
    from collections import Counter

    counts = Counter(["the", "cat", "saw", "the", "dog"])

    def score(word):
        return np.int64(counts[word])

    data = tf.data.Dataset.from_tensor_slices(["the", "dog"])
    for _ in data.map(lambda w: tf.numpy_function(score, [w], tf.int64)):
        pass


@triggers("bytes-compared", says="is False for every element", pastes=True)
def a_column_compared_with_bytes():
    import pandas as pd

    df = pd.DataFrame({"file": np.array(["a.png", "b.png"], object), "label": [1, 2]}, dtype=object)

    def look(path):
        return np.int32(df[df.file == path]["label"].sum())

    data = tf.data.Dataset.from_tensor_slices(["a.png", "b.png"])
    for _ in data.map(lambda p: tf.numpy_function(look, [p], tf.int32)):
        pass


@near("bytes-compared")
def tables_asked_for_text():
    import json

    table = json.loads('{"a.png": 1, "b.png": 3}')

    def look(path):
        path = path.decode()
        return np.int32(table.get(path, 0) if path in table else 0)

    data = tf.data.Dataset.from_tensor_slices(["a.png", "b.png"])
    for _ in data.map(lambda p: tf.numpy_function(look, [p], tf.int32)):
        pass


@near("bytes-compared")
def a_table_with_keys_of_bytes():
    import json

    table = {key.encode(): value for key, value in json.loads('{"a.png": 1, "b.png": 3}').items()}

    def look(path):
        return np.int32(table.get(path, 0))

    data = tf.data.Dataset.from_tensor_slices(["a.png", "b.png"])
    for _ in data.map(lambda p: tf.numpy_function(look, [p], tf.int32)):
        pass


@near("bytes-compared")
def a_cache_that_a_body_fills():
    cache = {"first": 0}

    def size(path):
        if path not in cache:
            cache[path] = len(path)
        return np.int64(cache[path])

    data = tf.data.Dataset.from_tensor_slices(["a.png", "a.png"])
    for _ in data.map(lambda p: tf.numpy_function(size, [p], tf.int64)):
        pass


@near("bytes-compared")
def a_table_asked_for_another_key():
    import json

    settings = json.loads('{"size": 4}')

    def load(path):
        return np.zeros(settings.get("size", 2), np.float32) + len(path)

    data = tf.data.Dataset.from_tensor_slices(["a.png", "b.png"])
    for _ in data.map(lambda p: tf.numpy_function(load, [p], tf.float32)):
        pass


# -- missed-weight and label-weight: labels of a dataset --------------------------------------------------------------


@triggers("missed-weight", says="weights for 3, which no row has for its label, and none for 0: 3 of 9", pastes=True)
def weights_from_one_for_a_dataset():
    x, y = np.ones((9, 3), "float32"), np.eye(3, dtype="float32")[[0, 1, 2] * 3]
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(9).batch(3).prefetch(1)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "categorical_crossentropy")
    model.fit(data, class_weight={1: 1.0, 2: 2.0, 3: 3.0}, verbose=0)


@triggers("label-weight", says="Keras takes argmax of the row", pastes=True)
def weights_for_rows_of_a_dataset_with_several_labels():
    x = np.ones((8, 3), "float32")
    y = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]] * 2, "float32")
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(3, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    model.fit(data, class_weight={0: 1.0, 1: 5.0, 2: 2.0}, verbose=0)


@near("missed-weight")
def a_weight_for_each_class_of_a_dataset():
    x, y = np.ones((9, 3), "float32"), np.array([[0], [1], [2]] * 3)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(3)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(data, class_weight={0: 1.0, 1: 2.0, 2: 3.0}, verbose=0)


@near("missed-weight")
def labels_of_a_dataset_that_a_map_makes():
    x, y = np.ones((9, 3), "float32"), np.array([0, 1, 2] * 3)
    data = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a, b + 1)).batch(3)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(data, class_weight={1: 1.0, 2: 2.0, 3: 3.0}, verbose=0)
