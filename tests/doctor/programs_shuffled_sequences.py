"""Programs that predict from a Sequence of their own, and compare with labels in its order, or in that of arrays."""

from __future__ import annotations

import keras
import numpy as np

from tests.doctor.programs import near, triggers

ROWS = np.random.default_rng(0).random((24, 3)).astype("float32")
LABELS = np.arange(24) % 3


def classifier():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


@triggers("shuffled-results", severity="error", says="Rows.on_epoch_end shuffles self.order")
def a_sequence_that_shuffles_and_its_labels():
    class Rows(keras.utils.PyDataset):
        def __init__(self, **options):
            super().__init__(**options)
            self.labels, self.order = LABELS, np.arange(24)
            self.on_epoch_end()

        def __len__(self):
            return 3

        def on_epoch_end(self):
            np.random.shuffle(self.order)

        def __getitem__(self, index):
            rows = self.order[index * 8 : (index + 1) * 8]
            return ROWS[rows], self.labels[rows]

    model = classifier()
    test = Rows()
    model.fit(test, verbose=0)
    predicted = model.predict(test, verbose=0).argmax(1)
    assert (predicted == test.labels).mean() <= 1


@triggers("shuffled-results", says="Rows(ROWS, y_test, shuffle=False) for predict")
def labels_that_the_sequence_was_given():
    y_test = LABELS

    class Rows(keras.utils.PyDataset):
        def __init__(self, x, y, shuffle=True):
            super().__init__()
            self.x, self.y, self.shuffle = x, y, shuffle
            self.on_epoch_end()

        def __len__(self):
            return 3

        def on_epoch_end(self):
            self.indexes = np.arange(24)
            if self.shuffle:
                np.random.shuffle(self.indexes)

        def __getitem__(self, index):
            rows = self.indexes[index * 8 : (index + 1) * 8]
            return self.x[rows], self.y[rows]

    model = classifier()
    test = Rows(ROWS, y_test)
    predicted = model.predict(test, verbose=0).argmax(1)
    accuracy = np.mean(predicted == y_test)
    assert accuracy <= 1


@near("shuffled-results")
def a_sequence_that_is_told_to_keep_its_order():
    y_test = LABELS

    class Rows(keras.utils.PyDataset):
        def __init__(self, x, y, shuffle=True):
            super().__init__()
            self.x, self.y, self.shuffle = x, y, shuffle
            self.on_epoch_end()

        def __len__(self):
            return 3

        def on_epoch_end(self):
            self.indexes = np.arange(24)
            if self.shuffle:
                np.random.shuffle(self.indexes)

        def __getitem__(self, index):
            rows = self.indexes[index * 8 : (index + 1) * 8]
            return self.x[rows], self.y[rows]

    model = classifier()
    test = Rows(ROWS, y_test, shuffle=False)
    predicted = model.predict(test, verbose=0).argmax(1)
    assert np.mean(predicted == y_test) <= 1


@near("shuffled-results")
def labels_that_come_with_the_batches():
    class Rows(keras.utils.PyDataset):
        def __init__(self):
            super().__init__()
            self.order = np.random.permutation(24)

        def __len__(self):
            return 3

        def on_epoch_end(self):
            np.random.shuffle(self.order)

        def __getitem__(self, index):
            rows = self.order[index * 8 : (index + 1) * 8]
            return ROWS[rows], LABELS[rows]

    model, rows = classifier(), Rows()
    for index in range(len(rows)):
        x, y = rows[index]
        predicted = model.predict(x, verbose=0).argmax(1)
        assert np.mean(predicted == y) <= 1
