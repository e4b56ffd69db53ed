"""The live panel as a widget: it shows the bundle, and hands every message of its page to the channel."""

from __future__ import annotations

from importlib import resources
from typing import Any

import anywidget
import traitlets

_STATIC = resources.files(__package__).joinpath("static")


class Panel(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget is not checked here (pyproject)
    """A panel in a notebook. Its data never travel in synced traits: the page asks for what it shows.

    Attributes:
      panel_id: Names this panel in messages on the control channel, and its static form in the page.
      place: What to select first: `{"call": 17}`, `{"node": 3}` or `{"file": ..., "line": 12}`.
    """

    _esm = _STATIC.joinpath("panel.js").read_text(encoding="utf-8")
    _css = _STATIC.joinpath("panel.css").read_text(encoding="utf-8")
    panel_id = traitlets.Unicode().tag(sync=True)
    place = traitlets.Dict().tag(sync=True)

    def __repr__(self) -> str:
        """Nothing: a page without widgets, and a saved notebook, show the static form next to the panel."""
        return ""

    def __init__(self, panel_id: str, place: dict[str, Any] | None = None) -> None:
        super().__init__(panel_id=panel_id, place=place or {})
        self.layout.width = "100%"
        comm: Any = self.comm
        if hasattr(comm, "_reply_subshell_for"):
            # ipykernel 7.4 answers comms that came over a subshell on the main shell: blocked while a cell runs.
            # Private, so looked up first; without it the control channel still works.
            comm._reply_subshell_for = lambda data, default: default  # noqa: SLF001 - ipykernel has no public way
