"""Programs whose generators read a file, or build something, at the beginning of each pass."""

from __future__ import annotations

import time

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

SLOW_FIRST = """
UPDATE call SET end_ns = start_ns + 1000;
UPDATE call SET end_ns = start_ns + 900000000 WHERE id IN (
    SELECT min(c.id) FROM call c JOIN value v ON v.call = c.id AND v.role = 'input' AND v.position = 0
    GROUP BY c.node, v.min)
"""
"""Clocks: the first call of each pass takes 0.9 s."""
NUMBER = tf.TensorSpec((), tf.float32)


class Store:
    def __init__(self, count):
        self.count = count

    def load(self):
        return np.arange(self.count, dtype=np.float32)

    def generator(self, rows):
        def g():
            x = self.load()
            for i in rows:
                yield x[i]

        return g


def passes(generator, count=4):
    data = tf.data.Dataset.from_generator(generator, output_signature=NUMBER).batch(4)
    for _ in range(count):
        list(data)


@triggers("repeated-setup", says="g makes `self.load()` at the beginning of each pass", pastes=True, clock=SLOW_FIRST)
def a_store_that_each_pass_builds():
    passes(Store(20).generator(range(12)))


def _read_table(name):
    return np.arange(len(name) + 8, dtype=np.float32)


@triggers("repeated-setup", says="makes `_read_table(", pastes=True, clock=SLOW_FIRST)
def a_table_that_each_pass_reads():
    def rows():
        table = _read_table("values.csv")
        for value in table:
            yield value + 1

    passes(rows)


def load_table(name):
    return np.arange(len(name) + 8, dtype=np.float32)


@triggers("repeated-setup", says="at the beginning of each", pastes=True, clock=SLOW_FIRST)
def a_loop_over_what_it_loads():
    def rows():
        for value in load_table("values.csv"):
            yield value * 2

    passes(rows)


@near("repeated-setup", clock=SLOW_FIRST)
def a_file_that_a_pass_uses_up():
    def rows():
        with open(__file__, encoding="utf-8") as lines:
            for line in list(lines)[:12]:
                yield np.float32(len(line))

    passes(rows)


@near("repeated-setup", clock=SLOW_FIRST)
def an_order_of_each_pass():
    def rows():
        order = np.random.default_rng().permutation(12)
        for i in order:
            yield np.float32(i)

    passes(rows)


@near("repeated-setup", clock=SLOW_FIRST)
def a_table_that_is_changed():
    def rows():
        table = _read_table("values.csv")
        for i in range(len(table)):
            table[i] += 1
            yield table[i]

    passes(rows)


@near("repeated-setup", clock=SLOW_FIRST)
def two_passes_only():
    passes(Store(20).generator(range(12)), 2)


@near("repeated-setup")
def a_table_that_is_read_at_once():
    def rows():
        table = _read_table("values.csv")
        for value in table:
            time.sleep(0)
            yield value

    passes(rows)
