"""Answers that were given beforehand: for scripts, tests, and pages that show what a prompt says."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from pyfunc_debug.stops.stop import Stop


class Script:
    """A `broker.Front` whose lines are given.

    Args:
      lines: Command lines, one for each prompt. When they have been used up, calls go on.
    """

    reads_pdbrc = False
    name = "the prepared answers"
    prepared = True

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = deque(lines)
        self._texts: list[str] = []

    @property
    def left(self) -> list[str]:
        """Lines that no prompt has asked for yet."""
        return list(self._lines)

    @property
    def text(self) -> str:
        """The dialogue so far, with the lines as they would have been typed."""
        return "".join(self._texts)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def can_answer(self, stop: Stop) -> bool:
        """While there are lines."""
        return bool(self._lines)

    def ask(self, stop: Stop, prompt: str) -> str | None:
        line = self._lines.popleft() if self._lines else None
        self.tell(stop, f"{prompt}{line if line is not None else ''}\n")
        return line

    def tell(self, stop: Stop, text: str) -> None:
        self._texts.append(text)

    def closed(self, stop: Stop) -> None: ...

    def wake(self, stop: Stop) -> None: ...
