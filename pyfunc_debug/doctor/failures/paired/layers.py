"""Keras' layers and losses in a paired run: which of them may be called again."""

from __future__ import annotations

import re
from typing import Any

_MORE = re.compile(
    r"Drop|Noise|Normalization|Random|Lambda|RNN|LSTM|GRU|Attention|Bidirectional|TimeDistributed|Wrapper"
)
"""Layers that draw numbers, keep something, run a user's code, or hold such."""


def is_layer(value: object) -> bool:
    """Whether it is a layer or model of Keras'."""
    return any(
        one.__name__ == "Layer" and one.__module__.startswith(("keras.", "tf_keras.")) for one in type(value).__mro__
    )


def is_loss(value: object) -> bool:
    """Whether it is a loss object of Keras' own."""
    bases = type(value).__mro__
    return bases[0].__module__.startswith("keras.") and any(one.__name__ == "Loss" for one in bases)


def repeats(layer: Any) -> bool:
    """Whether a layer or model is of Keras' own, is built, and draws or keeps nothing when it is called."""
    kind = type(layer)
    own = (
        kind.__module__.startswith("keras.")
        and not _MORE.search(kind.__name__)
        and bool(getattr(layer, "built", False))
    )
    return own and all(repeats(one) for one in getattr(layer, "layers", ()))
