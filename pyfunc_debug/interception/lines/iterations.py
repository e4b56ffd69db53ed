"""Which datasets were iterated when: TensorFlow's profiler says that a function of tf.data ran, but not which one.

An iterator's beginning and end are marked in the profile itself, so that no two clocks need to agree. A function of a
dataset that was not iterated at a time did not run then, whatever its ops are called.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Collection, Iterable
from typing import Any

from pyfunc_debug.interception.graphs.inputs import stages
from pyfunc_debug.interception.names import private
from pyfunc_debug.profiler.xspace import Event

MARK = b"pyfunc_debug iterator "
_MOST = 1000
_FIRST_NS, _LAST_NS = 0, 2**64


class Iterations:
    """Marks iterators that Python makes over datasets.

    Args:
      mark: Makes an event of this name in the profile.
    """

    def __init__(self, mark: Callable[[str], None]) -> None:
        self._mark = mark
        self._numbers = itertools.count()
        self._functions: dict[int, frozenset[str]] = {}
        self._watched: set[weakref.ref[Any]] = set()

    def create_iterator(self, original: Any) -> Any:
        """The replacement of `OwnedIterator._create_iterator`."""

        def _create_iterator(iterator: Any, dataset: Any) -> None:
            number = next(self._numbers)
            if number < _MOST:
                try:
                    self._functions[number] = _functions(dataset)
                    self._mark(f"{MARK.decode()}{number} begins")
                except Exception:  # a dataset of another kind: then nothing is known of its functions
                    self._functions.pop(number, None)
            original(iterator, dataset)
            if number in self._functions:
                self._watched.add(weakref.ref(iterator, lambda reference: self._ended(reference, number)))

        return _create_iterator

    def _ended(self, reference: weakref.ref[Any], number: int) -> None:
        self._watched.discard(reference)
        self._mark(f"{MARK.decode()}{number} ends")

    def spans(self, events: Iterable[Event]) -> Spans:
        """When which functions may have run.

        Args:
          events: The marks that the profile holds.
        """
        return Spans(self._functions, events)


class Spans:
    """Times in which functions may have run, by what the marks in a profile say."""

    def __init__(self, functions: dict[int, frozenset[str]], marks: Iterable[Event]) -> None:
        begins: dict[int, int] = {}
        ends: dict[int, int] = {}
        for event in marks:
            which, _, what = event.name[len(MARK) :].decode().partition(" ")
            (begins if what == "begins" else ends)[int(which)] = event.begin_ns
        self._by_name: dict[str, list[tuple[int, int]]] = {}
        for number, names in functions.items():
            span = begins.get(number, _FIRST_NS), ends.get(number, _LAST_NS)
            for name in names:
                self._by_name.setdefault(name, []).append(span)

    def possible(self, names: Collection[str], at_ns: int) -> bool:
        """Whether a function of one of these names may have run at a time; True for names that are not known."""
        spans = [span for name in names for span in self._by_name.get(name, ())]
        return not spans or any(begin <= at_ns <= end for begin, end in spans)


def _functions(dataset: Any) -> frozenset[str]:
    names = (wrapper.function.name for one in stages(dataset) for wrapper in private.dataset_functions(one))
    return frozenset(name.decode() if isinstance(name, bytes) else str(name) for name in names)
