"""A table by numbers that count up, which knows the newest of them only: its memory does not grow.

A dict of which the oldest entry is removed for each new one costs more the larger it is: Python looks for the oldest
from the beginning, past all that were removed before it (60 us an entry at 200,000).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Generic, TypeVar

_Value = TypeVar("_Value")
_Default = TypeVar("_Default")

ROOM = 1 << 17
"""Entries that a table has room for where nothing else is said: 2 MB."""
_FEW = 1024


class Newest(Generic[_Value]):
    """What is known by number; a new number takes the place of the one that is `room` smaller. For one thread.

    Args:
      room: How many entries there are at most. It begins with room for few: a recording has several tables.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._most = room
        while room > _FEW and room % 2 == 0:
            room //= 2
        self._empty(room)

    def _empty(self, room: int) -> None:
        self._room = room
        self._numbers = array("q", [-1]) * room
        self._values: list[_Value | None] = [None] * room

    def __setitem__(self, number: int, value: _Value) -> None:
        place = number % self._room
        while self._room < self._most and self._numbers[place] not in (-1, number):
            numbers, values = self._numbers, self._values
            self._empty(self._room * 2)
            for known, its in zip(numbers, values):
                if known != -1:
                    self._numbers[known % self._room], self._values[known % self._room] = known, its
            place = number % self._room
        self._numbers[place] = number
        self._values[place] = value

    def __contains__(self, number: int) -> bool:
        return self._numbers[number % self._room] == number

    def update(self, pairs: Iterable[tuple[int, _Value]]) -> None:
        """Takes several."""
        for number, value in pairs:
            self[number] = value

    def get(self, number: int, default: _Default) -> _Value | _Default:
        """What is known of a number, or `default`."""
        place = number % self._room
        return self._values[place] if self._numbers[place] == number else default  # type: ignore[return-value] # is set

    def pop(self, number: int, default: _Default) -> _Value | _Default:
        """The same, and forgets it."""
        found = self.get(number, default)
        if number in self:
            place = number % self._room
            self._numbers[place], self._values[place] = -1, None
        return found
