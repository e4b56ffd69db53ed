"""`Session.run` of TensorFlow 1: what is looked at before it, and of what it gives."""

from __future__ import annotations

import sys
import time
from typing import Any

from pyfunc_debug.events import Observer
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.finite import NotFinite
from pyfunc_debug.interception.gradients.minimized import Minimized
from pyfunc_debug.interception.graphs.grown_graphs import GrownGraphs
from pyfunc_debug.interception.graphs.session_lines import SessionLines


class SessionRuns:
    """Watches sessions.

    Attributes:
      lines: The lines that run sessions.

    Args:
      observer: Gets the notices.
      finite: Looks at the losses that a run gives.
      minimized: Looks for what a run's step does not train.
    """

    def __init__(self, observer: Observer, finite: NotFinite, minimized: Minimized) -> None:
        self._observer = observer
        self._grown = GrownGraphs(observer)
        self._finite = finite
        self._minimized = minimized
        self.lines = SessionLines(observer)

    def session_run(self, original: Any) -> Any:
        """The replacement of `BaseSession.run`."""

        def run(session: Any, fetches: Any, *args: Any, **options: Any) -> Any:
            try:
                self._grown.look(session.graph)
            except Exception as error:
                self._observer.trouble("looking at a session's graph", error)
            begun = time.monotonic_ns()
            try:
                found = original(session, fetches, *args, **options)
            except BaseException as error:
                drop_our_frame(error)
                raise
            ended = time.monotonic_ns()
            try:
                fed = args[0] if args else options.get("feed_dict")
                self.lines.ran(session.graph, fetches, fed, (begun, ended))
                self._finite.fetched(session.graph, fetches, found, sys._getframe(1))
                self._minimized.fetched(session.graph, fetches)
            except Exception as error:
                self._observer.trouble("looking at what a session gave", error)
            return found

        return run
