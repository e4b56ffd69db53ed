"""Tells the panels of a stop: a thread of its own, because a question about a large recording may take seconds.

Only the newest state is sent: it is always the whole state, so what was skipped or lost does not matter.
"""

from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from pyfunc_debug.program.threads import daemon_thread

Json = dict[str, Any]
_GAP_S = 0.01
"""Seconds between two states for each panel, at least: a server drops what exceeds its rate limit."""
_AGAIN_S = 1.0
_log = logging.getLogger("pyfunc_debug")


class Announcer:
    """Sends states of stops to all widgets; `close` ends it.

    Args:
      widgets: The widgets of all panels, at the time of sending.
      again: The state to send once more because no page has acknowledged it, or None.
    """

    def __init__(self, widgets: Callable[[], list[Any]], again: Callable[[], Json | None]) -> None:
        self._widgets = widgets
        self._again = again
        self._states: collections.deque[Json] = collections.deque(maxlen=1)
        self._replies: collections.deque[tuple[Any, Json]] = collections.deque()
        self._wake = threading.Event()
        self._closed = False
        self._sent = 0.0
        self._thread = daemon_thread(self._run, "pyfunc_debug announcer")
        self._thread.start()

    def announce(self, state: Json) -> bool:
        """Sends a state to every panel, soon; False if there is none."""
        self._states.append(state)
        self._wake.set()
        return not self._closed and bool(self._widgets())

    def reply(self, widget: Any, content: Json) -> None:
        """Sends an answer to one panel, soon."""
        self._replies.append((widget, content))
        self._wake.set()

    def close(self) -> None:
        """Ends the thread."""
        self._closed = True
        self._wake.set()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._closed:
            # Nothing to repeat, nothing to do: a state that nobody acknowledged keeps the thread awake.
            self._wake.wait(_AGAIN_S if self._again() is not None else None)
            self._wake.clear()
            try:
                self._send()
            except Exception:
                _log.exception("pyfunc_debug: a stop could not be announced")

    def _send(self) -> None:
        while self._replies:
            widget, content = self._replies.popleft()
            widget.send(content)
        widgets = self._widgets()
        time.sleep(max(0.0, self._sent + _GAP_S * len(widgets) - time.monotonic()))
        try:
            state: Json | None = self._states.pop()
        except IndexError:
            state = self._again() if time.monotonic() - self._sent >= _AGAIN_S else None
        if state is None:
            return
        for widget in widgets:
            widget.send(state)
        self._sent = time.monotonic()
