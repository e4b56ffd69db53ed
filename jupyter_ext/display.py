"""The static forms of a recording: a plain table in HTML and as text, for saved notebooks, exports, and terminals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyfunc_debug.records import Call, calls_html


def static_forms(shown: Any, panel_id: str | None) -> dict[str, str]:
    """A mime bundle. With a panel, the HTML carries its name, so that the panel hides it while it lives.

    Args:
      shown: A recording, of which the ledger is shown, or a `Source`.
      panel_id: The panel's name.
    """
    table = shown.ledger() if hasattr(shown, "ledger") else shown
    marks = f"pfd-static pfd-static-{panel_id}" if panel_id else "pfd-static"
    return {"text/html": f'<div class="{marks}">{table._repr_html_()}</div>', "text/plain": str(table)}


def lists_of_calls(shell: Any) -> Callable[[], None]:
    """Shows a plain list of calls as a table in HTML; every other list as before.

    Args:
      shell: IPython's shell.

    Returns:
      Puts it back.
    """
    formatter = shell.display_formatter.formatters["text/html"]
    before = formatter.type_printers.get(list)

    def show(items: list[Any]) -> str | None:
        if items and all(type(one) is Call for one in items):
            return calls_html(items)
        found: str | None = before(items) if before is not None else None
        return found

    formatter.for_type(list, show)

    def back() -> None:
        if formatter.type_printers.get(list) is show:
            formatter.pop(list)
            if before is not None:
                formatter.for_type(list, before)

    return back


def has_widgets(shell: Any) -> bool:
    """Whether this shell belongs to a kernel, whose front end may show widgets."""
    return getattr(shell, "kernel", None) is not None
