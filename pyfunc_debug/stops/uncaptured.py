"""The prompt under pytest: the terminal, which its capture has taken away, given back until the call goes on."""

from __future__ import annotations

import os
import sys
from typing import Any

from pyfunc_debug.stops.stop import Stop
from pyfunc_debug.stops.terminal import Terminal


class Uncaptured(Terminal):
    """A `broker.Front` that can answer only while pytest captures what tests print and read."""

    name = "the terminal that pytest captures"

    def __init__(self) -> None:
        super().__init__()
        self._lent: dict[int, Any] = {}  # by stop: the capture that is suspended for it; stops nest

    def can_answer(self, stop: Stop) -> bool:
        """Whether there is a terminal behind the capture."""
        capture = _capture()
        if capture is None:
            return False
        if self._lent:
            return super().can_answer(stop)
        capture.suspend(in_=True)
        try:
            return super().can_answer(stop)
        finally:
            capture.resume()

    def ask(self, stop: Stop, prompt: str) -> str | None:
        self._suspend(stop)
        return super().ask(stop, prompt)

    def tell(self, stop: Stop, text: str) -> None:
        self._suspend(stop)
        super().tell(stop, text)

    def closed(self, stop: Stop) -> None:
        capture = self._lent.pop(id(stop), None)
        if capture is not None and not self._lent:
            capture.resume()

    def _suspend(self, stop: Stop) -> None:
        if id(stop) in self._lent:
            return
        capture = _capture()
        if not self._lent:
            capture.suspend(in_=True)
            super().tell(stop, "\n(pytest captures nothing until this call goes on)\n")
        self._lent[id(stop)] = capture


def _capture() -> Any:
    """The capture manager, if this is a pytest process that captures: as pytest's own debugger finds it."""
    if "PYTEST_XDIST_WORKER" in os.environ:  # it has no terminal
        return None
    debugging = sys.modules.get("_pytest.debugging")
    manager = getattr(getattr(debugging, "pytestPDB", None), "_pluginmanager", None)
    capture = manager.getplugin("capturemanager") if manager is not None else None
    return capture if capture is not None and capture.is_globally_capturing() else None
