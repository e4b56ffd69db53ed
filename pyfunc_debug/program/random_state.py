"""The random generators that all code of a process shares: Python's `random`, and NumPy's global one.

A body may have generators of its own besides, and TensorFlow has its own: these are not seen here.
"""

from __future__ import annotations

import contextlib
import math
import random
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_WORDS = 624
_BYTES = 4 * _WORDS
_NUMPYS = "MT19937"
"""NumPy's global generator, unless the program has replaced it (`numpy.random.set_bit_generator`)."""

Arguments = tuple[tuple[int, list[int], float | None], tuple[str, list[int], int, int, float]]
"""What `random.setstate` and `numpy.random.set_state` take, but Python's words with the position as a list."""


@dataclass(frozen=True, slots=True)
class RandomState:
    """Both generators at one moment. Between two draws mostly a position changes: the words stay as they are.

    Attributes:
      python: The words of Python's.
      numpy: The words of NumPy's; None where it is another generator than MT19937.
      facts: The small rest, as JSON takes it.
    """

    python: bytes
    numpy: bytes | None
    facts: dict[str, list[Any]]


def read() -> RandomState:
    """What they are now."""
    version, words, gauss = random.getstate()
    all_words = array("I", words)
    state: Any = np.random.get_state(legacy=False)
    numpy, kind = None, str(state["bit_generator"])
    facts: list[Any] = [kind]
    if kind == _NUMPYS:
        numpy = state["state"]["key"].tobytes()
        facts = [kind, int(state["state"]["pos"]), int(state["has_gauss"]), float(state["gauss"])]
    return RandomState(all_words[:-1].tobytes(), numpy, {"python": [version, all_words[-1], gauss], "numpy": facts})


@contextlib.contextmanager
def set_to(state: RandomState) -> Iterator[None]:
    """Sets both, and puts back what they were.

    Args:
      state: It may come from a file that anybody made.

    Raises:
      ValueError: it is not one that can be set here; the message says why.
    """
    python, numpy = random.getstate(), np.random.get_state(legacy=False)
    try:
        _set(state)
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def as_arguments(state: RandomState) -> Arguments:
    """What sets both generators.

    Raises:
      ValueError: it is damaged, or of another generator than MT19937; the message says which.
    """
    version, position, gauss = state.facts["python"]
    kind, *rest = state.facts["numpy"]
    if state.numpy is None:
        raise ValueError(f"NumPy's global generator was {kind} when it was recorded, not {_NUMPYS}")
    if {len(state.python), len(state.numpy)} != {_BYTES} or not all(0 <= one <= _WORDS for one in (position, rest[0])):
        raise ValueError("it is damaged")  # NumPy would read beyond its words
    words, key = array("I", state.python), array("I", state.numpy)
    at, has_gauss, numpys_gauss = rest
    left = None if gauss is None else float(gauss)
    if not all(map(math.isfinite, (left or 0.0, numpys_gauss))):
        raise ValueError("it is damaged")
    return (
        (int(version), [*words, int(position)], left),
        (_NUMPYS, key.tolist(), int(at), int(has_gauss), float(numpys_gauss)),
    )


def _set(state: RandomState) -> None:
    (version, words, gauss), (kind, key, *rest) = as_arguments(state)
    numpys: Any = (kind, np.array(key, np.uint32), *rest)
    here = np.random.get_state(legacy=False)["bit_generator"]
    if here != _NUMPYS:
        raise ValueError(f"NumPy's global generator was {here} here, not {_NUMPYS}")
    random.setstate((version, tuple(words), gauss))
    np.random.set_state(numpys)
