"""Programs that read shuffled tables, or turn images round, and programs that only look so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import tensorflow as tf

from tests.doctor.programs import mapped, near, triggers

SPEC = (tf.TensorSpec((1,), tf.float32), tf.TensorSpec((), tf.int64))


def table():
    return pd.DataFrame({"x": np.arange(12.0), "y": np.arange(12) % 2})


# -- lost-shuffle ------------------------------------------------------------------------------------------------------


@triggers("lost-shuffle", says='df["x"][i] asks for the row that is labelled i', pastes=True)
def a_shuffled_table_by_labels():
    df = table()
    df = df.sample(frac=1)

    def rows():
        for i in range(len(df)):
            yield [df["x"][i]], df["y"][i]

    list(tf.data.Dataset.from_generator(rows, output_signature=SPEC))


@triggers("lost-shuffle", says="keeps each row's label", pastes=True)
def a_shuffled_table_of_a_sequence():
    class Rows(tf.keras.utils.PyDataset):
        def __init__(self, frame):
            super().__init__()
            self.frame = frame

        def __len__(self):
            return 12

        def __getitem__(self, index):
            return np.array([[self.frame["x"][index]]]), np.array([[self.frame["y"][index]]])

    frame = table().sample(frac=1.0, random_state=0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Rows(frame), verbose=0)


@triggers("lost-shuffle", says="in the order from before the shuffle", pastes=True)
def a_shuffled_table_by_loc():
    people = table()
    people = people.sample(frac=1)

    def rows():
        for i in range(12):
            yield [people.loc[i, "x"]], people.loc[i, "y"]

    list(tf.data.Dataset.from_generator(rows, output_signature=SPEC))


@near("lost-shuffle")
def a_shuffled_table_with_new_labels():
    df = table()
    df = df.sample(frac=1).reset_index(drop=True)

    def rows():
        for i in range(len(df)):
            yield [df["x"][i]], df["y"][i]

    list(tf.data.Dataset.from_generator(rows, output_signature=SPEC))


@near("lost-shuffle")
def a_shuffled_table_by_positions():
    df = table()
    df = df.sample(frac=1)

    def rows():
        for i in range(len(df)):
            yield [df["x"].iloc[i]], df["y"].values[i]

    list(tf.data.Dataset.from_generator(rows, output_signature=SPEC))


@near("lost-shuffle")
def a_shuffled_table_by_its_own_labels():
    df = table()
    df = df.sample(frac=1)

    def rows():
        for i in df.index:
            yield [df["x"][i]], df["y"][i]

    list(tf.data.Dataset.from_generator(rows, output_signature=SPEC))


# -- garbled-image: .T -------------------------------------------------------------------------------------------------


@triggers("garbled-image", says="img.T turns all axes round", pastes=True)
def all_axes_of_an_image_with_its_channels_first():
    def last(img):
        return (img.T / 255).astype(np.float32)

    list(mapped(last, np.random.default_rng(0).integers(0, 256, (4, 3, 6, 8), np.uint8)))


@triggers("garbled-image", says="np.transpose(img) turns all axes round", pastes=True)
def all_axes_by_a_function_of_numpy():
    def last(img):
        return np.transpose(img).astype(np.float32) / 255

    list(mapped(last, np.random.default_rng(0).integers(0, 256, (4, 3, 6, 8), np.uint8)))


@near("garbled-image")
def all_axes_of_a_matrix():
    def turned(x):
        return x.T + np.transpose(x)

    list(mapped(turned, np.random.default_rng(0).random((4, 6, 6)).astype(np.float32)))


@near("garbled-image")
def channels_moved_to_the_end():
    def last(img):
        return np.transpose(img, (1, 2, 0)).astype(np.float32) / 255

    list(mapped(last, np.random.default_rng(0).integers(0, 256, (4, 3, 6, 8), np.uint8)))
