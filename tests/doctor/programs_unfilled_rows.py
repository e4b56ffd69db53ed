"""Programs that do not fail: generators whose last slice does not fill the arrays of a whole batch."""
# ruff: noqa: N803, N806

from __future__ import annotations

import math

import keras
import numpy as np

from tests.doctor.programs import near, triggers

DATA, LABELS = np.random.rand(100, 4).astype("float32") + 1, np.random.randint(0, 2, 100)


def classifier(width, loss="sparse_categorical_crossentropy"):
    model = keras.Sequential([keras.Input((width,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", loss)
    return model


@triggers("wrong-batches", says="28 rows of zeros: [self.list_IDs[k] for k in indexes] has fewer rows", pastes=True)
def a_sequence_of_ids_that_counts_the_last_batch():
    class DataGenerator(keras.utils.Sequence):
        def __init__(self, list_IDs, batch_size=32):
            super().__init__()
            self.batch_size, self.list_IDs = batch_size, list_IDs
            self.indexes = np.random.permutation(len(list_IDs))

        def __len__(self):
            return int(np.ceil(len(self.list_IDs) / self.batch_size))

        def __getitem__(self, index):
            indexes = self.indexes[index * self.batch_size : (index + 1) * self.batch_size]
            list_IDs_temp = [self.list_IDs[k] for k in indexes]
            X, y = self.__data_generation(list_IDs_temp)
            return X, y

        def __data_generation(self, list_IDs_temp):
            x = np.zeros((self.batch_size, 4))
            y = np.zeros((self.batch_size), dtype=int)
            for i, ID in enumerate(list_IDs_temp):
                x[i,] = DATA[ID]
                y[i] = LABELS[ID]
            return x, keras.utils.to_categorical(y, num_classes=2)

    classifier(4, "categorical_crossentropy").fit(DataGenerator(list(range(100))), epochs=2, verbose=0)


@triggers("wrong-batches", says="files[offset : offset + size] has fewer rows at the end of the data", pastes=True)
def a_generator_that_goes_to_the_end():
    files = list(range(100))

    def batches(size=16):
        while True:
            for offset in range(0, len(files), size):
                names = files[offset : offset + size]
                xs = np.zeros((size, 4))
                ys = np.zeros((size,))
                for k in range(len(names)):
                    xs[k] = DATA[names[k]]
                    ys[k] = LABELS[names[k]]
                yield xs, ys

    classifier(4).fit(batches(), steps_per_epoch=7, epochs=2, verbose=0)


@triggers("wrong-batches", says="has fewer rows at the end of the data", pastes=True)
def a_getitem_that_fills_its_arrays_itself():
    class Rows(keras.utils.PyDataset):
        def __len__(self):
            return math.ceil(100 / 32)

        def __getitem__(self, index):
            part = DATA[index * 32 : (index + 1) * 32]
            x = np.zeros((32, 4), "float32")
            for i, row in enumerate(part):
                x[i] = row
            return x, np.zeros(32)

    classifier(4).fit(Rows(), epochs=2, verbose=0)


@near("wrong-batches")
def rows_of_zeros_in_whole_batches():
    dark = DATA.copy()
    dark[5:8] = 0

    class Rows(keras.utils.PyDataset):
        def __len__(self):
            return 100 // 32

        def __getitem__(self, index):
            part = dark[index * 32 : (index + 1) * 32]
            x = np.zeros((32, 4), "float32")
            for i, row in enumerate(part):
                x[i] = row
            return x, np.zeros(32)

    classifier(4).fit(Rows(), epochs=2, verbose=0)


@near("wrong-batches")
def padding_that_the_weights_leave_out():
    def batches(size=16):
        while True:
            for offset in range(0, 100, size):
                part = DATA[offset : offset + size]
                xs, weights = np.zeros((size, 4)), np.zeros(size)
                for k, row in enumerate(part):
                    xs[k] = row
                    weights[k] = 1
                yield xs, np.zeros(size), weights

    classifier(4).fit(batches(), steps_per_epoch=7, epochs=2, verbose=0)


@near("wrong-batches")
def arrays_of_as_many_rows_as_the_slice():
    def batches(size=16):
        while True:
            for offset in range(0, 100, size):
                part = DATA[offset : offset + size]
                xs = np.zeros((len(part), 4))
                for k, row in enumerate(part):
                    xs[k] = row
                yield xs, np.zeros(len(part))

    classifier(4).fit(batches(), steps_per_epoch=7, epochs=2, verbose=0)
