"""The panel's filter: which calls of the selected nodes fulfil a condition, found out some at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from pyfunc_debug.analysis.columns import Array
from pyfunc_debug.analysis.filtering import Filter
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Call

AT_ONCE = 2000
"""Calls that one question looks at: the panel asks again for the next ones, and other questions come between."""


class Sieve:
    """Calls that fulfil a condition.

    Args:
      reader: The recording; it may be growing.
      condition: As of a breakpoint.
      nodes: The nodes whose calls are meant; None for all.

    Attributes:
      filter: What judges, and counts what it could not judge.

    Raises:
      BadOptionError: the condition is not a Python expression.
    """

    def __init__(self, reader: Reader, condition: str, nodes: Sequence[int] | None) -> None:
        self.wanted = (condition, nodes)
        self.filter = Filter(reader, condition)
        self._reader = reader
        self._nodes = nodes
        self._last = 0
        self._running: list[int] = []  # when they were looked at
        self._passed: list[int] = []

    def shake(self) -> bool:
        """Looks at some more calls; whether there may be others that were not looked at."""
        again, self._running = self._running, []
        for number in again:
            call = self._reader.call(number)
            if call is not None:
                self._look(call)
        looked = 0
        for call in islice(self._reader.calls(self._nodes, after=self._last), AT_ONCE):
            self._last = call.id
            self._look(call)
            looked += 1
        if looked < AT_ONCE and not self._running:
            self.filter.check()
        return looked == AT_ONCE

    def _look(self, call: Call) -> None:
        if call.status == "running":
            self._running.append(call.id)
        elif self.filter.holds(call):
            self._passed.append(call.id)

    def passed(self) -> Array:
        """Numbers of the calls that passed so far."""
        return np.array(self._passed, np.int64)
