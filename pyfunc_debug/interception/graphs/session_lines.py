"""Lines of the user's that run sessions of TensorFlow 1: what they need of Python, whether they train, and when."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.interception.graphs.fetched import Fetched, fetched
from pyfunc_debug.program.frames import Site, own_caller

_MOST = 100
"""Of a graph: different fetches that are looked at, at different lines."""
_FETCHES = 50
_NAMES = 8
_SPANS = 500
"""Runs of which the times are kept between two notices."""
_MOST_RUNS = 20_000
"""From here on, a line's runs are counted only."""


class _Line:
    """A line with what it fetches.

    Attributes:
      site: The line.
      names: Of what it fetches.
      needs: What that needs.
      runs: How many there were.
      spans: Begin and end of those that were not told yet.
    """

    def __init__(self, site: Site, names: tuple[str, ...], needs: Fetched) -> None:
        self.site = site
        self.names = names
        self.needs = needs
        self.runs = 0
        self.spans: list[tuple[int, int]] = []


_Key = tuple[Site, tuple[str, ...], tuple[str, ...]]


class SessionLines:
    """Watches sessions whose graphs have nodes: a run costs some 10 us.

    Args:
      observer: Gets the notices.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._lock = threading.Lock()
        self._graphs: weakref.WeakKeyDictionary[Any, dict[_Key, _Line | None]] = weakref.WeakKeyDictionary()
        self._lines: list[_Line] = []

    def ran(self, graph: Any, fetches: Any, fed: Any, span: tuple[int, int]) -> None:
        """A session ran a graph."""
        site = own_caller()
        if site is None:  # a thread of TensorFlow's that fills a queue
            return
        names = tuple(_names(fetches))
        given = tuple(str(getattr(one, "name", one)) for one in fed) if isinstance(fed, dict) else ()
        known = self._graphs.get(graph)
        if known is None:
            known = self._graphs[graph] = {}
        key = (site, names, given)
        if key not in known:
            if len(known) >= _MOST or len(names) > _FETCHES:
                return
            known[key] = None  # also where that fails
            known[key] = self._line(graph, site, names, given)
        line = known[key]
        if line is None or line.runs >= _MOST_RUNS:
            return
        with self._lock:
            line.runs += 1
            line.spans.append(span)
            full = len(line.spans) >= _SPANS
        if full:
            self._tell(line)

    def tell(self) -> None:
        """Notices what was not told yet."""
        for line in self._lines:
            if line.spans:
                self._tell(line)

    def _line(self, graph: Any, site: Site, names: tuple[str, ...], given: tuple[str, ...]) -> _Line | None:
        """What a line needs; None where that is nothing of Python's."""
        try:
            needs = fetched(graph, names, frozenset(given))
        except (KeyError, ValueError):  # a name of no op, as of what has parts of a kind that is not known
            return None
        if not needs.nodes and not needs.sources:
            return None
        line = _Line(site, names, needs)
        self._lines.append(line)
        return line

    def _tell(self, line: _Line) -> None:
        with self._lock:
            spans, line.spans = line.spans, []
        needs, (file, number, function) = line.needs, line.site
        self._observer.notice(
            Notice.SESSION_RUNS, None, None, file=file, line=number, function=function,
            fetches=list(line.names[:_NAMES]), trains=needs.trains, changes=needs.changes, variables=needs.variables,
            elements=needs.elements, nodes=[[token, late] for token, late in needs.nodes.items()],
            read=[{"ways": parts, "kinds": kinds} for parts, kinds in needs.sources],
            spans=[list(one) for one in spans], sources=[file],
        )  # fmt: skip


def _names(fetches: Any) -> Iterator[str]:
    """Names of what is fetched, of the parts of sparse tensors, too."""
    if isinstance(fetches, (list, tuple)):
        for one in fetches:
            yield from _names(one)
    elif isinstance(fetches, dict):
        for one in fetches.values():
            yield from _names(one)
    elif hasattr(fetches, "dense_shape") and hasattr(fetches, "values"):
        yield str(fetches.values.name)
    elif fetches is not None:
        yield str(getattr(fetches, "name", fetches))
