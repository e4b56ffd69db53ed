"""Sampling: which calls are stored where only a part is to be, so that recording may stay on in production.

The hot path decides as a call begins (`HotPath`, _hot.c): one that is left out is timed and counted, and nothing more.
As it ends it is stored all the same if it failed, gave a NaN, was among the slowest of its node so far, or took so long
that the writer has shown it as running.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.events import RunFacts

SLOWEST = 4
"""A call is slow if fewer calls of its node before it were slower."""
NANS = 16
"""This many calls with a NaN are stored with their values, of a node whose values have no room any more."""
_NAMES = {"step"}
_WHOLE_BYTES = 1 << 14
_LEAST, _MOST, _SHORT_NS = 2, 64, 2_000_000
"""Of a larger output a part is looked at in a call: it happens in the body's thread. 2 kB where the body takes less
than 2 ms, and twice as much for each time that it takes twice as long, 64 kB at most."""


class Tally:
    """What sampling knows of a node. On Linux a type of _hot.c with the same attributes.

    Attributes:
      calls: How many began.
      left, ns: How many were left out, and how long they took.
      nans: How many gave a NaN when values had no room any more; beyond `NANS` that is not looked at.
      policy: What the node's next calls keep, where _hot.c remembers it; -1 makes it ask again.
    """

    __slots__ = ("calls", "left", "nans", "ns", "policy", "slowest")

    def __init__(self) -> None:
        self.calls = self.left = self.nans = self.ns = 0
        self.policy = -1
        self.slowest: list[int] = [0] * SLOWEST

    def is_slow(self, ns: int) -> bool:
        """Notes the duration of a call that ended; whether it is among the longest."""
        if ns <= self.slowest[0]:
            return False
        self.slowest = sorted([*self.slowest[1:], ns])
        return True


@dataclass(frozen=True)
class Sampling:
    """What was asked for.

    Attributes:
      first, every: Of each node the first `first` calls are stored, and then each `every`-th.
      when: Only while this holds; None: always.
      said: As it was asked for.
    """

    first: int
    every: int
    when: CodeType | None
    said: str


def parse_sampling(sample: str | None, when: str | None) -> Sampling | None:
    """`"1/100"`: every hundredth call of each node. `"10+1/100"`: the first ten, then every hundredth.

    Raises:
      BadOptionError: it says something else, or the condition is not an expression of `step`.
    """
    if sample is None and when is None:
        return None
    match = re.fullmatch(r"\s*(?:(\d+)\s*\+\s*)?1\s*/\s*(\d+)(?:\s*calls)?\s*", sample if sample is not None else "1/1")
    every = int(match.group(2)) if match else 0
    if match is None or not every:
        raise BadOptionError(
            f"sample={sample!r} is not a part of the calls: write 1/100, or 10+1/100 for the first 10 too"
        )
    code = None
    if when is not None:
        try:
            code = compile(when.strip(), "<sample_when>", "eval")
        except (SyntaxError, ValueError) as error:
            raise BadOptionError(f"sample_when={when!r} is not an expression: {error}") from None
        if unknown := sorted(set(code.co_names) - _NAMES):
            raise BadOptionError(f"sample_when={when!r}: {unknown[0]} is not known there, only step is")
        _holds(code, 1, when)
    said = " ".join(part for part in (sample and sample.strip(), when and f"when {when.strip()}") if part)
    return Sampling(1 if match.group(1) is None else int(match.group(1)), every, code, said)


def _holds(code: CodeType, step: int, said: str) -> bool:
    try:
        return bool(eval(code, {"__builtins__": {}}, {"step": step}))
    except Exception as error:
        raise BadOptionError(f"sample_when={said!r} fails for step {step}: {error}") from None


def nan_part(ns: int) -> int:
    """How many kB of an output to look at where the body took so long: some 0.1 % of its time."""
    part, long_ns = _LEAST, _SHORT_NS
    while ns >= long_ns and part < _MOST:
        part, long_ns = 2 * part, 2 * long_ns
    return part


def any_nan(outputs: Any, turn: int, most: int) -> bool:
    """Whether there is a NaN in arrays of floats; tensors are looked at by _hot.c only.

    Of a large array each turn looks at other elements, evenly spread over it (_hot.c: at blocks of them).
    """
    for one in outputs if isinstance(outputs, (tuple, list)) else (outputs,):
        if isinstance(one, (np.ndarray, np.floating)) and one.dtype.char in "fd":
            turns = 1 if one.nbytes <= _WHOLE_BYTES else -(-one.nbytes // (most << 10))
            if np.isnan(one.reshape(-1)[turn % turns :: turns]).any():
                return True
    return False


def are_unchanged(args: Any) -> bool:
    """Whether the inputs are still what the body was given: not so where it may have changed an array."""
    return isinstance(args, (tuple, list)) and not any(isinstance(one, np.ndarray) for one in args)


class Steps:
    """Counts the runs of each tf.function, and says whether its condition holds for the one that began last."""

    def __init__(self, sampling: Sampling) -> None:
        self._code, self._said = sampling.when, sampling.said
        self._steps: dict[Hashable, int] = {}

    def wanted(self, run: RunFacts | None) -> bool:
        """Whether calls are to be sampled from now on; before the first run `step` is 0."""
        if self._code is None:
            return True
        step = 0
        if run is not None:
            key: Any = run.function or run.name
            step = self._steps[key] = self._steps.get(key, 0) + 1
        return _holds(self._code, step, self._said)
