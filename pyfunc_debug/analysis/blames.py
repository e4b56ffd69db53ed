"""Who was waited for, as recordings keep it: many texts `[["augment (#17)", 300], ["MainThread", 20]]` at once.

A recording may hold millions. They are read as one array of bytes; what json.dumps did not write just so goes to json.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.analysis.integers import Integers
from pyfunc_debug.gil.blame import call_of

_DIGITS = 18
"""Of a number that fits into 64 bits."""
_WIDEST = 1 << 26
"""Bytes for the names of all entries of a text side by side."""
_ODD = 0x9E3779B97F4A7C15
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Entries:
    """The entries of several blames.

    Attributes:
      blame: Which of them each entry stands in.
      body: Its name, as an index into `bodies`.
      call: The call that it names; -1 where none is named.
      ns: Its nanoseconds.
      bodies: The names.
    """

    blame: Integers
    body: Integers
    call: Integers
    ns: Integers
    bodies: list[str]


def entries(text: str, count: int) -> Entries:
    """What `count` blames hold.

    Args:
      text: The blames with a newline between two.
      count: How many they are.
    """
    found = _at_once(np.frombuffer(text.encode(), np.uint8), count)
    return _one_by_one(text.split("\n")) if found is None else found


def blame(text: str) -> tuple[tuple[str, int], ...]:
    """One of them."""
    return tuple((str(who), int(ns)) for who, ns in json.loads(text)) if text != "[]" else ()


def _one_by_one(texts: Iterable[str]) -> Entries:
    bodies: dict[str, int] = {}
    rows = []
    for number, text in enumerate(texts):
        for label, ns in blame(text):
            body, call = call_of(label)
            known = -1 if call is None or len(str(call)) > _DIGITS else call
            rows.append((number, bodies.setdefault(body, len(bodies)), known, ns))
    number, body, called, ns = np.array(rows, np.int64).reshape(-1, 4).T
    return Entries(number, body, called, ns, list(bodies))


def _at_once(raw: _Bytes, count: int) -> Entries | None:
    """None where anything is not as json.dumps writes labels without escapes."""
    quotes = np.flatnonzero(raw == ord('"'))
    ends = np.flatnonzero(raw == ord("]"))
    lines = np.flatnonzero(raw == ord("\n"))
    if not len(quotes) or len(quotes) % 2 or len(lines) != count - 1 or (raw == ord("\\")).any() or raw.max() > 127:
        return None
    opened, closed = quotes[::2], quotes[1::2]
    at = np.searchsorted(ends, closed)
    if at[-1] >= len(ends):
        return None
    end = ends[at]
    ns, digits = _numbers(raw, end, 1)
    written = int((end - opened).sum()) + 2 * len(opened) + 2 * (len(opened) - count) + 2 * count + count - 1
    marks = (raw[opened - 1] == ord("[")) & (raw[closed + 1] == ord(",")) & (raw[closed + 2] == ord(" "))
    if written != len(raw) or not marks.all() or (digits != end - closed - 3).any() or digits.min() < 1:
        return None
    call, digits = _numbers(raw, closed - 1, 1)
    mark = closed - 1 - digits
    named = (raw[closed - 1] == ord(")")) & (digits > 0) & (mark - 2 > opened)
    named &= (raw[mark - 1] == ord("#")) & (raw[mark - 2] == ord("(")) & (raw[mark - 3] == ord(" "))
    if digits.max() > _DIGITS:
        return None
    length = np.where(named, mark - 3, closed) - opened - 1
    found = _names(raw, opened + 1, length)
    if found is None:
        return None
    body, bodies = found
    return Entries(np.searchsorted(lines, opened), body, np.where(named, call, -1), ns, bodies)


def _numbers(raw: _Bytes, end: Integers, back: int) -> tuple[Integers, Integers]:
    """The numbers whose last digit stands `back` before each `end`, and how many digits each has: up to 19."""
    value, size = np.zeros(len(end), np.int64), np.zeros(len(end), np.int64)
    for place in range(_DIGITS + 1):
        digit = raw[np.maximum(end - back - place, 0)].astype(np.int64) - ord("0")
        more = (digit >= 0) & (digit <= 9) & (size == place) & (end - back - place >= 0)
        if not more.any():
            break
        size += more
        if place < _DIGITS:
            value += np.where(more, digit, 0) * 10**place
    return value, size


def _names(raw: _Bytes, start: Integers, length: Integers) -> tuple[Integers, list[str]] | None:
    """Which of the names each is, and the names. A hash tells them apart, and then they are compared."""
    width = -(-max(int(length.max()), 1) // 8) * 8
    if width * len(start) > _WIDEST:
        return None
    places = np.arange(width)
    side = raw[np.minimum(start[:, None] + places, len(raw) - 1)]
    side[places >= length[:, None]] = 0
    words = side.view(np.uint64)
    odd = np.uint64(_ODD) * np.arange(1, 2 * words.shape[1], 2, dtype=np.uint64)
    mixed = (words * odd).sum(1, dtype=np.uint64)
    _, first, which = np.unique(mixed, return_index=True, return_inverse=True)
    if not np.array_equal(words[first][which], words):
        return None
    return which, [side[i, : length[i]].tobytes().decode() for i in first.tolist()]
