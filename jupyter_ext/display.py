"""The static forms of a recording: a plain table in HTML and as text, for saved notebooks, exports, and terminals."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from pyfunc_debug.records import Finding, items_html

_log = logging.getLogger(__name__)
_MOST_FINDINGS = 5
_ALL_FINDINGS = "%pyfunc_doctor"


def static_forms(shown: Any, panel_id: str | None, findings: Sequence[Finding] = ()) -> dict[str, str]:
    """A mime bundle. With a panel, the HTML carries its name, so that the panel hides it while it lives.

    Args:
      shown: A recording, of which the ledger is shown, or a `Source`.
      panel_id: The panel's name.
      findings: What stands below it: the most important ones, and how to read the others.
    """
    from pyfunc_debug.analysis.tables import ledger_html, ledger_text
    from pyfunc_debug.doctor.text import findings_html, findings_text

    if hasattr(shown, "ledger"):
        ledger = shown.ledger()
        table, text = ledger_html(ledger, short=True), ledger_text(ledger, explained=bool(findings), short=True)
    else:
        table, text = shown._repr_html_(), str(shown)
    table += findings_html(findings, _MOST_FINDINGS, _ALL_FINDINGS)
    text = "\n\n".join(filter(None, (text, findings_text(findings, most=_MOST_FINDINGS, all_of_them=_ALL_FINDINGS))))
    marks = f"pfd-static pfd-static-{panel_id}" if panel_id else "pfd-static"
    return {"text/html": f'<div class="{marks}">{table}</div>', "text/plain": text}


def findings_unasked(recording: Any) -> list[Finding]:
    """What the doctor says as a recording ends, without what stood under the traceback already.

    Nothing where it is interrupted or fails: the recording is shown all the same.
    """
    try:
        return [one for one in recording.findings(front="notebook") if one != recording.explained]
    except KeyboardInterrupt:
        return []
    except Exception:
        _log.exception("pyfunc_debug: the doctor failed")
        return []


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
