"""The static forms of a recording: a plain table in HTML and as text, for saved notebooks, exports, and terminals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyfunc_debug.records import items_html


def static_forms(shown: Any, panel_id: str | None) -> dict[str, str]:
    """A mime bundle. With a panel, the HTML carries its name, so that the panel hides it while it lives.

    Args:
      shown: A recording, of which the ledger is shown, or a `Source`.
      panel_id: The panel's name.
    """
    from pyfunc_debug.analysis.tables import ledger_html, ledger_text

    if hasattr(shown, "ledger"):
        ledger = shown.ledger()
        table, text = ledger_html(ledger, short=True), ledger_text(ledger, short=True)
    else:
        table, text = shown._repr_html_(), str(shown)
    marks = f"pfd-static pfd-static-{panel_id}" if panel_id else "pfd-static"
    return {"text/html": f'<div class="{marks}">{table}</div>', "text/plain": text}


def lists_of_ours(shell: Any) -> Callable[[], None]:
    """Shows a plain list or tuple of calls, values or findings as a table in HTML; every other one as before.

    Args:
      shell: IPython's shell.

    Returns:
      Puts it back.
    """
    formatter = shell.display_formatter.formatters["text/html"]
    backs = [_show_items(formatter, kind) for kind in (list, tuple)]

    def back() -> None:
        for one in backs:
            one()

    return back


def _show_items(formatter: Any, kind: type[Any]) -> Callable[[], None]:
    before = formatter.type_printers.get(kind)

    def show(items: Any) -> str | None:
        if type(items) is kind and (table := items_html(items)) is not None:
            return table
        # IPython asks us for subclasses too, before their own method.
        printer = before if before is not None else getattr(type(items), formatter.print_method, None)
        found: str | None = printer(items) if printer is not None else None
        return found

    formatter.for_type(kind, show)

    def back() -> None:
        if formatter.type_printers.get(kind) is show:
            formatter.pop(kind)
            if before is not None:
                formatter.for_type(kind, before)

    return back


def has_widgets(shell: Any) -> bool:
    """Whether this shell belongs to a kernel, whose front end may show widgets."""
    return getattr(shell, "kernel", None) is not None
