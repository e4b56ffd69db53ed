"""Programs that do not fail: generators whose counter goes on behind the last row, after keras#5818 and its like."""
# ruff: noqa: N806

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


def classifier(*shape):
    model = keras.Sequential([keras.Input(shape), keras.layers.Flatten(), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


@triggers("wrong-batches", says="were the same, all zeros: idx[count * size:(count + 1) * size] is empty", pastes=True)
def batches_counted_on_into_zeros():
    data, labels, size = np.random.rand(32, 4, 4).astype("float32"), np.random.randint(0, 3, 32), 8

    def batch_generator_train():
        idx = np.arange(0, 32)
        np.random.shuffle(idx)
        count = 0
        while 1:
            idx_tmp = idx[count * size:(count + 1) * size]  # fmt: skip
            X = np.zeros((size, 4, 4, 1))
            y = np.zeros(size)
            for ii, jj in enumerate(idx_tmp):
                X[ii, :, :, 0] = data[jj]
                y[ii] = labels[jj]
            yield X, y
            count += 1

    classifier(4, 4, 1).fit(batch_generator_train(), steps_per_epoch=4, epochs=3, verbose=0)


@triggers("wrong-batches", says="gave had no rows: x[start:end] is empty", pastes=True)
def slices_behind_the_last_row():
    x, y = np.random.rand(30, 4).astype("float32"), np.random.randint(0, 3, 30)

    def batches(size=10):
        batch = 0
        while True:
            start = batch * size
            end = start + size
            yield x[start:end], y[start:end]
            batch = batch + 1

    classifier(4).fit(batches(), steps_per_epoch=3, epochs=3, verbose=0)


@triggers("wrong-batches", says="nothing sets self.cur back", pastes=True)
def the_last_batch_for_ever_of_an_object_that_counts():
    class Data:
        def __init__(self, x, y, size):
            self.x, self.y, self.size = x, y, size
            self.cur = 0

        def flow(self):
            xs = np.zeros((self.size, 4), "float32")
            ys = np.zeros((self.size,), "float32")
            while True:
                for _ in range(4):
                    part = self.x[self.cur : self.cur + self.size]
                    for k in range(len(part)):
                        xs[k] = part[k]
                        ys[k] = self.y[self.cur + k]
                    self.cur += self.size
                    yield xs.copy(), ys.copy()

    data = Data(np.random.rand(32, 4).astype("float32"), np.random.randint(0, 3, 32), 8)
    classifier(4).fit(data.flow(), steps_per_epoch=4, epochs=3, verbose=0)


@triggers("wrong-batches", says="x[pos : pos + 8] is empty, as line", pastes=True)
def a_dataset_that_an_own_loop_asks_for_more():
    x = np.random.rand(24, 4).astype("float32")

    def gen():
        pos = 0
        while True:
            rows = np.zeros((8, 4), "float32")
            part = x[pos : pos + 8]
            rows[: len(part)] = part
            pos += 8
            yield rows

    taken = iter(tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec((8, 4))))
    for _ in range(3):
        print(sum(float(tf.reduce_sum(next(taken))) for _ in range(3)))


@near("wrong-batches")
def a_counter_that_is_set_back():
    x, y = np.zeros((48, 4), "float32"), np.zeros(48)

    def batches(size=8):
        i = 0
        x[:8] = np.random.rand(8, 4)
        while True:
            rows = np.zeros((size, 4), "float32")
            rows[:] = x[i : i + size]
            yield rows, y[i : i + size]
            i += size
            if i + size > len(x):
                i = 0

    classifier(4).fit(batches(), steps_per_epoch=6, epochs=1, verbose=0)


@near("wrong-batches")
def a_counter_that_goes_around():
    x, y = np.ones((24, 4), "float32"), np.zeros(24)
    x[0] = 5

    def batches(size=8):
        step = 0
        while True:
            first = (step * size) % len(x)
            rows = np.zeros((size, 4), "float32")
            rows[:] = x[first : first + size]
            yield rows, y[first : first + size]
            step += 1

    classifier(4).fit(batches(), steps_per_epoch=9, epochs=1, verbose=0)


@near("wrong-batches")
def rows_that_are_over_end_the_generator():
    x = np.random.rand(24, 4).astype("float32")

    def gen():
        i = 0
        while True:
            part = x[i : i + 8]
            if not len(part):
                return
            yield part
            i += 8

    ds = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec((None, 4)))
    for _ in range(3):
        print(sum(float(tf.reduce_sum(one)) for one in ds))


@near("wrong-batches")
def silence_at_the_end_of_a_recording():
    sound = np.concatenate([np.random.rand(160), np.zeros(24)]).astype("float32")

    def frames():
        at = 0
        while True:
            frame = np.zeros(8, "float32")
            frame[:] = sound[at : at + 8]
            yield frame
            at += 8

    ds = tf.data.Dataset.from_generator(frames, output_signature=tf.TensorSpec((8,))).take(23)
    print(sum(float(tf.reduce_sum(one)) for one in ds))
