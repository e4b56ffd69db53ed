"""Programs that give sound to a model as a file has it, and programs that only look so."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import tensorflow as tf
from scipy.io import wavfile

from tests.doctor.programs import near, triggers


def files():
    names = [os.path.join(tempfile.mkdtemp(), f"{i}.wav") for i in range(4)]
    for i, name in enumerate(names):
        wavfile.write(name, 8000, (np.sin(np.arange(40) * (i + 1)) * 20000).astype(np.int16))
    return names


def fit(ds):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(ds.batch(2), verbose=0)


@triggers("unscaled-input", says="the samples as wavfile.read reads them", pastes=True)
def samples_of_a_file():
    def load(path):
        _, data = wavfile.read(path.decode())
        return data.astype(np.float32)

    ds = tf.data.Dataset.from_tensor_slices(files())
    fit(ds.map(lambda path: (tf.ensure_shape(tf.numpy_function(load, [path], tf.float32), [40]), 1.0)))


@triggers("unscaled-input", says="16-bit numbers", pastes=True)
def samples_and_their_rate():
    def both(path):
        hertz, wave = wavfile.read(path.numpy().decode())
        return wave.astype("float32"), hertz

    def parse(path):
        wave, hertz = tf.py_function(both, [path], [tf.float32, tf.int32])
        return tf.ensure_shape(wave, [40]), tf.ensure_shape(tf.cast(hertz > 4000, tf.float32), [])

    fit(tf.data.Dataset.from_tensor_slices(files()).map(parse))


@near("unscaled-input")
def samples_that_no_model_is_given():
    def load(path):
        _, data = wavfile.read(path.decode())
        return data.astype(np.float32)

    ds = tf.data.Dataset.from_tensor_slices(files())
    list(ds.map(lambda path: tf.numpy_function(load, [path], tf.float32)))
