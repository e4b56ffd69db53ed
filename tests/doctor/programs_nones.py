"""Programs whose bodies use what a call gives that works in place, None: as `programs_silent`."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import mapped, near, triggers

# -- nan-born ---------------------------------------------------------------------------------------------------------


@triggers("nan-born", says="np.place works in place and returns None: ones is None, and becomes NaN", pastes=True)
def a_mask_of_np_place():
    def npmask(image):
        ones = image.copy()
        ones = np.place(ones, ones == 254, 1)
        mask = np.zeros((4, 4), np.float32)
        mask[:] = ones
        return mask

    list(mapped(npmask, np.full((6, 4, 4), 254, np.uint8)))


@triggers("nan-born", says="row.sort works in place and returns None: ordered is None", pastes=True)
def an_order_that_is_none():
    def smallest(row):
        row = row.copy()
        ordered = row.sort()
        least = np.empty(3, np.float32)
        least[:] = ordered
        return least

    list(mapped(smallest, np.random.rand(6, 3).astype(np.float32)))


@triggers("nan-born", says="np.random.shuffle works in place and returns None: order is None", pastes=True)
def an_order_that_is_shuffled():
    def drawn(row):
        order = np.random.shuffle(np.arange(3))
        mixed = np.zeros((2, 3), np.float32)
        mixed[0] = order
        return mixed

    @tf.function
    def step(x):
        return tf.numpy_function(drawn, [x], tf.float32)

    for _ in range(3):
        step(tf.ones([3]))


@near("nan-born")
def a_mask_that_is_changed():
    def npmask(image):
        ones = image.copy()
        np.place(ones, ones == 254, 1)
        mask = np.zeros((4, 4), np.float32)
        mask[:] = ones
        return mask

    list(mapped(npmask, np.full((6, 4, 4), 254, np.uint8)))


@near("nan-born")
def a_sort_of_the_programs_own():
    class Rows:
        def __init__(self, row):
            self.row = row

        def sort(self):
            return np.sort(self.row)

    def smallest(row):
        rows = Rows(row)
        ordered = rows.sort()
        return ordered[:1]

    list(mapped(smallest, np.random.rand(6, 3).astype(np.float32)))


@near("nan-born")
def a_none_that_nobody_reads():
    def filled(row):
        row = row.copy()
        done = row.fill(2.0)
        done = row.sum()
        return done

    list(mapped(filled, np.random.rand(6, 3).astype(np.float32)))
