"""The random generators that all code of a process shares: Python's `random`, and NumPy's global one.

A body may have generators of its own besides, and TensorFlow has its own: these are not seen here.
"""

from __future__ import annotations

import contextlib
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


def _set(state: RandomState) -> None:
    version, position, gauss = state.facts["python"]
    kind, *rest = state.facts["numpy"]
    here = np.random.get_state(legacy=False)["bit_generator"]
    if state.numpy is None or here != _NUMPYS:
        used = "here" if kind == _NUMPYS else "when it was recorded"
        raise ValueError(f"NumPy's global generator was {here if kind == _NUMPYS else kind} {used}, not {_NUMPYS}")
    if {len(state.python), len(state.numpy)} != {_BYTES} or not all(0 <= one <= _WORDS for one in (position, rest[0])):
        raise ValueError("it is damaged")  # NumPy would read beyond its words
    words = array("I", state.python)
    random.setstate((version, (*words, position), gauss))
    key = np.frombuffer(state.numpy, np.uint32)
    np.random.set_state((_NUMPYS, key, *rest))
