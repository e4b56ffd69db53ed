"""What bodies returned before TensorFlow converted it: one entry for each node and each kind of return.

Not every call is looked at (interception/returns.py). Where there is something to convert, the conversion is timed, and
its result compared with the body's own value.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from time import monotonic_ns
from typing import Any

import numpy as np

from pyfunc_debug.recorder.casts import Cast, cast

_ITEMS = 8
"""How many values of a list are distinguished by their types."""
_MOST = 5000
"""How many kinds are kept in a recording."""
_PYTHON = (list, tuple, dict, set, int, float, bool, complex, str, bytes)


_NO_SAMPLES: list[tuple[int, int, list[Cast]]] = []
_NO_CASTS: dict[int, Cast] = {}


class Kind:
    """What some calls of a node returned alike.

    Attributes:
      number: In the recording, from 1.
      token: The node's.
      first: The number of the first call.
      calls: How many there were, of those that were looked at.
      shown: What it is, in words.
      values: How many values, where it is a list or tuple; else None.
      declared: The dtypes that `Tout` says; None where the kernel compares them.
      dtypes: Those that the first values bring along; None for Python's own numbers.
      timed: Whether there is something to convert.
      sampled, convert_ns: How many conversions were timed, and how long they took together.
      casts: By position, the worst difference between the body's value and the tensor.
      written: How many calls its row in the file counts; None without one.
    """

    __slots__ = (
        "_count", "_samples", "calls", "casts", "convert_ns", "declared", "dtypes", "first", "number", "sampled",
        "shown", "timed", "token", "values", "written",
    )  # fmt: skip

    def __init__(self, number: int, token: str, first: int, value: Any, declared: Any) -> None:
        self.number = number
        self.token = token
        self.first = first
        many = isinstance(value, (list, tuple))
        items = value if many else (value,)
        self.shown = shown(value)
        self.values = len(items) if many else None
        self.declared = None if declared is None else tuple(_dtype_name(one) for one in _listed(declared))
        self.dtypes = tuple(_own_dtype(one) for one in items[:_ITEMS])
        wanted = self.declared or ()
        self.timed = any(_is_python(one) for one in items[:_ITEMS]) or any(
            own is not None and own != to for own, to in zip(self.dtypes, wanted)
        )
        self._count = itertools.count(1)
        # Most kinds have nothing to convert, and thousands of nodes have a kind each.
        self._samples: list[tuple[int, int, list[Cast]]] = [] if self.timed else _NO_SAMPLES
        self.casts: dict[int, Cast] = {} if self.timed else _NO_CASTS
        self.calls = self.sampled = self.convert_ns = 0
        self.written: int | None = None

    def seen(self) -> bool:
        """Counts a call; whether its conversion is to be timed and compared."""
        self.calls = next(self._count)
        return self.timed

    @property
    def waiting(self) -> bool:
        """Whether there are samples that were not added up."""
        return bool(self._samples)

    def sample(self, call: int, took_ns: int, found: list[Cast]) -> None:
        """Notes a conversion; any thread may."""
        self._samples.append((call, took_ns, found))

    def add_up(self) -> None:
        """Adds the samples up; for the writer's thread."""
        while self._samples:
            _, took_ns, found = self._samples.pop(0)
            self.sampled += 1
            self.convert_ns += took_ns
            for one in found:
                before = self.casts.get(one.position)
                self.casts[one.position] = one if before is None else before.worse(one)


class Returns:
    """All kinds of a recording.

    Attributes:
      first_calls: Numbers of the calls that first returned each.
    """

    def __init__(self) -> None:
        self.first_calls: set[int] = set()
        self._kinds: dict[Any, Kind] = {}

    def returned(self, token: str, call: int, value: Any, declared: Any) -> Any:
        """Counts a return.

        Args:
          token: Of the node.
          call: Its number.
          value: The body's own.
          declared: dtypes, or None.

        Returns:
          What `converted` takes; None where there is nothing to convert.
        """
        key = (token, _key(value))
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= _MOST:
                return None
            kind = self._kinds.setdefault(key, Kind(len(self._kinds) + 1, token, call, value, declared))
            self.first_calls.add(call)
        return (kind, call, value, monotonic_ns()) if kind.seen() else None

    def converted(self, found: Any, outputs: Any) -> None:
        """Notes what TensorFlow made of a sampled value."""
        kind, call, value, began_ns = found
        took_ns = monotonic_ns() - began_ns
        made: list[Cast] = []
        if kind.declared is not None:
            items = value if isinstance(value, (list, tuple)) else [value]
            tensors = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            for position, (own, tensor, dtype) in enumerate(zip(items, tensors, kind.declared)):
                if position >= len(kind.dtypes):
                    break
                plain = type(own) is int and dtype not in ("int64", "float64")
                if plain or kind.dtypes[position] not in (None, dtype):
                    one = cast(position, np.asarray(own), tensor, call)
                    if one is not None:
                        made.append(one)
        kind.sample(call, took_ns, made)

    def changed(self) -> Iterator[Kind]:
        """The kinds whose rows are not what is known by now; for the writer's thread."""
        for kind in list(self._kinds.values()):
            if kind.written != kind.calls or kind.waiting:
                yield kind


def _key(value: Any) -> Any:
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype
    if kind is list or kind is tuple:
        return (kind, len(value), *map(_item_key, value[:_ITEMS]))
    return kind


def _item_key(value: Any) -> Any:
    return value.dtype if type(value) is np.ndarray else type(value)


def _is_python(value: Any) -> bool:
    return isinstance(value, _PYTHON) and not isinstance(value, np.generic)


def _listed(declared: Any) -> list[Any]:
    return list(declared) if isinstance(declared, (list, tuple)) else [declared]


def _dtype_name(dtype: Any) -> str:
    name = getattr(dtype, "name", None) or getattr(getattr(dtype, "dtype", None), "name", None)
    try:
        return str(name or np.dtype(dtype).name)
    except TypeError:  # TensorFlow does not take it either, and says so
        return str(dtype)


def _own_dtype(value: Any) -> str | None:
    """The dtype that a value brings along; None for Python's own, which take any."""
    if isinstance(value, (np.ndarray, np.generic)):
        return "string" if value.dtype.kind in "SUO" else str(value.dtype.name)
    return None


def shown(value: Any) -> str:
    """`float64 array`, `tuple of 3: float64 array, int, str`, `list of 1000 float`."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name} array"
    if isinstance(value, (list, tuple)):
        kinds = [shown(one) for one in value[:_ITEMS]]
        same = len(set(kinds)) == 1
        inside = kinds[0] if same and kinds else ", ".join(kinds)
        more = ", ..." if len(value) > _ITEMS and not same else ""
        return f"{type(value).__name__} of {len(value)}{':' if not same and kinds else ''} {inside}{more}".rstrip()
    if type(value).__name__ == "EagerTensor":
        return f"{value.dtype.name} tensor"
    return "None" if value is None else type(value).__name__
