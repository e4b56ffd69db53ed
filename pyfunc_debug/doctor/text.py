"""Findings as text for people, and as HTML."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence

from pyfunc_debug.doctor.failures.pastes.explanation import is_instruction
from pyfunc_debug.places import source_line
from pyfunc_debug.records import Finding

_INDENT = len("  -> ")


def findings_text(findings: Sequence[Finding], width: int = 80, most: int | None = None, all_of_them: str = "") -> str:
    """Findings as paragraphs, worst first.

    Args:
      findings: As `examine` gives them.
      width: Columns of the terminal.
      most: How many to show at most.
      all_of_them: What to type to see the rest.
    """
    shown = findings if most is None else findings[:most]
    text = "\n".join(_paragraph(finding, width) + "\n" * _is_paste(finding.fix) for finding in shown).rstrip()
    return "\n".join(filter(None, (text, _rest(len(findings) - len(shown), all_of_them))))


def _rest(more: int, all_of_them: str) -> str:
    return f"{more} more finding{'' if more == 1 else 's'}: {all_of_them}" if more else ""


def findings_html(findings: Sequence[Finding], most: int | None = None, all_of_them: str = "") -> str:
    """The same as HTML for notebooks, escaped, in the colours of the page; what is to be pasted can be copied.

    Args:
      findings: As `examine` gives them.
      most: How many to show at most.
      all_of_them: What to type to see the rest.
    """
    shown = findings if most is None else findings[:most]
    rest = _rest(len(findings) - len(shown), all_of_them)
    return "".join(map(_html, shown)) + (f"<div>{html.escape(rest)}</div>" if rest else "")


def _html(finding: Finding) -> str:
    evidence = "".join(
        f'<div style="padding-left:1.2em"><small>{html.escape(one)}</small></div>' for one in finding.evidence
    )
    pasted = f'<pre style="margin:0.3em 1.2em">{html.escape(finding.fix)}</pre>'
    said = f'<div style="padding-left:1.2em">→ {html.escape(finding.fix)}</div>' if finding.fix else ""
    return (
        f'<div style="margin-top:0.8em"><b>{html.escape(finding.severity)}</b>: {html.escape(_message(finding))}</div>'
        f"{evidence}{pasted if _is_paste(finding.fix) else said}"
    )


def _message(finding: Finding) -> str:
    where = "" if finding.file is None else f"{source_line(finding.file, finding.line)}: "
    likely = "likely: " if finding.confidence == "likely" else ""
    return f"{where}{likely}{finding.message} [{finding.rule}]"


def _paragraph(finding: Finding, width: int) -> str:
    message = f"{finding.severity}: {_message(finding)}"
    lines = textwrap.wrap(message, width, subsequent_indent="  ", break_long_words=False)
    for seen in finding.evidence:
        lines += textwrap.wrap(seen, width, initial_indent="  ", subsequent_indent="    ", break_long_words=False)
    return "\n".join([*lines, *fix_lines(finding.fix, width)])


def fix_lines(fix: str, width: int = 80) -> list[str]:
    """A text of one line is wrapped; code of several lines stays as it is, to paste.

    Whole lines of a file begin in their own columns: so they can be copied from a terminal.
    """
    if not fix:
        return []
    code, mark, remark = fix.rpartition("  # ")
    if "\n" not in fix and mark and len(fix) > width - _INDENT:  # a line of code stays one
        below = textwrap.wrap(
            f"# {remark}", width, initial_indent=" " * _INDENT, subsequent_indent=f"{' ' * _INDENT}# "
        )
        return [f"  -> {code}", *below]
    if "\n" not in fix:
        return textwrap.wrap(
            fix, width, initial_indent="  -> ", subsequent_indent="     ", break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
    first, *others = fix.splitlines()
    if _is_paste(fix):
        count = 1 + sum(map(is_instruction, others))
        head = [f"  Paste {'both' if count == 2 else f'all {count}'}, in this order:"] if count > 1 else []
        return [*head, f"  -> {first}", *(f"  -> {line}" if is_instruction(line) else line for line in others)]
    return [f"  -> {first}", *(f"     {line}".rstrip() for line in others)]


def _is_paste(fix: str) -> bool:
    return is_instruction(fix.partition("\n")[0])


def listed(what: Sequence[object]) -> str:
    """`1, 2 and 3`; empty for nothing."""
    *others, last = map(str, what) if what else [""]
    return f"{', '.join(others)} and {last}" if others else last


def times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"


def held_names(names: Iterable[tuple[str, str]]) -> str:
    """`x is 3, path is 'a.png'`: what the names of a line held."""
    return ", ".join(f"{name} is {what}" for name, what in names)
