"""Keras' layers and losses in a paired run: which of them may be called again."""

from __future__ import annotations

import re
from typing import Any


def is_layer(value: object) -> bool:
    """Whether it is a layer or model of Keras'."""
    return any(
        one.__name__ == "Layer" and one.__module__.startswith(("keras.", "tf_keras.")) for one in type(value).__mro__
    )


def is_loss(value: object) -> bool:
    """Whether it is a loss object of Keras' own."""
    return type(value).__module__.startswith("keras.src.losses") and not isinstance(value, type)


def repeats(layer: Any) -> bool:
    """Whether a layer or model is of Keras' own, is built, and draws or keeps nothing when it is called."""
    inner = [*getattr(layer, "_flatten_layers", lambda: [layer])()]
    kinds = {f"{type(one).__module__}.{type(one).__name__}" for one in (layer, *inner)}
    return bool(getattr(layer, "built", False)) and all(
        kind.startswith("keras.src.") and not re.search(r"Drop|Noise|Normalization|Random|Lambda|RNN|LSTM|GRU", kind)
        for kind in kinds
    )
