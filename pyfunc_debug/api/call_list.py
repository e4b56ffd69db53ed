"""Calls that are read as one goes, and still say what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from pyfunc_debug.errors import PyfuncDebugError
from pyfunc_debug.records import Call, items_html

_SHOWN = 10


class Calls(Iterator[Call]):
    """What `Recording.calls` returns: an iterator, one pass. Its reprs read the first calls again and take none.

    Args:
      read: Begins to read them.
      condition: The condition that they fulfil, which may take long: then nothing is read to show them.
    """

    def __init__(self, read: Callable[[], Iterator[Call]], condition: str | None = None) -> None:
        self._read = read
        self._condition = condition
        self._rest: Iterator[Call] | None = None

    def __next__(self) -> Call:
        if self._rest is None:
            self._rest = self._read()
        return next(self._rest)

    def _first(self) -> list[Call] | None:
        """The first calls, and one more; None where they cannot be read now."""
        try:
            return None if self._condition is not None else list(islice(self._read(), _SHOWN + 1))
        except PyfuncDebugError:
            return None

    def __repr__(self) -> str:
        first = self._first()
        if first is None:
            which = "" if self._condition is None else f" with {self._condition}"
            return f"<calls{which}; list() reads them>"
        if not first:
            return "<no calls>"
        lines = [repr(call) for call in first[:_SHOWN]]
        return "\n".join([*lines, "and more: list() reads them all"] if len(first) > _SHOWN else lines)

    def _repr_html_(self) -> str | None:
        first = self._first()
        if not first:
            return None
        more = "<p>and more: list() reads them all</p>" if len(first) > _SHOWN else ""
        return f"{items_html(first[:_SHOWN])}{more}"
