"""Programs that do not fail, with metrics of their own that keep what they got in lists and numbers of Python's."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


def fitted(metric, epochs=2, **options):
    """A small model, trained with a metric."""
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[metric])
    model.fit(x, x[:, :1], epochs=epochs, batch_size=4, verbose=0, **options)


@triggers("unreset-metric", says="Rows adds to self.t and self.p with each batch", pastes=True)
def rows_that_a_metric_keeps():
    class Rows(keras.metrics.Metric):
        def __init__(self, name="rows", **options):
            super().__init__(name=name, **options)
            self.t, self.p = [], []

        def keep(self, t, p):
            self.t.extend(t.ravel().tolist())
            self.p.extend(p.ravel().tolist())
            return np.float32(0)

        def update_state(self, t, p, sample_weight=None):
            tf.numpy_function(self.keep, [t, p], tf.float32)

        def error(self):
            return np.float32(np.mean(np.abs(np.array(self.t) - np.array(self.p)))) if self.t else np.float32(0)

        def result(self):
            return tf.ensure_shape(tf.numpy_function(self.error, [], tf.float32), ())

    fitted(Rows())
    x = np.ones((8, 4), np.float32)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Rows()])
    model.fit(x, x[:, :1], epochs=2, batch_size=4, verbose=0)


@triggers("unreset-metric", says="self.counts = {}", pastes=True)
def counts_of_a_metric_in_a_dict():
    class Signs(tf.keras.metrics.Metric):
        def __init__(self, **options):
            super().__init__(**options)
            self.counts = {}

        def update_state(self, t, p, sample_weight=None):
            def count(rows):
                for row in rows.ravel():
                    self.counts[row > 0] = self.counts.get(row > 0, 0) + 1
                return np.int64(len(rows))

            tf.numpy_function(count, [p], tf.int64)

        def share(self):
            return np.float32(self.counts.get(True, 0) / max(1, sum(self.counts.values())))

        def result(self):
            return tf.ensure_shape(tf.numpy_function(self.share, [], tf.float32), ())

    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Signs(name="signs")])
    for _ in range(2):
        model.fit(x, x[:, :1], batch_size=4, verbose=0)


@triggers("unreset-metric", says="self.total = 0.0", pastes=True)
def a_sum_of_a_metric_in_a_number():
    class Far(keras.metrics.Metric):
        def __init__(self, **options):
            super().__init__(**options)
            self.total = 0.0
            self.table = np.zeros((2, 2))

        def update_state(self, t, p, sample_weight=None):
            def add(t, p):
                self.total += float(np.abs(t - p).sum())
                self.table[0, 1] += len(t)
                return np.float32(self.total)

            tf.numpy_function(add, [t, p], tf.float32)

        def read(self):
            return np.float32(self.total / max(1, self.table.sum()))

        def result(self):
            return tf.ensure_shape(tf.numpy_function(self.read, [], tf.float32), ())

    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Far(name="far")])
    model.fit(x, x[:, :1], batch_size=4, verbose=0, validation_split=0.5)


@triggers("unreset-metric", says="Eager adds to self.rows with each batch")
def rows_of_a_metric_that_runs_eagerly():
    class Eager(keras.metrics.Metric):
        def __init__(self, **options):
            super().__init__(**options)
            self.rows: list[float] = []

        def update_state(self, t, p, sample_weight=None):
            self.rows.extend(np.ravel(p.numpy()).tolist())

        def result(self):
            return tf.constant(np.mean(self.rows or [0.0]), tf.float32)

    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Eager(name="eager")], run_eagerly=True)
    model.fit(x, x[:, :1], epochs=2, batch_size=4, verbose=0)


@near("unreset-metric")
def a_metric_that_empties_its_rows():
    class Rows(keras.metrics.Metric):
        def __init__(self, **options):
            super().__init__(**options)
            self.p = []

        def keep(self, p):
            self.p.extend(p.ravel().tolist())
            return np.float32(0)

        def update_state(self, t, p, sample_weight=None):
            tf.numpy_function(self.keep, [p], tf.float32)

        def read(self):
            return np.float32(np.mean(self.p or [0.0]))

        def result(self):
            return tf.ensure_shape(tf.numpy_function(self.read, [], tf.float32), ())

        def reset_state(self):
            self.p = []

    fitted(Rows(name="rows"))


@near("unreset-metric")
def rows_that_a_callback_empties():
    class Rows(keras.metrics.Metric):
        def __init__(self, **options):
            super().__init__(**options)
            self.p = []

        def keep(self, p):
            self.p.extend(p.ravel().tolist())
            return np.float32(0)

        def update_state(self, t, p, sample_weight=None):
            tf.numpy_function(self.keep, [p], tf.float32)

        def read(self):
            return np.float32(np.mean(self.p or [0.0]))

        def result(self):
            return tf.ensure_shape(tf.numpy_function(self.read, [], tf.float32), ())

    metric = Rows(name="rows")
    fitted(metric, callbacks=[keras.callbacks.LambdaCallback(on_epoch_begin=lambda *_: metric.p.clear())])


@near("unreset-metric")
def a_metric_of_variables_with_a_history():
    class Mean(keras.metrics.Metric):
        def __init__(self, **options):
            super().__init__(**options)
            self.total = self.add_weight(name="total", initializer="zeros")
            self.history = []

        def far(self, t, p):
            value = np.float32(np.abs(t - p).mean())
            self.history.append(float(value))
            return value

        def update_state(self, t, p, sample_weight=None):
            self.total.assign_add(tf.ensure_shape(tf.numpy_function(self.far, [t, p], tf.float32), ()))

        def result(self):
            return self.total

    fitted(Mean(name="mean"))
    x = np.ones((8, 4), np.float32)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Mean(name="mean")])
    model.fit(x, x[:, :1], epochs=2, batch_size=4, verbose=0)


@near("unreset-metric")
def rows_of_one_epoch():
    class Once(keras.metrics.Metric):
        def __init__(self, **options):
            super().__init__(**options)
            self.p = []

        def keep(self, p):
            self.p.extend(p.ravel().tolist())
            return np.float32(0)

        def update_state(self, t, p, sample_weight=None):
            tf.numpy_function(self.keep, [p], tf.float32)

        def read(self):
            return np.float32(np.mean(self.p or [0.0]))

        def result(self):
            return tf.ensure_shape(tf.numpy_function(self.read, [], tf.float32), ())

    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Once(name="once")])
    model.fit(x, x[:, :1], epochs=1, batch_size=4, verbose=0)
