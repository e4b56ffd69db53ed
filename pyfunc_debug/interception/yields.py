"""What generators yield, before TensorFlow converts it: whether whole numbers that are declared cut fractions.

`Dataset.from_generator` asks for the iterator of a pass each time that it takes an element. For the first elements it
gets that iterator inside a `map` of Python's, which adds no frame to a traceback, and then what it had before.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.names import private

FIRST = 8
"""How many elements of a generator are looked at."""
_MOST = 4096
"""How many numbers of one array are compared; and from how many generators on those are forgotten that are gone."""


class Yields:
    """Looks at the first elements of generators, and tells the observer of fractions that are cut.

    Args:
      observer: Who is notified.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._watched: list[weakref.ref[Any]] = []

    def watch(self, token: str, state: Any, dtypes: Sequence[str]) -> None:
        """Looks at what a generator yields from now on, if some of it is to be whole numbers.

        Args:
          token: That of the node which takes the elements.
          state: What TensorFlow's nodes of the generator share.
          dtypes: What is declared, flat.
        """
        whole = [at for at, dtype in enumerate(dtypes) if dtype.startswith(("int", "uint"))]
        if whole and private.GET_ITERATOR not in vars(state):
            held = weakref.ref(state)  # no cycle, which would keep what the generator holds
            if len(self._watched) >= _MOST:
                self._watched = [one for one in self._watched if one() is not None]
            self._watched.append(held)
            setattr(state, private.GET_ITERATOR, self._asking(token, held, list(dtypes), whole))

    def stop(self) -> None:
        """Gives generators back what they had."""
        for held in self._watched:
            _restore(held())
        self._watched.clear()

    def _asking(self, token: str, held: weakref.ref[Any], dtypes: list[str], whole: list[int]) -> Any:
        """What a state has in the place of its method for the first elements."""
        seen, observer = [0], self._observer

        def note(value: Any) -> Any:
            try:
                seen[0] += 1
                if seen[0] >= FIRST:
                    _restore(held())
                if seen[0] <= FIRST:
                    for at, source, own in _cut(value, len(dtypes), whole):
                        observer.notice(
                            Notice.CUT_ELEMENT, token, None, element=seen[0], position=at, source=source,
                            target=dtypes[at], own=own,
                        )  # fmt: skip
            except Exception as error:
                observer.trouble("looking at what a generator yields", error)
            return value

        def get_iterator(iterator_id: Any) -> Any:
            state = held()
            try:
                iterator = getattr(type(state), private.GET_ITERATOR)(state, iterator_id)
            except BaseException as error:
                drop_our_frame(error)
                raise
            return map(note, iterator)

        return get_iterator


def _restore(state: Any) -> None:
    if state is not None:
        vars(state).pop(private.GET_ITERATOR, None)


def _cut(value: Any, count: int, whole: list[int]) -> list[tuple[int, str, float]]:
    """Places of an element that have a fraction and are to be whole numbers, what they are, and the first fraction."""
    parts: Sequence[Any] = [value]
    if isinstance(value, (tuple, list)) and len(value) == count > 1:
        parts = value
    elif type(value) is dict and len(value) == count and all(type(key) is str for key in value):
        parts = [value[key] for key in sorted(value)]
    elif type(value) is tuple and len(value) == count == 1:
        parts = value
    if len(parts) != count:
        return []
    return [(at, *found) for at in whole if (found := _fraction(parts[at])) is not None]


def _fraction(part: Any) -> tuple[str, float] | None:
    """The first number with a fraction, and its type; None where there is none, or it is not known."""
    if type(part) is float:
        return None if part.is_integer() or part - part != 0 else ("float", part)
    if type(part) in (list, tuple):
        fractions = (one for one in part[:_MOST] if type(one) is float and one - one == 0 and not one.is_integer())
        first = next(fractions, None)
        return None if first is None else ("float", first)
    dtype = getattr(part, "dtype", None)
    if type(part).__module__ != "numpy" or getattr(dtype, "kind", "") != "f":
        return None
    import numpy as np

    flat = np.atleast_1d(part).flat[:_MOST]
    cut = flat[np.isfinite(flat) & (flat != np.trunc(flat))]
    return (str(dtype), float(cut[0])) if len(cut) else None
