"""Findings as text for people."""

from __future__ import annotations

import textwrap

from pyfunc_debug.analysis.tables import source_line
from pyfunc_debug.records import Finding


def findings_text(findings: list[Finding], width: int = 80) -> str:
    """Findings as paragraphs, worst first."""
    return "\n".join(_paragraph(finding, width) for finding in findings)


def _paragraph(finding: Finding, width: int) -> str:
    where = "" if finding.file is None else f"{source_line(finding.file, finding.line)}: "
    head = textwrap.wrap(f"{finding.severity}: {where}{finding.message}", width, subsequent_indent="  ")
    fix = textwrap.wrap(finding.fix, width, initial_indent="  -> ", subsequent_indent="     ")
    return "\n".join([*head, *fix])
