"""Sequences whose `on_epoch_end` shuffles what no batch is taken by, and some that do shuffle."""

from __future__ import annotations

import random

import keras
import numpy as np

from tests.doctor.programs import near, triggers

ROWS = np.random.default_rng(0).random((24, 3)).astype("float32")
LABELS = np.arange(24) % 3


class Base(keras.utils.PyDataset):
    """What the Sequences of this file have in common."""

    def __len__(self):
        return 3


def trained(data):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=2, verbose=0)


@triggers("wrong-batches", says="shuffles self.indexes, which nothing reads", severity="warning")
def places_that_no_batch_is_taken_by():
    class Rows(keras.utils.PyDataset):
        def __init__(self, ids, size):
            super().__init__()
            self.ids, self.size = ids, size
            self.on_epoch_end()

        def __len__(self):
            return len(self.ids) // self.size

        def on_epoch_end(self):
            self.indexes = np.arange(len(self.ids))
            np.random.shuffle(self.indexes)

        def __getitem__(self, index):
            ids = self.ids[index * self.size : (index + 1) * self.size]
            return np.stack([ROWS[one] for one in ids]), np.array([LABELS[one] for one in ids])

    trained(Rows(list(range(24)), 8))


@triggers("wrong-batches", says="np.random.permutation(self.order) gives a shuffled copy", pastes=True)
def a_permutation_that_nothing_keeps():
    class Rows(keras.utils.PyDataset):
        def __init__(self, x, y):
            super().__init__()
            self.x, self.y, self.order = x, y, np.arange(len(x))

        def __len__(self):
            return 3

        def __getitem__(self, index):
            rows = self.order[index * 8 : (index + 1) * 8]
            return self.x[rows], self.y[rows]

        def on_epoch_end(self):
            np.random.permutation(self.order)

    trained(Rows(ROWS, LABELS))


@triggers("wrong-batches", says="shuffles idx, a name of its own", severity="warning")
def an_order_that_is_gone_as_the_method_returns():
    class Rows(keras.utils.PyDataset):
        def __init__(self, x, y, shuffle=True):
            super().__init__()
            self.x, self.y, self.shuffle = x, y, shuffle

        def __len__(self):
            return 3

        def __getitem__(self, index):
            part = slice(index * 8, (index + 1) * 8)
            return self.x[part], self.y[part]

        def on_epoch_end(self):
            if self.shuffle:
                idx = np.arange(len(self.x))
                np.random.shuffle(idx)

    trained(Rows(ROWS, LABELS))


@triggers("wrong-batches", says="shuffles a copy, list(zip(self.x, self.y))", severity="warning")
def pairs_that_are_a_copy():
    class Rows(keras.utils.PyDataset):
        def __init__(self, x, y):
            super().__init__()
            self.x, self.y = x, y

        def __len__(self):
            return 3

        def __getitem__(self, index):
            return self.x[index * 8 : (index + 1) * 8], self.y[index * 8 : (index + 1) * 8]

        def on_epoch_end(self):
            random.shuffle(list(zip(self.x, self.y)))

    trained(Rows(ROWS, LABELS))


@near("wrong-batches")
def places_by_which_the_batches_are_taken():
    class Rows(keras.utils.PyDataset):
        def __init__(self, x, y):
            super().__init__()
            self.x, self.y = x, y
            self.on_epoch_end()

        def __len__(self):
            return 3

        def __getitem__(self, index):
            rows = self.indexes[index * 8 : (index + 1) * 8]
            return self.x[rows], self.y[rows]

        def on_epoch_end(self):
            self.indexes = np.arange(len(self.x))
            np.random.shuffle(self.indexes)

    trained(Rows(ROWS, LABELS))


@near("wrong-batches")
def a_local_order_by_which_the_arrays_are_put():
    class Rows(keras.utils.PyDataset):
        def __init__(self, x, y):
            super().__init__()
            self.x, self.y = x, y

        def __len__(self):
            return 3

        def __getitem__(self, index):
            return self.x[index * 8 : (index + 1) * 8], self.y[index * 8 : (index + 1) * 8]

        def on_epoch_end(self):
            order = np.arange(len(self.x))
            np.random.shuffle(order)
            self.x, self.y = self.x[order], self.y[order]

    trained(Rows(ROWS, LABELS))


@near("wrong-batches")
def an_array_that_is_shuffled_itself():
    class Rows(keras.utils.PyDataset):
        def __init__(self, x):
            super().__init__()
            self.rows = np.concatenate([x, LABELS[:, None]], axis=1)

        def __len__(self):
            return 3

        def __getitem__(self, index):
            part = self.rows[index * 8 : (index + 1) * 8]
            return part[:, :3].copy(), part[:, 3].copy()

        def on_epoch_end(self):
            np.random.shuffle(self.rows)

    trained(Rows(ROWS))


@near("wrong-batches")
def an_order_that_a_base_of_ones_own_may_read():
    class Rows(Base):
        def __init__(self, x, y):
            super().__init__()
            self.x, self.y, self.kept = x, y, np.arange(len(x))

        def __getitem__(self, index):
            return self.x[index * 8 : (index + 1) * 8], self.y[index * 8 : (index + 1) * 8]

        def on_epoch_end(self):
            np.random.shuffle(self.kept)

    trained(Rows(ROWS, LABELS))


@near("wrong-batches")
def rows_that_are_drawn_in_each_batch():
    class Rows(keras.utils.PyDataset):
        def __init__(self, x, y):
            super().__init__()
            self.x, self.y, self.places = x, y, np.arange(len(x))

        def __len__(self):
            return 3

        def __getitem__(self, index):
            rows = np.random.choice(len(self.x), 8)
            return self.x[rows][0:8], self.y[rows][0:8]

        def on_epoch_end(self):
            np.random.shuffle(self.places)

    trained(Rows(ROWS, LABELS))
