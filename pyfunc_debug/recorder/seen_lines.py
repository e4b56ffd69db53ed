"""In which of the user's lines bodies were seen at work: their stacks, looked at some times a second.

A thread that asks Python where all threads stand. It has to wait for the GIL. Where a body was, it finds if nobody had
the GIL, or if it was taken from its holder after the switch interval: those looks are sure. In between it gets the GIL
where a line lets it go by itself, and finds such lines more often than their time. Looks that find several bodies, of
which all but one may only wait for the GIL, find no line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyfunc_debug.events import Notice
from pyfunc_debug.program.looks import Looks
from pyfunc_debug.program.waiting import Place, bodies_at_work

BETWEEN_S = 0.05
_LEAST = 8
"""Looks at a body from which shares say something."""
_AT_ONCE_S = 0.0005
"""A look that comes no later than this had not to wait for the GIL."""
_SHOWN = 3
_MOST = 500
"""Bodies that are kept apart."""


@dataclass
class _Line:
    """A line that a body was seen in: looks, and the seconds that these stand for, each since the look before it."""

    looks: int = 0
    seconds: float = 0.0
    sure_s: float = 0.0


@dataclass
class _Body:
    looks: int = 0
    seconds: float = 0.0
    lines: dict[Place, _Line] = field(default_factory=dict)


class SeenLines:
    """Counts lines by the bodies that were in them.

    Args:
      notice: Tells the recording: rule, token, call, facts.
      trouble: What an exception is given to, with what was done.
    """

    def __init__(self, notice: Callable[..., None], trouble: Callable[[str, BaseException], None]) -> None:
        self._notice = notice
        self._seen: dict[Place, _Body] = {}
        self._looked = time.monotonic()
        self._looks = Looks("lines", BETWEEN_S, self.look, lambda error: trouble("looking at bodies at work", error))

    def start(self) -> None:
        """Begins to look."""
        self._looks.start()

    def stop(self) -> None:
        """Stops looking, and notes for each body that was seen often in which lines it was."""
        self._looks.stop()
        for place, body in self._seen.items():
            if body.looks >= _LEAST and body.lines:
                self._notice(Notice.SEEN_LINES, None, None, **_facts(place, body))

    def look(self) -> None:
        """Looks once."""
        now = time.monotonic()
        passed, self._looked = now - self._looked, now
        late = passed - BETWEEN_S
        found = bodies_at_work()
        for place, line in found:
            if place not in self._seen and len(self._seen) >= _MOST:
                continue
            body = self._seen.setdefault(place, _Body())
            body.looks += 1
            body.seconds += passed
            if len(found) == 1:
                one = body.lines.setdefault(line, _Line())
                one.looks += 1
                one.seconds += passed
                one.sure_s += passed if late < _AT_ONCE_S or late >= sys.getswitchinterval() else 0.0


def _facts(place: Place, body: _Body) -> dict[str, Any]:
    most = sorted(body.lines.items(), key=lambda one: -one[1].seconds)[:_SHOWN]
    lines = [[*line, one.looks, round(one.seconds, 3), round(one.sure_s, 3)] for line, one in most]
    return {"file": place[0], "line": place[1], "looks": body.looks, "seconds": round(body.seconds, 3), "lines": lines}
