"""A small real program with Python inside its graphs: an input pipeline and a training step.

A tf.data pipeline cuts patches out of handwritten digits with NumPy and brings them to the same contrast in a
py_function; Keras trains an autoencoder on them, with the log-Huber loss of TensorFlow's own documentation written in
plain Python. It has one real bug, which silently loses some patches: the doctor finds it.
"""

from __future__ import annotations

import argparse
import zlib
from importlib import resources
from typing import Any

import keras
import numpy as np
import tensorflow as tf

SEED = 112


def load_images() -> np.ndarray[Any, Any]:
    """The digits: uint8[1797, 8, 8], 0 to 16. Origin and licence are in DIGITS-LICENSE.txt."""
    with resources.files("pyfunc_debug.demo").joinpath("digits.npz").open("rb") as file:
        return np.load(file)["images"]  # type: ignore[no-any-return]


def cut_patch(image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A random 4 x 4 patch, mirrored half of the time. Runs as tf.numpy_function: gets and returns arrays."""
    random = np.random.default_rng([SEED, zlib.crc32(image.tobytes())])  # by image: whichever thread comes first
    row, column = random.integers(0, 5, size=2)
    patch = image[row : row + 4, column : column + 4]
    return np.ascontiguousarray(patch[:, ::-1] if random.random() < 0.5 else patch)


def even_contrast(patch: Any) -> Any:
    """Mean 0, standard deviation 1. Runs as tf.py_function: gets and returns eager tensors."""
    pixels = tf.cast(patch, tf.float32)
    return (pixels - tf.reduce_mean(pixels)) / tf.math.reduce_std(pixels)  # the bug: an empty corner has no contrast


def log_huber(x: Any, m: Any) -> Any:
    """The log-Huber function of the documentation of tf.py_function, with Python's own `if`."""
    if tf.abs(x) <= m:
        return x**2
    return m**2 * (1 - 2 * tf.math.log(m) + tf.math.log(x**2))


def make_patch(image: Any) -> Any:
    """One element of the pipeline, as a graph around two Python functions."""
    patch = tf.numpy_function(cut_patch, [image], tf.uint8)
    patch = tf.py_function(even_contrast, [patch], tf.float32)
    return tf.ensure_shape(patch, [4, 4])


def usable(patch: Any) -> Any:
    """Keeps NaN out of the training, silently."""
    return tf.reduce_all(tf.math.is_finite(patch))


def log_huber_loss(truth: Any, guess: Any) -> Any:
    """Keras' loss: log-Huber of the root mean square error. Differentiable through the Python function."""
    error = tf.sqrt(tf.reduce_mean(tf.square(truth - guess)))
    return tf.ensure_shape(tf.py_function(log_huber, [error, tf.constant(0.5)], tf.float32), [])


def train(steps: int = 40, batch: int = 16) -> list[float]:
    """Trains for one epoch of `steps` steps; returns the loss after each epoch."""
    keras.utils.set_random_seed(7)
    patches = (
        tf.data.Dataset.from_tensor_slices(load_images())
        .repeat()
        .map(make_patch, num_parallel_calls=2)
        .filter(usable)
        .batch(batch)
        .map(lambda patch: (patch, patch))
        .prefetch(2)
    )
    model = keras.Sequential(
        [
            keras.Input((4, 4)),
            keras.layers.Flatten(),
            keras.layers.Dense(6, activation="tanh"),
            keras.layers.Dense(16),
            keras.layers.Reshape((4, 4)),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.02), loss=log_huber_loss)
    history = model.fit(patches, steps_per_epoch=steps, epochs=1, shuffle=False, verbose=0)
    return [float(loss) for loss in history.history["loss"]]


def main() -> None:
    """Parses the command line and trains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    losses = train(arguments.steps)
    print(f"trained on {arguments.steps} batches of 4 x 4 patches, mean loss {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
