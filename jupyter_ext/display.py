"""The static forms of a recording: a plain table in HTML and as text, for saved notebooks, exports, and terminals."""

from __future__ import annotations

from typing import Any


def static_forms(shown: Any, panel_id: str | None) -> dict[str, str]:
    """A mime bundle. With a panel, the HTML carries its name, so that the panel hides it while it lives.

    Args:
      shown: A recording, of which the ledger is shown, or a `Source`.
      panel_id: The panel's name.
    """
    table = shown.ledger() if hasattr(shown, "ledger") else shown
    marks = f"pfd-static pfd-static-{panel_id}" if panel_id else "pfd-static"
    return {"text/html": f'<div class="{marks}">{table._repr_html_()}</div>', "text/plain": str(table)}


def has_widgets(shell: Any) -> bool:
    """Whether this shell belongs to a kernel, whose front end may show widgets."""
    return getattr(shell, "kernel", None) is not None
