"""What conditions may call besides the body's own names: `nan(x)`, `inf(x)`, `shape(x)`, `changed(x)`.

The same functions serve breakpoints, which see a call's live values, and filters over a recording, which see what was
kept of them (analysis/kept_values.py). NumPy is imported when one is called: `%load_ext pyfunc_debug` imports this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Kept(Protocol):
    """A value of a recorded call: it answers from what was kept of it."""

    def count(self, what: str) -> int:
        """How many elements are "nan" or "inf"."""

    def content(self) -> Hashable:
        """Something that is equal for equal elements of one dtype and shape."""


def nan(*values: Any) -> int:
    """How many elements are NaN, in tensors, arrays, numbers and in lists, tuples and dicts of them."""
    return sum(_count("nan", leaf) for value in values for leaf in _leaves(value))


def inf(*values: Any) -> int:
    """How many elements are infinite; of the same."""
    return sum(_count("inf", leaf) for value in values for leaf in _leaves(value))


def shape(value: Any) -> tuple[int | None, ...]:
    """The shape as a tuple; a dimension is None where a ragged tensor has none."""
    import numpy as np

    return tuple(np.shape(value) if not hasattr(value, "shape") else value.shape)


class Changes:
    """`changed(x)`: whether a value is another than when it was asked before, for the same node; not the first time."""

    def __init__(self) -> None:
        self._before: dict[tuple[Hashable, int], Hashable] = {}
        self._lock = threading.Lock()  # never held while user code runs

    def of(self, node: Hashable) -> Callable[[Any, int], bool]:
        """`changed` as one node's condition calls it: with the number of the place in the expression."""

        def changed(value: Any, place: int) -> bool:
            now = _content(value)
            with self._lock:
                first = (node, place) not in self._before
                before = self._before.get((node, place))
                self._before[node, place] = now
            return not first and before != now

        return changed


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Kept):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _leaves(one)
    elif hasattr(value, "flat_values"):  # a ragged tensor
        yield value.flat_values
    elif hasattr(value, "indices") and hasattr(value, "values"):  # a sparse one
        yield value.values
    else:
        yield value


def _count(what: str, leaf: Any) -> int:
    if isinstance(leaf, Kept):
        return leaf.count(what)
    import numpy as np

    array = np.asarray(leaf)
    if array.dtype.kind == "V":  # bfloat16, float8
        array = array.astype(np.float32)
    test = np.isnan if what == "nan" else np.isinf
    return int(test(array).sum()) if array.dtype.kind in "fc" else 0


def _content(value: Any) -> Hashable:
    if isinstance(value, Kept):
        return value.content()
    if isinstance(value, (list, tuple)):
        return tuple(map(_content, value))
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return value
    import numpy as np

    from pyfunc_debug.values.digest import digest_of

    parts = [np.asarray(leaf) for leaf in _leaves(value)]
    digests = [digest_of(part) for part in parts]
    if None in digests:
        raise TypeError(
            f"changed() cannot compare {type(value).__name__} of {sum(part.nbytes for part in parts):,} bytes"
        )
    return tuple((str(part.dtype), part.shape, digest) for part, digest in zip(parts, digests))
