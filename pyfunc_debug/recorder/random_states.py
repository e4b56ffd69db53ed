"""The random state that each body began with, noted in front of its call where a recording was asked for it."""

from __future__ import annotations

from pyfunc_debug.program.random_state import RandomState, read

_SMALL = 600
"""Bytes that a state takes in memory whose words are those of the one before."""


class RandomStates:
    """Those of calls that were not stored yet, by number."""

    def __init__(self) -> None:
        self._noted: dict[int, RandomState | None] = {}
        self._words: tuple[bytes, bytes | None] = (b"", None)

    def note(self, call: int, room: int) -> int:
        """Notes the state for a call that begins now.

        Args:
          call: Its number.
          room: How many bytes there is room for; where it takes more, only that it was left out is noted.

        Returns:
          The bytes that it keeps alive.
        """
        state, words = read(), self._words
        size = _SMALL
        python, numpy = words
        if state.python != python:
            python, size = state.python, size + len(state.python)
        if state.numpy is not None and state.numpy != numpy:
            numpy, size = state.numpy, size + len(state.numpy)
        if size > room:
            self._noted[call] = None
            return 0
        self._words = python, numpy
        self._noted[call] = RandomState(python, None if state.numpy is None else numpy, state.facts)
        return size

    def __contains__(self, call: int) -> bool:
        return call in self._noted

    def take(self, call: int) -> RandomState | None:
        """The state of a call, which is forgotten; None where none was noted."""
        return self._noted.pop(call, None)
