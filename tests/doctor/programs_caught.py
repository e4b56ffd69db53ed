"""Programs whose bodies catch their own exceptions, and return zeros, and programs that only look so."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import mapped, mapped_eager, near, triggers

FOLDER = "images/"


@triggers("caught-error", says="all 6 calls of load returned nothing but 0, as its `except Exception` in line")
def zeros_for_each_file():
    def load(path):
        try:
            return np.load(FOLDER + path)
        except Exception:
            return np.zeros((4, 4, 3), np.float32)

    list(mapped(load, [f"{i}.npy" for i in range(6)]))


@triggers("caught-error", says="6 of 8 calls of parse returned nothing but -1, as its `except`")
def ones_below_zero_for_most_lines():
    def parse(line):
        try:
            values = np.array(line.numpy().decode().split(";"), np.float32)
        except:  # noqa: E722
            values = np.full(3, -1.0, np.float32)
        return values

    list(mapped_eager(parse, ["1;2;3", "4;5;6", *["7,8,9"] * 6]))


@triggers("caught-error", says="all 5 calls of score returned nothing but 0")
def one_number_for_each_pair():
    def score(a, b):
        try:
            return np.float32(a["f1"] / b), np.int64(1)
        except Exception:
            return np.float32(0.0), np.int64(0)

    ds = tf.data.Dataset.range(1, 6)
    list(ds.map(lambda i: tf.numpy_function(score, [i, i], [tf.float32, tf.int64])))


@near("caught-error")
def a_broken_file_among_others():
    def parse(line):
        try:
            return np.array(line.decode().split(";"), np.float32)
        except Exception:
            return np.zeros(3, np.float32)

    list(mapped(parse, ["1;2;3", "4;5;6", "7;8;9", "4;5;1", "7,8,9"]))


@near("caught-error")
def a_table_without_most_entries():
    known = {b"a": np.ones(3, np.float32)}

    def embedding(word):
        try:
            return known[word]
        except KeyError:
            return np.zeros(3, np.float32)

    list(mapped(embedding, ["a", "b", "c", "d", "e", "f"]))


@near("caught-error")
def missing_numbers_of_a_table():
    def number(text):
        try:
            return np.float32(text)
        except Exception:
            return np.float32(0)

    list(mapped(number, ["1.5", "", "", "", "", ""]))


@near("caught-error")
def what_is_caught_is_raised():
    def load(values):
        try:
            return np.zeros(3, np.float32) * values
        except Exception as error:
            print(error)
            raise

    list(mapped(load, np.arange(6, dtype=np.float32)))
