"""Programs whose bodies leave figures open: as `programs_silent`."""

from __future__ import annotations

import os

import matplotlib as mpl
import numpy as np
import tensorflow as tf
from matplotlib.figure import Figure

from tests.doctor.programs import mapped, near, triggers

ROWS = np.random.rand(12, 4).astype(np.float32)

# -- memory -----------------------------------------------------------------------------------------------------------


@triggers("memory", says="makes a figure in each call (plt.figure) and never closes it", pastes=True)
def a_figure_for_each_row():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def drawn(row):
        fig = plt.figure(figsize=(1, 1))
        ax = fig.add_subplot(111)
        ax.plot(row)
        fig.canvas.draw()
        image = np.asarray(fig.canvas.buffer_rgba())[..., :3]
        return image

    list(mapped(drawn, ROWS, tf.uint8))


@triggers("memory", says="(plt.subplots) and never closes it: pyplot keeps every one", pastes=True)
def axes_for_each_row():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def drawn(row):
        fig, ax = plt.subplots(figsize=(1, 1))
        ax.bar(range(4), row)
        fig.canvas.draw()
        return np.array(fig.canvas.buffer_rgba())[..., :3]

    @tf.function
    def step(x):
        return tf.numpy_function(drawn, [x], tf.uint8)

    for row in ROWS:
        step(row)


@triggers("memory", says="12 calls so far", pastes=True)
def a_current_figure_for_each_row():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def saved(row):
        plt.figure(figsize=(1, 1))
        plt.plot(row)
        plt.savefig(os.devnull, format="png")
        return np.float32(0)

    list(mapped(saved, ROWS))


@near("memory")
def a_figure_that_is_closed():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def drawn(row):
        fig = plt.figure(figsize=(1, 1))
        fig.add_subplot(111).plot(row)
        fig.canvas.draw()
        image = np.asarray(fig.canvas.buffer_rgba())[..., :3]
        plt.close(fig)
        return image

    list(mapped(drawn, ROWS, tf.uint8))


@near("memory")
def a_figure_of_one_name():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def saved(row):
        fig = plt.figure("rows", figsize=(1, 1))
        fig.add_subplot(111).plot(row)
        fig.savefig(os.devnull, format="png")
        return np.float32(0)

    list(mapped(saved, ROWS))


@near("memory")
def a_figure_without_pyplot():
    def drawn(row):
        fig = Figure(figsize=(1, 1))
        fig.subplots().plot(row)
        fig.savefig(os.devnull, format="png")
        return np.float32(0)

    list(mapped(drawn, ROWS))


@near("memory")
def one_figure_for_all():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    kept = []

    def drawn(row):
        if not kept:
            fig = plt.figure(figsize=(1, 1))
            kept.append(fig)
        kept[0].add_subplot(111).plot(row)
        return np.float32(0)

    list(mapped(drawn, ROWS))
