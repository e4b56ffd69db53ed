"""Where a piece of a matrix is put: `f(x)` with the examples `xs`, and the program that calls it there."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

DEF = "def f(x):\n"


@dataclass(frozen=True)
class Place:
    """A place for pieces.

    Attributes:
      put: The program for a piece's text.
      truth: What calls `f` eagerly with the same values, for the same `result`.
    """

    put: Callable[[str], str]
    truth: str


def _function(piece: str) -> str:
    return piece.replace(DEF, f"@tf.function\n{DEF}") + "result = [f(tf.constant(x)) for x in xs]\n"


def _mapped(piece: str) -> str:
    return f"{piece}result = list(tf.data.Dataset.from_tensor_slices(xs).map(f))\n"


def _layer(piece: str) -> str:
    above, _, body = piece.partition(DEF)
    call = textwrap.indent(f"def call(self, x):\n{body}", "    ")
    model = "model = keras.Sequential([keras.Input(xs.shape[1:], dtype=xs.dtype.name), Own()])\n"
    return f"{above}class Own(keras.layers.Layer):\n{call}{model}result = model.predict(xs, verbose=0)\n"


PLACES = {
    "function": Place(_function, "result = [f(tf.constant(x)) for x in xs]\n"),
    "map": Place(_mapped, "result = [f(tf.constant(x)) for x in xs]\n"),
    "layer": Place(_layer, "result = f(tf.constant(xs))\n"),
}
"""Of the matrices whose pieces are functions."""
