"""In which of the user's lines bodies were seen at work: their stacks, looked at some times a second.

A thread that asks Python where all threads stand. C code that holds the GIL cannot be seen inside; when it lets it go,
its thread still stands in the line that called it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from pyfunc_debug.events import Notice
from pyfunc_debug.program.looks import Looks
from pyfunc_debug.program.waiting import Place, bodies_at_work

BETWEEN_S = 0.05
_LEAST = 8
"""Looks at a body from which shares say something."""
_SHOWN = 5
_MOST = 500
"""Bodies that are kept apart."""


class SeenLines:
    """Counts lines by the bodies that were in them.

    Args:
      notice: Tells the recording: rule, token, call, facts.
      trouble: What an exception is given to, with what was done.
    """

    def __init__(self, notice: Callable[..., None], trouble: Callable[[str, BaseException], None]) -> None:
        self._notice = notice
        self._seen: dict[Place, Counter[tuple[str, int]]] = {}
        self._looks = Looks("lines", BETWEEN_S, self.look, lambda error: trouble("looking at bodies at work", error))

    def start(self) -> None:
        """Begins to look."""
        self._looks.start()

    def stop(self) -> None:
        """Stops looking, and notes for each body that was seen often in which lines it was."""
        self._looks.stop()
        for body, lines in self._seen.items():
            looks = sum(lines.values())
            if looks >= _LEAST:
                self._notice(Notice.SEEN_LINES, None, None, **_facts(body, looks, lines))

    def look(self) -> None:
        """Looks once."""
        for body, line in bodies_at_work():
            if body in self._seen or len(self._seen) < _MOST:
                self._seen.setdefault(body, Counter())[line] += 1


def _facts(body: Place, looks: int, lines: Counter[tuple[str, int]]) -> dict[str, Any]:
    shown = [[file, line, count] for (file, line), count in lines.most_common(_SHOWN)]
    return {"file": body[0], "line": body[1], "looks": looks, "lines": shown}
