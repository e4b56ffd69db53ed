"""Graphs of TensorFlow 1 that a program makes larger each time it runs them: `session.run(iterator.get_next())`."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.program.frames import Site, caller, user_frames

_FIRST = 20
"""Runs of a line that found new ops, before that is said; then each time these are twice as many."""
_MOST_OPS = 200


class _Grown:
    """A graph that sessions have run.

    Attributes:
      version: How many ops it had in the last run.
      lines: For lines that ran it when it had grown, how often, and how many ops there were more together.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self.lines: dict[Site, list[int]] = {}


class GrownGraphs:
    """Watches sessions: a run of a graph that has not grown costs a look at a number.

    Args:
      observer: Gets the notices.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._graphs: weakref.WeakKeyDictionary[Any, _Grown] = weakref.WeakKeyDictionary()

    def look(self, graph: Any) -> None:
        """Looks at a graph that a session is about to run."""
        version, known = graph.version, self._graphs.get(graph)
        if known is None:
            self._graphs[graph] = _Grown(version)
            return
        more, known.version = version - known.version, version
        if more <= 0:
            return
        site = caller()
        if site is None:
            return
        counted = known.lines.setdefault(site, [0, 0])
        counted[0] += 1
        counted[1] += more
        times = counted[0] // _FIRST
        if counted[0] % _FIRST == 0 and times & (times - 1) == 0:
            self._tell(graph, site, more, *counted)

    def _tell(self, graph: Any, site: Site, more: int, times: int, together: int) -> None:
        """Notices which of the user's lines made the newest ops: of each, the frame in the function that runs them."""
        every = graph.get_operations()
        made: Counter[tuple[str, int]] = Counter()
        for op in every[-min(more, _MOST_OPS) :]:
            frames = user_frames(op.traceback or ())
            own = [one for one in frames if (one.file, one.function) == (site[0], site[2])]
            for one in (own or frames)[-1:]:
                made[one.file, one.line] += 1
        self._observer.notice(
            Notice.GROWN_GRAPH, None, None, file=site[0], line=site[1], times=times, together=together, ops=len(every),
            made=[[*place, count] for place, count in made.most_common()],
            sources=sorted({site[0], *(file for file, _ in made)}),
        )  # fmt: skip
