"""Inputs for a body whose recorded values were not kept: drawn from what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfunc_debug.records import Value

_LABELS = 0.02
"""How far the deviation of zeros and ones may be from what their mean says: it is that of a few rows."""


def array_like(value: Value, generator: np.random.Generator) -> Any:
    """An array of a value's dtype, shape and range; None where these are not known.

    Args:
      value: As it was recorded.
      generator: What it is drawn from.
    """
    import tensorflow as tf

    if value.shape is None or value.min is None or value.max is None or value.nan or value.inf:
        return None
    try:
        kind = np.dtype(tf.as_dtype(value.dtype).as_numpy_dtype)
    except TypeError:
        return None
    least, most = value.min, value.max
    if kind.kind == "b":
        return generator.random(value.shape) < (value.mean or 0.5)
    if kind.kind in "iu":
        return generator.integers(int(least), int(most), value.shape, np.int64, endpoint=True).astype(kind)
    if kind.kind != "f":
        return None
    middle, spread = value.mean if value.mean is not None else (least + most) / 2, value.std or 0.0
    if (least, most) == (0.0, 1.0) and abs(spread - (middle * (1 - middle)) ** 0.5) < _LABELS:  # zeros and ones
        return (generator.random(value.shape) < middle).astype(kind)
    return np.asarray(np.clip(generator.normal(middle, spread, value.shape), least, most)).astype(kind)
